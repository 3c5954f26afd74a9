/** Collects the readings of the files of a Product root, as far as its lock allows. */
import { existsSync, lstatSync } from 'node:fs'
import { join } from 'node:path'
import { readPostgresDocuments } from '../../../documents/postgres/inspection.ts'
import { readSqliteDocuments } from '../../../documents/sqlite/inspection.ts'
import type { DocumentStore } from '../../../documents/store.ts'
import type { ProductSettings } from '../../../settings/settings.ts'
import { DOCUMENTS_FILE, FILES_DIRECTORY, ROOT_FILES } from '../../../storage/root.ts'
import type { DatabaseUse } from '../../../system/inspected-databases.ts'
import type { System } from '../../../system/system.ts'
import { DESCRIPTOR_FILE } from '../../../value/product-root.ts'
import { type DocumentsReading, type Reading, type Readings, skip } from '../readings.ts'
import { readDocuments, readStoredFiles } from './documents.ts'
import {
  listContents,
  readPermissions,
  readQuarantined,
  readSample,
  readTemporary,
} from './files.ts'
import type { CollectOptions, Found, LockState, StoredDocuments } from './options.ts'
import { mapped, readingOf } from './reading-of.ts'
import { type RootOptions, readControl, readDocumentFile, readLog } from './root.ts'
/**
 * Bounds of a sample of files in one run.
 * @limit Doctor: bytes of stored files that one run compares with their digests
 */
export const SAMPLE_BYTES_MAX = 64 * 1024 * 1024
/** @limit Doctor: stored files that one run compares with their digests */
export const SAMPLE_FILES_MAX = 256
const SAMPLE = { filesMax: SAMPLE_FILES_MAX, bytesMax: SAMPLE_BYTES_MAX }
type RootName =
  | 'rootPermissions'
  | 'contentPermissions'
  | 'statePermissions'
  | 'control'
  | 'controlContent'
  | 'artifacts'
  | 'artifactSample'
  | 'fileSample'
  | 'storedFiles'
  | 'quarantined'
  | 'temporary'
  | 'documentFile'
  | 'documents'
  | 'log'
  | 'recordTimes'

/** Never rejects. */
export async function readRootFiles(
  options: CollectOptions,
  lock: LockState,
  root: Reading<Found> | null,
  stored: StoredDocuments,
): Promise<Pick<Readings, RootName>> {
  const { settings, system } = options
  const { stateDirectory, product } = settings
  const statePermissions = existsSync(stateDirectory)
    ? await readingOf(() => readPermissions(stateDirectory, { deep: true, isShared: () => false }))
    : skip('the directory does not exist yet')
  if (product === null || root === null) {
    return { ...nothing(skip('no Product root is configured')), statePermissions }
  }
  const path = product.root
  if ('failed' in root && lstatSync(path, { throwIfNoEntry: false }) === undefined) {
    return { ...nothing(root), statePermissions }
  }
  const free = await readWithoutLock(path, stateDirectory, system)
  const locked = await readUnderLock(options, lock, root, stored)
  return { ...free, ...locked, statePermissions }
}

function nothing(reading: { readonly skipped: string } | { readonly failed: string }) {
  const other = 'failed' in reading ? skip('the root cannot be read') : reading
  return {
    rootPermissions: reading,
    contentPermissions: other,
    control: other,
    controlContent: other,
    artifacts: other,
    artifactSample: other,
    fileSample: other,
    storedFiles: other,
    quarantined: other,
    temporary: other,
    documentFile: other,
    documents: other,
    log: other,
    recordTimes: other,
  }
}

async function readWithoutLock(path: string, stateDirectory: string, system: System) {
  const isShared = (file: string): boolean => file === join(path, DESCRIPTOR_FILE)
  const artifacts = join(path, 'artifacts')
  return {
    rootPermissions: await readingOf(() =>
      readPermissions(path, {
        deep: false,
        isShared,
        only: (name) => ROOT_FILES.has(name),
      }),
    ),
    contentPermissions: existsSync(artifacts)
      ? await readingOf(() => readPermissions(artifacts, { deep: true, isShared: () => false }))
      : skip('the root has no artifacts yet'),
    artifactSample: await unwrapped(() => readSample(join(artifacts, 'sha256'), SAMPLE, system)),
    fileSample: await unwrapped(() =>
      readSample(join(path, FILES_DIRECTORY, 'sha256'), SAMPLE, system),
    ),
    quarantined: await readingOf(() => readQuarantined(path)),
    temporary: await readingOf(() => readTemporary(path, stateDirectory, system)),
  }
}

async function unwrapped<T>(read: () => Promise<Reading<T>>): Promise<Reading<T>> {
  return mapped(await readingOf(read), (reading) => reading)
}

type LockedName =
  | 'control'
  | 'controlContent'
  | 'artifacts'
  | 'storedFiles'
  | 'documentFile'
  | 'documents'
  | 'log'
  | 'recordTimes'

async function readUnderLock(
  options: CollectOptions,
  lock: LockState,
  root: Reading<Found>,
  stored: StoredDocuments,
): Promise<Pick<Readings, LockedName>> {
  const { settings, inside, system } = options
  const product = settings.product!
  const state = 'value' in lock ? lock.value : null
  if (state === null || state === 'running' || !('value' in root)) {
    const none =
      state === 'running'
        ? skip('a server has the root: it makes the check', 'svc doctor')
        : skip('the root cannot be read')
    const documents =
      'value' in stored
        ? await readStore(product, 'caller', stored, (store) => readDocuments(store, system))
        : none
    return {
      control: 'failed' in root ? root : none,
      controlContent: none,
      artifacts: none,
      storedFiles: none,
      documentFile: none,
      documents: withSequence(documents, null),
      log: none,
      recordTimes: none,
    }
  }
  const ofServer = product.applicationProcesses > 1 ? 'processes' : 'process'
  const use: DatabaseUse = inside === null ? 'caller' : ofServer
  const rootOptions: RootOptions = {
    path: product.root,
    ...root.value,
    isRunning: inside !== null,
    use,
    segmentMillisMax: settings.logs.segmentSecondsMax * 1000,
    droppedRecords: inside?.droppedRecords ?? 0,
    system,
  }
  const { control, content, artifacts, mayHoldDocuments } = await readControl(rootOptions)
  const { log, newestAtMicros } = await readLog(rootOptions)
  const documentFile =
    product.database === null
      ? await readDocumentFile(rootOptions, mayHoldDocuments)
      : skip('the documents are in PostgreSQL')
  const isReadable =
    product.database !== null ||
    ('value' in documentFile &&
      documentFile.value.schema.defect === null &&
      documentFile.value.schema.version === documentFile.value.schema.known)
  const reading = isReadable
    ? await readStore(product, use, stored, async (store) => ({
        documents: await readDocuments(store, system),
        files:
          product.storage.s3 === null
            ? await readStoredFiles(store, {
                root: product.root,
                stored: await listContents(join(product.root, FILES_DIRECTORY, 'sha256')),
                system,
              })
            : null,
      }))
    : 'skipped' in documentFile
      ? documentFile
      : skip('documents.db cannot be read, or has another schema version')
  const recorded = 'value' in content ? content.value.documentsSequence : null
  return {
    control,
    controlContent: content,
    artifacts,
    documentFile,
    log,
    documents: withSequence(
      mapped(reading, ({ documents }) => ({ value: documents })),
      recorded,
    ),
    storedFiles: mapped(reading, ({ files }) =>
      files === null
        ? skip('the files are in an S3-compatible store', 'svc-server verify-storage')
        : { value: files },
    ),
    recordTimes:
      newestAtMicros === null
        ? skip('there is no record yet')
        : { value: { aheadMillis: newestAtMicros / 1000 - system.nowMillis() } },
  }
}

function withSequence(
  reading: Reading<Omit<DocumentsReading, 'recordedSequence'>>,
  recordedSequence: number | null,
): Reading<DocumentsReading> {
  return mapped(reading, (value) => ({ value: { ...value, recordedSequence } }))
}

/** Runs reads of the documents where they are. */
function readStore<T>(
  product: ProductSettings,
  use: DatabaseUse,
  stored: StoredDocuments,
  read: (store: DocumentStore) => Promise<T>,
): Promise<Reading<T>> {
  const { database } = product
  if (database === null) {
    const path = join(product.root, DOCUMENTS_FILE)
    return readingOf(async () => readSqliteDocuments({ path, use }, read))
  }
  if (!('value' in stored)) return Promise.resolve(stored)
  return readingOf(() => readPostgresDocuments(database.url, stored.value, read))
}
