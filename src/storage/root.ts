/**
 * Opens a Product root for its owner process: checks the files that `svc init` created, locks the
 * root and opens its control database and artifacts. Product interprets their content.
 */
import { existsSync, rmSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import type { Fault } from '../errors/fault.ts'
import type { System } from '../system/system.ts'
import {
  ACME_DIRECTORY,
  DESCRIPTOR_FILE,
  KEYRING_FILE,
  LOCAL_SERVER_FILE,
  ROOT_FILE_BYTES_MAX,
  type RootDescriptor,
} from '../value/product-root.ts'
import { ValidationError } from '../value/validation-error.ts'
import { parseKeyring, parseRootDescriptor } from '../wire/files/product-root.ts'
import { ArtifactStore } from './artifacts.ts'
import { ControlDatabase, type ControlOptions } from './control/database.ts'
import {
  beginHistory,
  findEnvironment,
  findHistory,
  insertEnvironment,
} from './control/environment.ts'
import { insertKeyringCheck, listKeyringChecks } from './control/keyring-checks.ts'
import {
  type Access,
  checkOwnDirectory,
  checkOwnFile,
  invalidRoot,
  isAbsentOrEmpty,
  readOwnFile,
} from './files.ts'
import { Keyring } from './keyring.ts'
import { lockRoot } from './lock.ts'

/** The SQLite database of the documents, unless PostgreSQL stores them. */
export const DOCUMENTS_FILE = 'documents.db'
/** Contains the ID of the PostgreSQL database that stores the documents, if one does. */
export const DOCUMENTS_POSTGRES_FILE = 'documents.postgres'
/** The directory of the bytes of stored files, unless an S3-compatible store holds them. */
export const FILES_DIRECTORY = 'files'
/** The hot store of operational log records. */
export const LOGS_FILE = 'logs.db'
/** Counts the records that are not in the hot store yet. */
export const LOGS_UNWRITTEN_FILE = 'logs.unwritten'
/** The directory of the archive segments of the log. */
export const LOGS_DIRECTORY = 'logs'
/** Contains the name of the S3 bucket that holds them, if one does. */
export const FILES_S3_FILE = 'files.s3'
/** The directory of backups that operators asked for, each in a directory of its own. */
export const BACKUPS_DIRECTORY = 'backups'
/** The end of the last rehearsal of a restore, and the directory that it restores into. */
export const REHEARSAL_FILE = 'rehearsal.json'
export const REHEARSAL_DIRECTORY = 'rehearsal'
/** The directory of the peppers that a restore found in its backup. Servers do not read it. */
export const PEPPERS_DIRECTORY = 'restored-peppers'
export const RESTORED_PEPPER_FILE = `${PEPPERS_DIRECTORY}/identity-pepper`
/** JSON with `subjectPepper` of each identity provider by its ID. */
export const RESTORED_SUBJECT_PEPPERS_FILE = `${PEPPERS_DIRECTORY}/subject-peppers.json`
/** The copy of the control database that a backup reads, which removes it. */
export const CONTROL_COPY_FILE = 'control.backup'
/** Says which backup the documents of a root of `svc dev` are a copy of. */
export const COPY_FILE = 'copy.json'
/** The names under which that backup has the bytes of files. */
export const COPY_FILES_FILE = 'copy-files.db'
/** The directory in which a copy is written, until it is whole. */
export const COPY_DIRECTORY = 'copy.unfinished'
/** The development key by which programs of this machine reach `svc dev`. */
export const DEVELOPMENT_KEY_FILE = 'development.key'
/** The backup that was made before migrations. */
export const UPGRADE_FILE = 'upgrade.json'
/** The file that the process that owns the root has locked. */
export const LOCK_FILE = 'lock.db'
/** The control database. */
export const CONTROL_FILE = 'control.db'
/** The directory of the artifacts of Releases. */
export const ARTIFACTS_DIRECTORY = 'artifacts'
/** Files created after the first commit to control.db, which made its directory entry durable. */
const CREATED_LATER = [`${ARTIFACTS_DIRECTORY}/sha256`, DOCUMENTS_FILE, DOCUMENTS_POSTGRES_FILE]

/** All that a process writes into a root, the control database last. */
const STATE_FILES = [
  ...[DOCUMENTS_FILE, LOGS_FILE].flatMap(withLogs),
  LOGS_UNWRITTEN_FILE,
  FILES_DIRECTORY,
  LOGS_DIRECTORY,
  BACKUPS_DIRECTORY,
  UPGRADE_FILE,
  ...withLogs(CONTROL_COPY_FILE),
  REHEARSAL_FILE,
  REHEARSAL_DIRECTORY,
  COPY_FILE,
  COPY_FILES_FILE,
  COPY_DIRECTORY,
  ARTIFACTS_DIRECTORY,
  ...withLogs(CONTROL_FILE),
]

/**
 * Names of the entries of a root. They are not source, even if a Workspace is in the same place.
 */
export const ROOT_FILES: ReadonlySet<string> = new Set([
  DESCRIPTOR_FILE,
  KEYRING_FILE,
  LOCAL_SERVER_FILE,
  DEVELOPMENT_KEY_FILE,
  ...withLogs(LOCK_FILE),
  ...STATE_FILES,
  DOCUMENTS_POSTGRES_FILE,
  FILES_S3_FILE,
  PEPPERS_DIRECTORY,
  ACME_DIRECTORY,
])

export interface ProductRoot {
  readonly path: string
  readonly descriptor: RootDescriptor
  readonly keyring: Keyring
  readonly control: ControlDatabase
  readonly artifacts: ArtifactStore
  /** Closes the database, then releases the lock. Idempotent. */
  close(): void
}

/**
 * Throws SERVER_PRODUCT_ROOT_INVALID where the directory, its owner or modes, or a file in it is
 * wrong or two files disagree, SERVER_PRODUCT_ROOT_UNAVAILABLE where the disk or the permissions
 * prevent access, SERVER_PRODUCT_ROOT_LOCKED where a process holds the lock, and what
 * `ControlDatabase.open` throws. Writes nothing before both files of `svc init` are valid.
 */
export async function openProductRoot(
  path: string,
  system: Pick<System, 'nowMicros' | 'ids'>,
  options: ControlOptions = {},
): Promise<ProductRoot> {
  const { descriptor, keyring } = readProductRoot(path)
  const lock = lockRoot(join(path, LOCK_FILE))
  let control: ControlDatabase | null = null
  try {
    const later = requireControl(path)
    control = ControlDatabase.open(join(path, CONTROL_FILE), system.nowMicros(), options)
    bindControl(control, { descriptor, keyring, later, ids: system.ids })
    const artifacts = new ArtifactStore(join(path, ARTIFACTS_DIRECTORY))
    await artifacts.open()
    return rootOf({ path, descriptor, keyring, control, artifacts }, lock.release)
  } catch (error) {
    control?.close()
    lock.release()
    throw error
  }
}

/**
 * Opens a root for its owner process as a program of an earlier version has left it, with its
 * control database at that schema version. Throws what `openProductRoot` throws.
 */
export function openUnmigratedRoot(
  path: string,
  system: Pick<System, 'nowMicros'>,
  version: number,
): ProductRoot {
  const { descriptor, keyring } = readProductRoot(path)
  const lock = lockRoot(join(path, LOCK_FILE))
  try {
    requireControl(path)
    const file = join(path, CONTROL_FILE)
    const control = ControlDatabase.open(file, system.nowMicros(), { version })
    const artifacts = new ArtifactStore(join(path, ARTIFACTS_DIRECTORY))
    return rootOf({ path, descriptor, keyring, control, artifacts }, lock.release)
  } catch (error) {
    lock.release()
    throw error
  }
}

/**
 * Opens the root in a process of the server that does not own it, for reads alone. Throws
 * SERVER_PRODUCT_ROOT_INVALID and SERVER_PRODUCT_ROOT_UNAVAILABLE.
 */
export function followProductRoot(path: string): ProductRoot {
  const { descriptor, keyring } = readProductRoot(path)
  const control = ControlDatabase.follow(join(path, CONTROL_FILE))
  const artifacts = new ArtifactStore(join(path, ARTIFACTS_DIRECTORY))
  return rootOf({ path, descriptor, keyring, control, artifacts }, () => undefined)
}

/**
 * Throws what `openProductRoot` would throw, except for the lock and for the content of the
 * database: a server may be running on the root, and SQLite writes beside a file that it opens.
 */
export function checkProductRoot(path: string): RootDescriptor {
  const { descriptor } = readProductRoot(path)
  checkOwnFile(join(path, LOCK_FILE))
  requireControl(path)
  checkOwnFile(join(path, CONTROL_FILE))
  return descriptor
}

/**
 * Removes every document, file, Release, key and log record of a root and keeps its identity.
 * Throws SERVER_PRODUCT_ROOT_LOCKED where a process uses it, SERVER_PRODUCT_ROOT_INVALID where its
 * documents or files are elsewhere, SERVER_PRODUCT_ROOT_UNAVAILABLE.
 */
export function resetProductRoot(path: string): void {
  readProductRoot(path)
  const elsewhere = [DOCUMENTS_POSTGRES_FILE, FILES_S3_FILE].find((name) =>
    existsSync(join(path, name)),
  )
  if (elsewhere !== undefined) throw invalidRoot(`${elsewhere} names a store outside of the root`)
  const lock = lockRoot(join(path, LOCK_FILE))
  try {
    for (const name of STATE_FILES) rmSync(join(path, name), { recursive: true, force: true })
  } catch (cause) {
    throw invalidRoot('its files cannot be removed', cause)
  } finally {
    lock.release()
  }
}

export function readProductRoot(path: string): { descriptor: RootDescriptor; keyring: Keyring } {
  if (!isAbsolute(path) || path === '/') throw invalidRoot('an absolute path other than /')
  checkOwnDirectory(path)
  const descriptor = parsed(path, DESCRIPTOR_FILE, 'shared', parseRootDescriptor)
  const keyring = parsed(path, KEYRING_FILE, 'private', parseKeyring)
  return { descriptor, keyring: new Keyring(keyring, descriptor.environmentId) }
}

/**
 * Returns the name of an existing file that is created after control.db, if any. Throws if that
 * file exists without control.db: an empty control.db references no artifact and no index, so all
 * of them would be removed as unused. The caller opens control.db afterwards, since SQLite deletes
 * the log beside an empty file.
 */
export function requireControl(path: string): string | undefined {
  const later = CREATED_LATER.find((name) => existsSync(join(path, name)))
  if (later !== undefined && isAbsentOrEmpty(join(path, CONTROL_FILE))) throw controlLost(later)
  return later
}

function parsed<T>(root: string, file: string, access: Access, parse: (text: Uint8Array) => T): T {
  try {
    return parse(readOwnFile(join(root, file), ROOT_FILE_BYTES_MAX, access))
  } catch (error) {
    if (error instanceof ValidationError) throw invalidRoot(`${file}: ${error.path}: ${error.rule}`)
    throw error
  }
}

function controlLost(later: string): Fault {
  return invalidRoot(
    `${CONTROL_FILE} is missing or empty, but ${later} exists: restore ${CONTROL_FILE}, with its ` +
      'log (-wal) if there is one, from the backup that the other files are from',
  )
}

interface Bound {
  readonly descriptor: RootDescriptor
  readonly keyring: Keyring
  readonly later: string | undefined
  readonly ids: System['ids']
}

/**
 * Records descriptor, keyring and history at the first opening; checks descriptor and keyring
 * against the records later.
 */
function bindControl(control: ControlDatabase, { descriptor, keyring, later, ids }: Bound): void {
  control.transaction((tx) => {
    const environment = findEnvironment(tx)
    if (environment === null) {
      // A copy of the file without its log looks like this.
      if (later !== undefined) throw controlLost(later)
      insertEnvironment(tx, descriptor)
    } else if (
      environment.projectId !== descriptor.projectId ||
      environment.environmentId !== descriptor.environmentId
    ) {
      throw invalidRoot('service.json and control.db belong to different Environments')
    }
    if (findHistory(tx) === null) beginHistory(tx, ids.make('hst'))
    const recorded = listKeyringChecks(tx)
    for (const { keyId, digest } of recorded) {
      if (!keyring.fits(keyId, digest)) {
        throw invalidRoot(`keyring.json lacks the key ${keyId} that control.db was written with`)
      }
    }
    for (const keyId of keyring.ids) {
      if (recorded.some((check) => check.keyId === keyId)) continue
      insertKeyringCheck(tx, { keyId, digest: keyring.derive(keyId, 'keyring-check') })
    }
  })
}

function rootOf(parts: Omit<ProductRoot, 'close'>, releaseLock: () => void): ProductRoot {
  let open = true
  return {
    ...parts,
    close() {
      if (!open) return
      open = false
      parts.control.close()
      releaseLock()
    },
  }
}

/** The log and the index of a SQLite database go before the file itself. */
function withLogs(file: string): string[] {
  return [`${file}-wal`, `${file}-shm`, `${file}-journal`, file]
}
