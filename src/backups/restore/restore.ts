/**
 * Restores a backup: verifies all of it, then writes documents, files, the control database and the
 * identity database into empty places, and `service.json` last, without which no server starts on
 * the root. A restore that fails removes what it wrote.
 */
import { join } from 'node:path'
import { identityVersion, writeIdentityRows } from '../../database/identity/restored-rows.ts'
import { ArtifactStore } from '../../storage/artifacts.ts'
import type { BlobStore } from '../../storage/blobs/blobs.ts'
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
import { type BackupSource, readBlob } from '../format/backup-reader.ts'
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
import { restoreDocuments } from './restored-documents.ts'
import { UndoStack } from './undo-stack.ts'
import { eachOf, type Progress, type VerifiedBackup, verifyRestore } from './verified-backup.ts'

export interface RestoreOptions {
  readonly source: BackupSource
  readonly address: HistoryAddress
  readonly goal: RestoreGoal
  readonly destination: Destination
  /**
   * Opens the store of the bytes of files, whose directory is in the root. Null verifies the bytes
   * and stores none, for a rehearsal.
   */
  readonly openBlobs: (() => Promise<BlobStore>) | null
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
  readonly live: LiveCredentials
  readonly peppers: RestoredPeppers
}

/** Files that are written at the same time. */
const FILES_AT_ONCE = 4

/**
 * Raises RESTORE_NOT_EMPTY, RESTORE_POINT_NOT_FOUND, BACKUP_CORRUPT, BACKUP_VERSION_UNKNOWN,
 * UNAVAILABLE, and the faults of a root and of databases that cannot be used.
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreResult> {
  const { source, address, goal, destination, onProgress } = options
  await requireEmpty(destination)
  const selected = await selectRestore(source.target, address, goal)
  const verified = await verifyRestore(source, selected, onProgress)
  const undo = new UndoStack()
  try {
    const { environmentId } = parsedEnvironment(verified)
    prepareRoot(destination, undo)
    const documents = documentsDestination(destination, environmentId, undo)
    const restored = await restoreDocuments({
      source,
      selected,
      verified,
      destination: documents,
      ...(onProgress && { onProgress }),
    })
    await restoreBytes(options, verified)
    restoreControl(destination, verified)
    await restoreIdentity(destination, verified, undo)
    const peppers = peppersOf(verified)
    if (options.restoresPeppers) writePeppers(destination.root, verified.environment)
    return { ...(await finish(options, verified)), ...restored, peppers }
  } catch (error) {
    throw await undo.undo(error)
  } finally {
    verified.contents.close()
  }
}

function parsedEnvironment({ environment }: VerifiedBackup) {
  try {
    parseKeyring(Buffer.from(environment.keyring))
    return parseRootDescriptor(Buffer.from(environment.descriptor))
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw corrupt('the record of the Environment', error.message, error)
  }
}

async function restoreBytes(options: RestoreOptions, { contents }: VerifiedBackup): Promise<void> {
  const { source, address, destination, onProgress } = options
  const blobs = await options.openBlobs?.()
  const artifacts = new ArtifactStore(join(destination.root, ARTIFACTS_DIRECTORY))
  await artifacts.open()
  let written = 0
  await eachOf(contents.namedBytes(), FILES_AT_ONCE, async (named) => {
    const bytes = readBlob(source, address, recordOf(named))
    if (named.kind === 'artifact') {
      await artifacts.put(`sha256:${named.sha256}`, await collect(bytes))
    } else if (blobs !== undefined) {
      await storeFile(blobs, named, bytes)
    }
    written += 1
    onProgress?.('written files', written)
  })
}

async function storeFile(
  blobs: BlobStore,
  { bytes: size }: NamedBytes,
  bytes: AsyncIterable<Uint8Array>,
): Promise<void> {
  const staged = await blobs.stage(size)
  try {
    for await (const chunk of bytes) await staged.write(chunk)
    await staged.finish()
    await staged.commit()
  } finally {
    await staged.discard()
  }
}

function recordOf({ kind, ...named }: NamedBytes) {
  return { t: kind, ...named }
}

function restoreControl({ root, system }: Destination, { contents, environment }: VerifiedBackup) {
  const migrations = [...contents.rows('control', CONTROL_MIGRATIONS)]
  const { version } = controlSchema(migrations)
  const path = join(root, CONTROL_FILE)
  writeControlRows({ path, version, nowMicros: system.nowMicros(), contents })
  writeFileAtomic(join(root, KEYRING_FILE), environment.keyring)
}

async function restoreIdentity(
  destination: Destination,
  { contents }: VerifiedBackup,
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
  { environment, sequence, atMicros, segments, blobs, blobBytes }: VerifiedBackup,
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
    const files = { files: blobs, fileBytes: blobBytes }
    return { sequence, atMicros, historyId, segments, ...files, live }
  } finally {
    root.close()
  }
}
