/** The options of a transaction, and the versions that its writes start from. */
import type { DocumentStore } from '../../documents/store.ts'
import type { ValueObject } from '../../value/values.ts'
import type { PendingCommits } from '../commits/pending-commits.ts'
import type { TableSource } from './transaction-tables.ts'

export interface TransactionOptions {
  readonly store: DocumentStore
  /** The tables that it may read or write. */
  readonly release: TableSource
  readonly snapshot: number
  /** The pending commits up to the snapshot; null where all commits are durable. */
  readonly pending: PendingCommits | null
  /** The time of the invocation, which is the creation time of the documents that it inserts. */
  readonly nowMicros: bigint
  /** The seed of the invocation, hexadecimal. */
  readonly seed: string
  readonly writable: boolean
  /** Whether it belongs to the server, which alone writes system tables; false if absent. */
  readonly isSystem?: boolean
}

/** The version of a document at the snapshot, before this transaction wrote it. */
export interface Origin {
  readonly createdAtMicros: bigint
  readonly before: ValueObject | null
  /** Absent for a new document. */
  readonly revision?: number
}

/** The fields that a patch sets and removes. */
export interface Patch {
  readonly fields: unknown
  readonly removed: readonly string[]
}

export interface Existing {
  readonly value: ValueObject
  readonly origin: Origin
}
