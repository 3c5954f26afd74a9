/** Reads columns as the driver returns them (bigint as text, bytea as Buffer), with assertions. */
import type { RawRow } from '../../database/connection.ts'
import { assert } from '../../errors/assert.ts'
import type { StoredDocument } from '../store.ts'

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

/** Reads a version; null for a tombstone. */
export function storedDocument(row: RawRow): StoredDocument | null {
  const content = nullableText(row, 'text')
  if (content === null) return null
  const createdAtMicros = BigInt(number(row, 'created_at_micros'))
  const sequence = number(row, 'sequence')
  return { id: text(row, 'id'), createdAtMicros, sequence, text: content }
}
