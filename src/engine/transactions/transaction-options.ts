/** The snapshot, the tables and the rights of one transaction. */
import type { DocumentStore } from '../../documents/store.ts'
import type { PendingCommits } from '../commits/pending-commits.ts'
import type { TableSource } from './transaction-tables.ts'

export interface TransactionOptions {
  readonly store: DocumentStore
  /** The tables that it may read or write. */
  readonly release: TableSource
  readonly snapshot: number
  /** The pending commits up to the snapshot; null if all commits are durable. */
  readonly pending: PendingCommits | null
  /** The time of the invocation, which is the creation time of the documents that it inserts. */
  readonly nowMicros: bigint
  /** The seed of the invocation, hexadecimal. */
  readonly seed: string
  readonly writable: boolean
  /** True if it belongs to the server, which alone writes system tables; false if absent. */
  readonly isSystem?: boolean
}
