/** Reads columns as the driver returns them (bigint as text, bytea as Buffer), with assertions. */
import type { RawRow } from '../../database/connection.ts'
import { assert } from '../../errors/assert.ts'
import { ULID_BYTES, ulidMicros } from '../compact-ids.ts'
import type { CompactTexts } from '../compact-texts.ts'
import type { StoredDocument } from '../store.ts'

/** Bytes of the end that follows the key of an entry that is no longer in use. */
export const END_BYTES = 8

export function text(row: RawRow, column: string): string {
  const value = row[column]
  assert(typeof value === 'string', `the column ${column} is not text`)
  return value
}

export function nullableText(row: RawRow, column: string): string | null {
  return row[column] === null ? null : text(row, column)
}

export function bytes(row: RawRow, column: string): Buffer {
  const value = row[column]
  assert(Buffer.isBuffer(value), `the column ${column} has no bytes`)
  return value
}

/** Reads an integer, or a bigint that fits into 53 bits. */
export function number(row: RawRow, column: string): number {
  const value = Number(row[column])
  assert(
    row[column] !== null && Number.isSafeInteger(value),
    `the column ${column} is not an integer`,
  )
  return value
}

export function nullableNumber(row: RawRow, column: string): number | null {
  return row[column] === null ? null : number(row, column)
}

export interface RowContext {
  readonly texts: CompactTexts
  readonly table: string
  readonly id: string
  /** Ends with the ULID of the ID. */
  readonly bytes: Uint8Array
}

/** Reads a version; null for a tombstone. */
export function storedDocument(
  row: RawRow,
  { texts, table, id, bytes }: RowContext,
): StoredDocument | null {
  const stored = nullableText(row, 'text')
  if (stored === null) return null
  const micros =
    nullableNumber(row, 'created_at_micros') ?? ulidMicros(bytes, bytes.length - ULID_BYTES)
  const createdAtMicros = BigInt(micros)
  return {
    id,
    createdAtMicros,
    sequence: number(row, 'sequence'),
    text: texts.expand(table, stored),
  }
}
