/**
 * Restores a backup: verifies all of it, then writes documents, files, the control database and the
 * identity database into empty places, and `service.json` last, without which no server starts on
 * the root. A restore that fails removes what it wrote.
 */
import { join } from 'node:path'
import { identityVersion, writeIdentityRows } from '../../database/identity/restored-rows.ts'
import { ArtifactStore } from '../../storage/artifacts.ts'
import type { FilledBlobs } from '../../storage/blobs/blobs.ts'
import { deleteAllBackups } from '../../storage/control/backups.ts'
import { beginHistory, recordDocumentsSequence } from '../../storage/control/environment.ts'
import type { NamedBytes } from '../../storage/restores/backup-contents.ts'
import {
  CONTROL_MIGRATIONS,
  controlSchema,
  writeControlRows,
} from '../../storage/restores/control-rows.ts'
import { ARTIFACTS_DIRECTORY, CONTROL_FILE, openProductRoot } from '../../storage/root.ts'
import { writeFileAtomic } from '../../system/files.ts'
import type { HistoryId } from '../../value/ids.ts'
import { DESCRIPTOR_FILE, KEYRING_FILE } from '../../value/product-root.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { parseKeyring, parseRootDescriptor } from '../../wire/files/product-root.ts'
import { collect } from '../format/age-files.ts'
import { type BackupSource, checkBlob, openBlob, readBlob } from '../format/backup-reader.ts'
import type { HistoryAddress } from '../format/chain.ts'
import { corrupt } from '../format/segments.ts'
import {
  type Destination,
  documentsDestination,
  identityUndo,
  prepareRoot,
  requireEmpty,
} from './destination.ts'
import { type RestoreGoal, selectRestore } from './goals.ts'
import { type LiveCredentials, settleCredentials } from './live-credentials.ts'
import { peppersOf, type RestoredPeppers, writePeppers } from './peppers.ts'
import { type RestoredDocuments, restoreDocuments } from './restored-documents.ts'
import { UndoStack } from './undo-stack.ts'
import {
  eachOf,
  type Progress,
  type VerifiedSegments,
  verifyRestore,
  verifySegments,
} from './verified-backup.ts'

export interface RestoreOptions {
  readonly source: BackupSource
  readonly address: HistoryAddress
  readonly goal: RestoreGoal
  readonly destination: Destination
  /**
   * Opens the store of the bytes of files, whose directory is in the root. Null verifies the bytes
   * and stores none, for a rehearsal.
   */
  readonly openBlobs: (() => Promise<FilledBlobs>) | null
  /**
   * True for a store that keeps all bytes in the root, which a restore that fails removes. Then
   * they are verified while they are written, and read once.
   */
  readonly hasBlobsInRoot?: boolean
  readonly revokesCredentials: boolean
  /** True writes the peppers that the backup has into the root. */
  readonly restoresPeppers: boolean
  readonly onProgress?: Progress
}

export interface RestoreResult {
  readonly sequence: number
  readonly atMicros: bigint
  /** The history that the restored root begins. */
  readonly historyId: HistoryId
  readonly documents: number
  /** The root of the Merkle tree of the documents, as the restored store returns them. */
  readonly merkle: string
  /** Segments that were read. */
  readonly segments: number
  readonly files: number
  readonly fileBytes: number
  /** Files whose bytes the backup does not have: they were damaged, or stored too late for it. */
  readonly missingFiles: number
  readonly live: LiveCredentials
  readonly peppers: RestoredPeppers
}

/** Files that are written at the same time. Each waits for the disk. */
const FILES_AT_ONCE = 8

/**
 * Raises RESTORE_NOT_EMPTY, RESTORE_POINT_NOT_FOUND, BACKUP_CORRUPT, BACKUP_VERSION_UNKNOWN,
 * UNAVAILABLE, and the faults of a root and of databases that cannot be used.
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreResult> {
  const { source, address, goal, destination, onProgress, hasBlobsInRoot = false } = options
  await requireEmpty(destination)
  const selected = await selectRestore(source, address, goal)
  const readsOnce = hasBlobsInRoot || options.openBlobs === null
  const verify = readsOnce ? verifySegments : verifyRestore
  const verified = await verify(source, selected, onProgress)
  const undo = new UndoStack()
  try {
    const { environmentId } = parsedEnvironment(verified)
    prepareRoot(destination, undo)
    const documents = documentsDestination(destination, environmentId, undo)
    const restored = await restoreContents(options, verified, () =>
      restoreDocuments({
        source,
        selected,
        verified,
        destination: documents,
        ...(onProgress && { onProgress }),
      }),
    )
    restoreControl(destination, verified)
    await restoreIdentity(destination, verified, undo)
    const peppers = peppersOf(verified)
    if (options.restoresPeppers) writePeppers(destination.root, verified.environment)
    const { missingFiles } = verified
    return { ...(await finish(options, verified)), ...restored, missingFiles, peppers }
  } catch (error) {
    throw await undo.undo(error)
  } finally {
    verified.contents.close()
  }
}

interface RestoredBytes {
  readonly files: number
  readonly fileBytes: number
}

/** Restores bytes and documents. A database outside of the root is written after all bytes. */
async function restoreContents(
  options: RestoreOptions,
  verified: VerifiedSegments,
  documents: () => Promise<RestoredDocuments>,
): Promise<RestoredDocuments & RestoredBytes> {
  const blobs = (await options.openBlobs?.()) ?? null
  if (options.destination.documents !== null) {
    const bytes = await restoreBytes(options, verified, blobs)
    await blobs?.syncAll?.()
    return { ...bytes, ...(await documents()) }
  }
  // Bytes wait for the disk and for the threads that decrypt them, documents for this thread.
  const both = [restoreBytes(options, verified, blobs), documents()] as const
  // Nothing is removed while the other one still writes.
  await Promise.allSettled(both)
  const [bytes, restored] = await Promise.all(both)
  // The threads that decrypt wait for the disk then.
  await blobs?.syncAll?.()
  return { ...bytes, ...restored }
}

function parsedEnvironment({ environment }: VerifiedSegments) {
  try {
    parseKeyring(Buffer.from(environment.keyring))
    return parseRootDescriptor(Buffer.from(environment.descriptor))
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw corrupt('the record of the Environment', error.message, error)
  }
}

/** Verifies the bytes that it writes. */
async function restoreBytes(
  options: RestoreOptions,
  { contents }: VerifiedSegments,
  blobs: FilledBlobs | null,
): Promise<RestoredBytes> {
  const { source, address, destination, onProgress } = options
  const artifacts = new ArtifactStore(join(destination.root, ARTIFACTS_DIRECTORY))
  await artifacts.open()
  let files = 0
  let fileBytes = 0
  await eachOf(contents.namedBytes(), FILES_AT_ONCE, async (named) => {
    if (named.kind === 'artifact') {
      const bytes = await collect(readBlob(source, address, recordOf(named)))
      await artifacts.put(`sha256:${named.sha256}`, bytes)
    } else if (blobs === null) {
      for await (const _ of readBlob(source, address, recordOf(named)));
    } else {
      await restoreFile(options, blobs, named)
    }
    files += 1
    fileBytes += named.bytes
    onProgress?.('written files', files)
  })
  return { files, fileBytes }
}

/** The store computes the digest of what it writes. */
async function restoreFile(
  { source, address }: RestoreOptions,
  blobs: FilledBlobs,
  named: NamedBytes,
): Promise<void> {
  const record = recordOf(named)
  const staged = await blobs.stage(named.bytes)
  try {
    for await (const chunk of openBlob(source, address, record)) await staged.write(chunk)
    checkBlob(address, record, await staged.finish())
    await staged.commit()
  } finally {
    await staged.discard()
  }
}

function recordOf({ kind, ...named }: NamedBytes) {
  return { t: kind, ...named }
}

function restoreControl(
  { root, system }: Destination,
  { contents, environment }: VerifiedSegments,
) {
  const migrations = [...contents.rows('control', CONTROL_MIGRATIONS)]
  const { version } = controlSchema(migrations)
  const path = join(root, CONTROL_FILE)
  writeControlRows({ path, version, nowMicros: system.nowMicros(), contents })
  writeFileAtomic(join(root, KEYRING_FILE), environment.keyring)
}

async function restoreIdentity(
  destination: Destination,
  { contents }: VerifiedSegments,
  undo: UndoStack,
): Promise<void> {
  const { identity: database, system } = destination
  if (database === null) return
  const rows = (table: string) => contents.rows('identity', table)
  const version = identityVersion([...rows('service_platform_migrations')])
  identityUndo(database, undo)
  await writeIdentityRows({ database, version, nowMicros: system.nowMicros(), rows })
}

/** Makes the root usable: opens it as a server does, and begins its history. */
async function finish(
  { destination, revokesCredentials }: RestoreOptions,
  { environment, sequence, atMicros, segments }: VerifiedSegments,
) {
  const { root: path, system, identity } = destination
  writeFileAtomic(join(path, DESCRIPTOR_FILE), environment.descriptor, { mode: 0o644 })
  const root = await openProductRoot(path, system)
  try {
    const historyId = system.ids.make('hst')
    root.control.transaction((tx) => {
      beginHistory(tx, historyId)
      recordDocumentsSequence(tx, sequence)
      deleteAllBackups(tx)
    })
    const { control } = root
    const live = await settleCredentials({
      identity,
      control,
      system,
      historyId,
      isRevoked: revokesCredentials,
    })
    return { sequence, atMicros, historyId, segments, live }
  } finally {
    root.close()
  }
}
