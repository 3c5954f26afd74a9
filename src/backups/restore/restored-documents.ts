/** Writes the documents of a backup into an empty store, and compares what the store has then. */
import { checkedCompactId } from '../../documents/compact-ids.ts'
import type {
  DocumentStore,
  OperationRecord,
  StoredDocument,
  TransactionWrite,
} from '../../documents/store.ts'
import type { LoadedState, StoreLoader } from '../../documents/store-loader.ts'
import { Fault } from '../../errors/fault.ts'
import { nextTurn } from '../../system/event-loop.ts'
import type { RecordOf } from '../../wire/files/backups.ts'
import { type BackupSource, readBase } from '../format/backup-reader.ts'
import { documentLeaf } from '../format/backup-writer.ts'
import { leafDigest, MerkleTree } from '../format/merkle-tree.ts'
import { ExpectedDocuments } from './expected-documents.ts'
import type { SelectedRestore } from './goals.ts'
import { readChanges } from './increments.ts'
import type { Progress, VerifiedSegments } from './verified-backup.ts'

/** The place that documents are restored to. */
export interface DocumentsDestination {
  load(state: LoadedState): Promise<StoreLoader>
  /** Opens the store that was loaded. */
  open(): Promise<DocumentStore>
}

export interface RestoredDocuments {
  readonly documents: number
  /** The root of the Merkle tree of all documents, as the store returns them. */
  readonly merkle: string
}

/** Rows of one transaction, and about the UTF-16 units of their texts. */
const BATCH_ROWS = 2_000
const BATCH_TEXT_UNITS = 2 * 1024 * 1024
const SCAN = { rowsMax: 1_000, textUnitsMax: 1024 * 1024 }

export interface DocumentsRestore {
  readonly source: BackupSource
  readonly selected: SelectedRestore
  readonly verified: VerifiedSegments
  readonly destination: DocumentsDestination
  readonly onProgress?: Progress
}

/** Raises PRODUCT_CORRUPT where the store has other documents then, BACKUP_CORRUPT, UNAVAILABLE. */
export async function restoreDocuments(restore: DocumentsRestore): Promise<RestoredDocuments> {
  const expected = await loadBase(restore)
  const store = await restore.destination.open()
  try {
    await applyIncrements(restore, store)
    // The stores build indexes on other threads than this one, which reads what was written.
    const [restored] = await Promise.all([readBack(store), buildIndexes(restore, store)])
    if (restored.merkle === expected.merkle && restored.documents === expected.documents) {
      return restored
    }
    const detail = `${restored.documents} restored documents differ from those of the backup`
    throw new Fault('PRODUCT_CORRUPT', { detail })
  } finally {
    await store.close()
  }
}

async function loadBase(restore: DocumentsRestore): Promise<RestoredDocuments> {
  const { source, selected, verified, destination, onProgress } = restore
  const { base } = selected.backup
  const expected = new ExpectedDocuments(verified.contents.leaves())
  const loader = await destination.load({
    sequence: base.toSequence,
    atMicros: BigInt(base.atMicros),
    shapes: verified.shapes,
  })
  let loaded = 0
  const documents = new Batches<StoredDocument>(async (batch) => {
    await loader.add(batch)
    loaded += batch.length
    onProgress?.('documents', loaded)
  })
  const operations = new Batches<OperationRecord>(async (batch) => loader.addOperations(batch))
  try {
    for await (const { record } of readBase(source, selected.backup, { isVerified: true })) {
      if (record.t === 'document') {
        const document = documentOf(record)
        expected.add(checkedCompactId(record.id), leafDigest(documentLeaf(record)))
        await documents.add(document, document.text.length)
      } else if (record.t === 'operation') {
        await operations.add(operationOf(record), record.result.length)
      }
    }
    await documents.flush()
    await operations.flush()
    await loader.finish()
  } finally {
    await loader.close()
  }
  return expected.finish()
}

async function buildIndexes(
  { verified, onProgress }: DocumentsRestore,
  store: DocumentStore,
): Promise<void> {
  let built = 0
  for (const { id } of await store.ensureIndexes(verified.indexes)) {
    await store.buildIndex(id)
    onProgress?.('indexes', ++built)
  }
}

async function applyIncrements(
  { source, selected, onProgress }: DocumentsRestore,
  store: DocumentStore,
): Promise<void> {
  const { increments, goal } = selected
  const batches = new Batches<TransactionWrite>((transactions) => store.commit({ transactions }))
  let after = store.latestSequence
  let applied = 0
  for (const sidecar of increments) {
    const changes = await readChanges(source, { sidecar, after, goal })
    for (const operation of changes.operations) {
      // A base and a catch-up have all records of operations that there were.
      if ((await store.operation(operation.id)) !== null) continue
      await batches.add(operationWrite(operation), operation.result.length)
    }
    for (const { sequence, atMicros, documents, operations } of changes.commits) {
      const writes = documents.map((record) => ({ ...writeOf(record), entries: [] }))
      const units = writes.reduce((sum, { text }) => sum + (text?.length ?? 0), 0)
      await batches.add({ sequence, atMicros, writes }, units)
      for (const operation of operations) {
        await batches.add(operationWrite(operation), operation.result.length)
      }
      after = sequence
    }
    // An operation of the next segment may be in the store only then.
    await batches.flush()
    onProgress?.('increments', ++applied)
  }
}

function operationWrite(record: RecordOf<'operation'>): TransactionWrite {
  const operation = operationOf(record)
  return { sequence: null, atMicros: operation.createdAtMicros, writes: [], operation }
}

async function readBack(store: DocumentStore): Promise<RestoredDocuments> {
  const tree = new MerkleTree()
  let documents = 0
  const snapshot = store.latestSequence
  for (let after: string | null = ''; after !== null; ) {
    const from: string = after
    const page = await store.versions({ after: from, snapshot, ...SCAN })
    for (const version of page.rows) tree.add(documentLeaf(version))
    documents += page.rows.length
    after = page.after
    await nextTurn()
  }
  return { documents, merkle: tree.root() }
}

function writeOf({ id, createdAtMicros, text }: RecordOf<'document'>) {
  return { id, createdAtMicros: BigInt(createdAtMicros), text }
}

/** A document of a base: it has a text. */
function documentOf(record: RecordOf<'document'>): StoredDocument {
  const { sequence, text } = record
  if (text === null) {
    throw new Fault('BACKUP_CORRUPT', { detail: 'a base has a deleted document' })
  }
  return { ...writeOf(record), sequence, text }
}

function operationOf(record: RecordOf<'operation'>): OperationRecord {
  const { id, fingerprint, commitSequence, releaseId, result, attempts, createdAtMicros } = record
  return {
    operationId: id,
    fingerprint: Buffer.from(fingerprint, 'base64'),
    commitSequence,
    releaseId,
    function: record.function,
    result,
    attempts,
    createdAtMicros: BigInt(createdAtMicros),
  }
}

/** Rows that are written together. */
class Batches<T> {
  readonly #write: (batch: readonly T[]) => Promise<void>
  #batch: T[] = []
  #units = 0

  constructor(write: (batch: readonly T[]) => Promise<void>) {
    this.#write = write
  }

  async add(row: T, textUnits: number): Promise<void> {
    this.#batch.push(row)
    this.#units += textUnits
    if (this.#batch.length >= BATCH_ROWS || this.#units >= BATCH_TEXT_UNITS) await this.flush()
  }

  async flush(): Promise<void> {
    const batch = this.#batch
    if (batch.length === 0) return
    this.#batch = []
    this.#units = 0
    await this.#write(batch)
  }
}
