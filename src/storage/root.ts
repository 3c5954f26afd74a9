/**
 * A Product root that this process owns: what `svc init` made, checked, locked and opened. What the
 * state in it means is left to product.
 */
import { existsSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import type { Fault } from '../errors/fault.ts'
import {
  DESCRIPTOR_FILE,
  KEYRING_FILE,
  ROOT_FILE_BYTES_MAX,
  type RootDescriptor,
} from '../value/product-root.ts'
import { ValidationError } from '../value/validation-error.ts'
import { parseKeyring, parseRootDescriptor } from '../wire/files/product-root.ts'
import { ArtifactStore } from './artifacts.ts'
import { ControlDatabase } from './control/database.ts'
import { findEnvironment, insertEnvironment } from './control/environment.ts'
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

/** The documents, where they are in the root. */
export const DOCUMENTS_FILE = 'documents.db'
/** Holds the ID of the PostgreSQL database that the documents are in, where they are there. */
export const DOCUMENTS_POSTGRES_FILE = 'documents.postgres'
const LOCK_FILE = 'lock.db'
const CONTROL_FILE = 'control.db'
/** Each is made after the first commit to control.db, which made that file's name durable too. */
const MADE_LATER = ['artifacts/sha256', DOCUMENTS_FILE, DOCUMENTS_POSTGRES_FILE]

export interface ProductRoot {
  readonly path: string
  readonly descriptor: RootDescriptor
  readonly keyring: Keyring
  readonly control: ControlDatabase
  readonly artifacts: ArtifactStore
  /** Idempotent. Gives the lock back last. */
  close(): void
}

/**
 * Throws SERVER_PRODUCT_ROOT_INVALID where the directory, its owner or modes, a file in it or their
 * agreement is not right, SERVER_PRODUCT_ROOT_UNAVAILABLE where its disk or the rights of this user
 * refuse, SERVER_PRODUCT_ROOT_LOCKED where another process has it. Writes nothing before both files
 * are known to be a root's.
 */
export async function openProductRoot(
  path: string,
  system: { nowMicros(): bigint },
): Promise<ProductRoot> {
  const { descriptor, keyring } = readProductRoot(path)
  const lock = lockRoot(join(path, LOCK_FILE))
  let control: ControlDatabase | null = null
  try {
    const later = requireControl(path)
    control = ControlDatabase.open(join(path, CONTROL_FILE), system.nowMicros())
    bind(control, descriptor, keyring, later)
    const artifacts = new ArtifactStore(join(path, 'artifacts'))
    await artifacts.open()
    return rootOf({ path, descriptor, keyring, control, artifacts }, lock.release)
  } catch (error) {
    control?.close()
    lock.release()
    throw error
  }
}

/**
 * Throws what `openProductRoot` would, as far as that can be told without the lock of the root and
 * without opening its database: a server may be running on it, and SQLite writes beside the file.
 */
export function checkProductRoot(path: string): RootDescriptor {
  const { descriptor } = readProductRoot(path)
  checkOwnFile(join(path, LOCK_FILE))
  requireControl(path)
  checkOwnFile(join(path, CONTROL_FILE))
  return descriptor
}

function readProductRoot(path: string): { descriptor: RootDescriptor; keyring: Keyring } {
  if (!isAbsolute(path) || path === '/') throw invalidRoot('an absolute path other than /')
  checkOwnDirectory(path)
  const descriptor = parsed(path, DESCRIPTOR_FILE, 'shared', parseRootDescriptor)
  const keyring = parsed(path, KEYRING_FILE, 'private', parseKeyring)
  return { descriptor, keyring: new Keyring(keyring, descriptor.environmentId) }
}

/**
 * Returns the name of a file that is made after control.db, where there is one. Throws where
 * control.db is gone then: an empty one names no artifact and no index, so that all of them would
 * be removed as left over. The caller opens control.db afterwards, since SQLite deletes the log
 * beside an empty file.
 */
function requireControl(path: string): string | undefined {
  const later = MADE_LATER.find((name) => existsSync(join(path, name)))
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
    `${CONTROL_FILE} is missing or empty, but ${later} is there: restore ${CONTROL_FILE}, with ` +
      'its log (-wal) where there is one, from the backup that the rest is from',
  )
}

/** Ties the control database to the two files at its first opening, and holds it to them later. */
function bind(
  control: ControlDatabase,
  descriptor: RootDescriptor,
  keyring: Keyring,
  later: string | undefined,
): void {
  control.transaction((tx) => {
    const environment = findEnvironment(tx)
    if (environment === null) {
      // As a copy of the file is without its log.
      if (later !== undefined) throw controlLost(later)
      insertEnvironment(tx, descriptor)
    } else if (
      environment.projectId !== descriptor.projectId ||
      environment.environmentId !== descriptor.environmentId
    ) {
      throw invalidRoot('service.json and control.db belong to different Environments')
    }
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
