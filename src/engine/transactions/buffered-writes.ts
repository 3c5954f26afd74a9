/** The writes of a transaction as it buffers them. */
import type { StoredDocument } from '../../documents/store.ts'
import { flatText } from '../../value/memory/flat-text.ts'
import { decodeStored, encodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import type { BufferedWrite } from '../commits/document-writes.ts'
import type { PreparedTable } from '../tables/prepared-tables.ts'

/** The version of a document at the snapshot, before this transaction wrote it. */
export interface Origin {
  readonly createdAtMicros: bigint
  readonly before: ValueObject | null
  /** Absent for a new document. */
  readonly revision?: number
}

/** A document that a write changes. */
export interface Existing {
  /** The stored fields, those that the Release does not see included. */
  readonly value: ValueObject
  readonly origin: Origin
}

/** `written` is the earlier write of the document by the transaction. */
export function existingOf(current: StoredDocument, written: BufferedWrite | undefined): Existing {
  const value = written?.after ?? (decodeStored(current.text) as ValueObject)
  const before = written === undefined ? value : written.before
  const revision = current.sequence
  return { value, origin: { createdAtMicros: current.createdAtMicros, before, revision } }
}

interface Change {
  readonly origin: Origin
  /** UTF-16 units of its text at the snapshot; 0 for a new document. */
  readonly beforeUnits: number
  /** The fields to store; null for a deletion. */
  readonly after: ValueObject | null
}

export function bufferedWrite(
  { manifest }: PreparedTable,
  id: string,
  { origin, beforeUnits, after }: Change,
): BufferedWrite {
  const { createdAtMicros, before, revision: sequence = 0 } = origin
  // Caches retain the text: as a rope it has twenty times as many objects.
  const text = after === null ? '{}' : flatText(encodeStored(after))
  const document = { id, createdAtMicros, sequence, text }
  return { id, table: manifest.name, createdAtMicros, before, beforeUnits, after, document }
}
