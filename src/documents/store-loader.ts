/**
 * The port by which a restore fills an empty store with the state of one sequence. Versions are not
 * in the order of their commits, and no index has entries yet: the caller opens the store
 * afterwards, and builds the indexes there.
 */
import type { MaybePromise } from '../system/maybe-promise.ts'
import type { FieldShape } from '../value/schema/field-shapes.ts'
import type { OperationRecord, StoredDocument } from './store.ts'

export interface LoadedState {
  /** The sequence of the state: no document has a later one. */
  readonly sequence: number
  readonly atMicros: bigint
  readonly shapes: ReadonlyMap<string, FieldShape>
}

/** Raises UNAVAILABLE, and PRODUCT_CORRUPT for rows that the store would not have written. */
export interface StoreLoader {
  /** Adds documents in the order of the stored bytes of their IDs. */
  add(documents: readonly StoredDocument[]): MaybePromise<void>
  addOperations(records: readonly OperationRecord[]): MaybePromise<void>
  /** Makes everything durable as the state of the sequence. */
  finish(): MaybePromise<void>
  close(): Promise<void>
}
