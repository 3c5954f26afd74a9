/** Values of columns that both databases store in the same form. */
import { assert } from '../errors/assert.ts'

/** Converts a time for a column of integers. Asserts that it fits into 53 bits. */
export function microsColumn(micros: bigint): number {
  const number = Number(micros)
  assert(Number.isSafeInteger(number), 'a time is outside of 53 bits')
  return number
}
