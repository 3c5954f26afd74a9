/**
 * The port of the multi-version document store. Every version of a document has the sequence of the
 * commit that wrote it, and a read names the snapshot that it sees. The engine decides which reads
 * are allowed, which index keys a document has, and which sequence a commit gets.
 */
import type { MaybePromise } from '../system/maybe-promise.ts'
import type { FieldShape } from '../value/schema/field-shapes.ts'

export interface StoredDocument {
  readonly id: string
  readonly createdAtMicros: bigint
  /** Sequence of the commit that wrote this version: `_revision`. */
  readonly sequence: number
  /** Stored JSON of the author's fields, as it was written. */
  readonly text: string
}

export interface KeyedDocument {
  /** Key of the document in the index that was read, a binary string (keys.ts). */
  readonly key: string
  /**
   * An object that is shared while the version is cached, so that derived values can be cached too.
   */
  readonly document: StoredDocument
}

export interface RangeRequest {
  readonly index: number
  /** Inclusive, a binary string. */
  readonly lower: string
  /** Exclusive, a binary string; KEY_END for no bound. */
  readonly upper: string
  readonly order: 'asc' | 'desc'
  /** 1 or more. */
  readonly limit: number
  /** The range ends with the document at which the texts have this many UTF-16 units in total. */
  readonly textUnitsMax: number
  readonly snapshot: number
}

export interface RangeResult {
  /** Documents in the order of the request. */
  readonly documents: readonly KeyedDocument[]
  /**
   * True if the range was read to its end. Otherwise reading stopped after the last document, so a
   * read set ends there.
   */
  readonly exhausted: boolean
}

export interface IndexDefinition {
  readonly table: string
  /** Names of top-level fields; empty for the index in creation order, which every table has. */
  readonly fields: readonly string[]
  /**
   * Stored JSON of the value that an absent field has, or null, one for each field. Absent if no
   * field has a default.
   */
  readonly defaults?: readonly (string | null)[] | undefined
}

/** An index of the store. Every Release that declares its definition shares it. */
export interface PhysicalIndex extends IndexDefinition {
  /** 1 or more, never reused. */
  readonly id: number
  /** Commits maintain a building index, but it cannot be read yet. */
  readonly state: 'building' | 'ready'
}

export interface IndexRow extends IndexDefinition {
  readonly id: number
  readonly state: 'building' | 'ready' | 'dropped'
  /** The oldest snapshot that can read the index; null unless it is ready. */
  readonly readySequence: number | null
}

/** The indexes of a store, and the fields of its tables. */
export interface StoreSchema {
  /** All indexes, those that are being removed included. */
  readonly indexes: readonly IndexRow[]
  readonly shapes: ReadonlyMap<string, FieldShape>
  /** The field names of each table that have a code in stored texts. */
  readonly names: ReadonlyMap<string, readonly string[]>
}

/** A key that a document gets (`live`) or loses in an index. An unchanged key has no entry. */
export interface EntryWrite {
  readonly index: number
  readonly key: string
  readonly live: boolean
}

export interface DocumentWrite {
  readonly id: string
  readonly createdAtMicros: bigint
  /** Stored JSON; null deletes the document. */
  readonly text: string | null
  /** Changes of every index of the table at the time of `commit`, building ones included. */
  readonly entries: readonly EntryWrite[]
}

/** The idempotency record of a Mutation, which holds the result for a repeated call. */
export interface OperationRecord {
  readonly operationId: string
  /** Digest of everything that a repeated call must have in common with the first one. */
  readonly fingerprint: Uint8Array
  /** Null for a Mutation that wrote nothing. */
  readonly commitSequence: number | null
  readonly releaseId: string
  readonly function: string
  /** Tagged JSON. */
  readonly result: string
  readonly attempts: number
  readonly createdAtMicros: bigint
}

export interface TransactionWrite {
  /** Greater than all sequences before; null if only an operation is recorded. */
  readonly sequence: number | null
  readonly atMicros: bigint
  /** Writes, at most one per document. Empty if `sequence` is null. */
  readonly writes: readonly DocumentWrite[]
  readonly operation?: OperationRecord
}

export interface CommitBatch {
  readonly transactions: readonly TransactionWrite[]
  /**
   * Called if the reply was lost and the database cannot be queried for the outcome yet. The commit
   * continues until the outcome is known.
   */
  readonly onUnreachable?: (() => void) | undefined
}

export interface PruneRequest {
  /** The oldest snapshot in use. */
  readonly oldestSnapshot: number
  /** Versions that were replaced after this time are kept even if no snapshot in use sees them. */
  readonly beforeMicros: bigint
  /** Operation records from before this time are removed. */
  readonly operationsBeforeMicros: bigint
  /** Rows that one call may read. It bounds how long commits wait for the call. */
  readonly rowsMax: number
}

export interface PruneResult {
  readonly removed: number
  /** True if another call may remove more. */
  readonly more: boolean
}

/** A page of what a snapshot has, for a backup. */
export interface ScanRequest {
  /** `ScanPage.after` of the page before; empty for the first page. */
  readonly after: string
  readonly snapshot: number
  /** Most documents, or operation records, that the page looks at. A page may look at fewer. */
  readonly rowsMax: number
  /** The page ends with the text at which all texts have about this many UTF-16 units. */
  readonly textUnitsMax: number
}

/** A page of what was stored after a sequence, for a backup that has everything before it. */
export interface ChangesRequest extends ScanRequest {
  /** The newest sequence that the backup has. The state that a loader stored is not after it. */
  readonly above: number
}

/** The newest version of a document at a snapshot. */
export interface DocumentVersion extends Omit<StoredDocument, 'text'> {
  /** Null for a tombstone. */
  readonly text: string | null
}

export interface ScanPage<T> {
  readonly rows: readonly T[]
  /** The place at which the next page begins; null if this is the last page. */
  readonly after: string | null
}

export interface ChangesPage extends ScanPage<DocumentVersion> {
  /** False if retention may have removed tombstones of sequences after `above`. */
  readonly hasTombstones: boolean
}

export type StoreStatus =
  | { readonly state: 'open' }
  /** It accepts no commits. Open it again to find out what is stored. */
  | { readonly state: 'failed'; readonly detail: string }
  | { readonly state: 'closed' }

/**
 * The document store. Reads of an embedded store return their result at once, those of a remote
 * store a promise. Every method raises UNAVAILABLE where the store cannot be used and
 * PRODUCT_CORRUPT where stored data breaks an invariant. Sequences are safe integers; 0 is the
 * snapshot of an empty store.
 */
export interface DocumentStore {
  readonly status: StoreStatus

  /** The newest durable sequence: the snapshot of a new invocation. */
  readonly latestSequence: number

  /** Reads the newest version at or before the snapshot; null if there is none or it is deleted. */
  read(id: string, snapshot: number): MaybePromise<StoredDocument | null>

  /** The version that the snapshot sees, if it is cached. */
  findCached(id: string, snapshot: number): StoredDocument | undefined

  /** Reads as `read` does where that takes no round trip; undefined where it would. */
  readAtOnce(id: string, snapshot: number): StoredDocument | null | undefined

  /** Reads a range. The index must be ready at the snapshot; a dropped one raises UNAVAILABLE. */
  range(request: RangeRequest): MaybePromise<RangeResult>

  operation(operationId: string): MaybePromise<OperationRecord | null>

  /**
   * Reads the newest version of each document at the snapshot, in the order of the stored bytes of
   * the IDs, which is the same in every store.
   */
  versions(request: ScanRequest): MaybePromise<ScanPage<DocumentVersion>>

  /**
   * Reads the records of operations that committed at or before the snapshot, or wrote nothing. The
   * pages end however fast records are added meanwhile, which they may leave out.
   */
  operations(request: ScanRequest): MaybePromise<ScanPage<OperationRecord>>

  /**
   * Reads the newest version at the snapshot, or the tombstone, of each document that was written
   * after `above`, those that were stored last first. The cost is that of what was stored since. A
   * document may come more than once. Returns null if the store does not know its changes that far
   * back.
   */
  changedVersions(request: ChangesRequest): MaybePromise<ChangesPage | null>

  /**
   * Reads the records of operations that committed after `above`, up to the snapshot, and of those
   * that wrote nothing and were stored after the last one that committed at or before `above`. The
   * last one that was stored comes first. A few older ones that wrote nothing may follow.
   */
  newOperations(request: ChangesRequest): MaybePromise<ScanPage<OperationRecord>>

  /**
   * Makes all transactions durable together, or none. Batches become durable in the order of the
   * calls. Raises UNAVAILABLE where nothing was stored. Raises RESULT_UNCERTAIN where that is
   * unknown until the store is opened again; then the store has failed.
   */
  commit(batch: CommitBatch): Promise<void>

  /** Every index that commits have to maintain, in the order of their IDs. */
  listIndexes(): readonly PhysicalIndex[]

  /** Returns the index of each definition, in that order. A new one is durable and building. */
  ensureIndexes(definitions: readonly IndexDefinition[]): Promise<readonly PhysicalIndex[]>

  /**
   * Fills a building index in chunks, between which commits run, and makes it ready for snapshots
   * from then on. Call it only after every batch whose entries were computed without this index was
   * passed to `commit`. Raises LIMIT_EXCEEDED where the key of a document is too long: then drop
   * the index.
   */
  buildIndex(index: number): Promise<void>

  /** Drops an index. `prune` removes its entries. */
  dropIndex(index: number): Promise<void>

  /** The fields that documents of each table may have. A table without a shape has no documents. */
  fieldShapes(): ReadonlyMap<string, FieldShape>

  /**
   * Makes the shapes of these tables durable in place of the earlier ones. After UNAVAILABLE they
   * may be stored or not, so the caller repeats it.
   */
  setFieldShapes(shapes: ReadonlyMap<string, FieldShape>): Promise<void>

  /** The indexes and the field shapes, for a store that follows this one in another process. */
  schema(): StoreSchema

  /** Calls `listener` after each change of `schema`, before a commit that depends on it. */
  onSchemaChange(listener: () => void): void

  /**
   * Removes versions, tombstones and entries that no snapshot at or after the horizon sees. The
   * horizon only moves forward; from then on a read before it raises UNAVAILABLE.
   */
  prune(request: PruneRequest): Promise<PruneResult>

  /** Drops what is cached of documents that can be read again without a round trip. */
  trim(): void

  /** Waits for the pending batches, then closes the store. */
  close(): Promise<void>
}

/** The documents of the newest sequence of a store, for a backup. */
export type DocumentsSnapshot = Pick<
  DocumentStore,
  'latestSequence' | 'versions' | 'operations' | 'schema'
>
