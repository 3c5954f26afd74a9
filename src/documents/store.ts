/**
 * The port of the multi-versioned document store: every version of a document has the sequence of
 * the commit that wrote it, and a read names the snapshot that it sees. Who may read, what an index
 * key is made of a document for and which commit gets which sequence is the engine's business.
 */
import type { MaybePromise } from '../system/maybe-promise.ts'

export interface StoredDocument {
  readonly id: string
  readonly createdAtMicros: bigint
  /** The commit that wrote this version: `_revision`. */
  readonly sequence: number
  /** Stored JSON of the user's fields, as it was written. */
  readonly text: string
}

export interface KeyedDocument {
  /** Of the document in the index that was read, as a binary string (keys.ts). */
  readonly key: string
  /** One object a version while it stays in memory: what is made of it can be kept beside it. */
  readonly document: StoredDocument
}

export interface RangeRequest {
  readonly index: number
  /** Inclusive, a binary string. */
  readonly lower: string
  /** Exclusive, a binary string; KEY_END where there is no bound. */
  readonly upper: string
  readonly order: 'asc' | 'desc'
  /** 1 or more. */
  readonly limit: number
  /** The walk ends with the document whose text reaches this sum of UTF-16 units. */
  readonly textUnitsMax: number
  readonly snapshot: number
}

export interface RangeResult {
  /** In key order, or its reverse. */
  readonly documents: readonly KeyedDocument[]
  /**
   * Whether the walk passed the end of the interval. Otherwise nothing beyond the last document
   * was looked at, so a read set ends there.
   */
  readonly exhausted: boolean
}

export interface IndexDefinition {
  readonly table: string
  /** Names of top-level fields; empty for the creation order, which every table has. */
  readonly fields: readonly string[]
}

/** One per table and field list, shared by every Release that declares it. */
export interface PhysicalIndex extends IndexDefinition {
  /** 1 or more, never used again. */
  readonly id: number
  /** A building index is kept by commits and cannot be read yet. */
  readonly state: 'building' | 'ready'
}

/** A key that a document gets (`live`) or loses in an index. A key that stays has no entry. */
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
  /** For every index of the table that exists when `commit` is called, building ones too. */
  readonly entries: readonly EntryWrite[]
}

/** What a repeated Mutation is answered from. */
export interface OperationRecord {
  readonly operationId: string
  /** Digest of everything that a repeat must have in common. */
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
  /** Greater than every one before it; null where nothing but an operation is recorded. */
  readonly sequence: number | null
  readonly atMicros: bigint
  /** At most one of a document. Empty where `sequence` is null. */
  readonly writes: readonly DocumentWrite[]
  readonly operation?: OperationRecord
}

export interface CommitBatch {
  readonly transactions: readonly TransactionWrite[]
}

export interface PruneRequest {
  /** The oldest snapshot that anybody still reads at. */
  readonly oldestSnapshot: number
  /** Versions that were replaced after this time are kept even if nobody reads them. */
  readonly beforeMicros: bigint
  /** Operation records of before this time are forgotten. */
  readonly operationsBeforeMicros: bigint
  /** Rows that one call may look at: it bounds how long commits wait behind it. */
  readonly rowsMax: number
}

export interface PruneResult {
  readonly removed: number
  /** Whether another call would find more to do. */
  readonly more: boolean
}

export type StoreStatus =
  | { readonly state: 'open' }
  /** It takes no commit any more; only opening it again settles what is stored. */
  | { readonly state: 'failed'; readonly detail: string }
  | { readonly state: 'closed' }

/**
 * Reads of an embedded store answer at once, those of a remote one in a promise.
 * Every method raises UNAVAILABLE where the store cannot answer and PRODUCT_CORRUPT where what is
 * stored breaks an invariant. Sequences are safe integers; 0 is the snapshot of an empty store.
 */
export interface DocumentStore {
  readonly status: StoreStatus

  /** The newest durable sequence: the snapshot of a new invocation. */
  readonly latestSequence: number

  /** The newest version at or before the snapshot; null where there is none or it is deleted. */
  read(id: string, snapshot: number): MaybePromise<StoredDocument | null>

  /** The version that the snapshot sees, where it is in memory. */
  remembered(id: string, snapshot: number): StoredDocument | undefined

  /** The index must be ready, and have been so at the snapshot. A dropped one is UNAVAILABLE. */
  range(request: RangeRequest): MaybePromise<RangeResult>

  operation(operationId: string): MaybePromise<OperationRecord | null>

  /**
   * Makes all transactions durable together, or none; batches become durable in the order of the
   * calls. UNAVAILABLE means that nothing was stored. RESULT_UNCERTAIN means that it cannot be
   * known before the store is opened again; then the store has failed.
   */
  commit(batch: CommitBatch): Promise<void>

  /** Every index that commits have to keep, in the order of their IDs. */
  listIndexes(): readonly PhysicalIndex[]

  /** The index of each definition, in that order; a new one is durable, and building. */
  ensureIndexes(definitions: readonly IndexDefinition[]): Promise<readonly PhysicalIndex[]>

  /**
   * Fills a building index in chunks, between which commits run, and makes it ready for snapshots
   * from then on. Call it only when every batch whose entries were computed without this index was
   * handed to `commit`. LIMIT_EXCEEDED where a document's key is too long: drop the index then.
   */
  buildIndex(index: number): Promise<void>

  /** Forgets an index; `prune` removes its entries. */
  dropIndex(index: number): Promise<void>

  /**
   * Removes versions, tombstones and entries that no snapshot at or after the horizon can see. The
   * horizon only moves forward; from then on a read before it is UNAVAILABLE.
   */
  prune(request: PruneRequest): Promise<PruneResult>

  /** Waits for the batches that were handed in. */
  close(): Promise<void>
}
