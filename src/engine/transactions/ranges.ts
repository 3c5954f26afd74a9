/** Converts range requests of a runner to key intervals of a physical index. */
import { type KeyInterval, keyInterval, keySuccessor } from '../../documents/keys.ts'
import type { PhysicalIndex, StoredDocument } from '../../documents/store.ts'
import { INVALID_CURSOR, OperationError } from '../calls/operation-error.ts'
import type { PreparedTable } from '../tables/prepared-tables.ts'
import { comparedValue, fieldValue } from './checked-fields.ts'

export interface RangeInput {
  readonly table: string
  /** Null for the creation order. */
  readonly index: string | null
  /** Parsed stored JSON, or `{ $u: '' }` for an absent field, for the first fields of the index. */
  readonly equal: readonly unknown[]
  /** Name of the bounded field; absent without bounds. */
  readonly field?: string | undefined
  readonly lower?: { readonly value: unknown; readonly inclusive: boolean } | undefined
  readonly upper?: { readonly value: unknown; readonly inclusive: boolean } | undefined
  readonly order: 'asc' | 'desc'
  readonly limit: number
  /** UTF-16 units of the texts after which the range ends, with the document that reaches them. */
  readonly textUnitsMax?: number | undefined
  /** Continues after this key, which must lie inside the interval. */
  readonly afterKey?: string | undefined
  /** Ends with this key, which must lie inside the interval. */
  readonly untilKey?: string | undefined
}

export interface RangeOutput {
  readonly documents: readonly StoredDocument[]
  /** True if the end of the interval was reached. */
  readonly done: boolean
  /** Key of the last document; null if there is none. */
  readonly lastKey: string | null
}

/**
 * Returns the part of the interval up to the key `to` that a read scanned, which is all that can
 * conflict. `to` is null if it scanned the whole interval.
 */
export function scannedPart(
  interval: KeyInterval,
  order: 'asc' | 'desc',
  to: string | null,
): KeyInterval {
  if (to === null) return interval
  return order === 'asc'
    ? { lower: interval.lower, upper: keySuccessor(to) }
    : { lower: to, upper: interval.upper }
}

/** Returns the rest of the interval after one of its keys. Throws OperationError for other keys. */
export function intervalAfter(
  interval: KeyInterval,
  order: 'asc' | 'desc',
  key: string,
): KeyInterval {
  requireInside(interval, key)
  return order === 'asc'
    ? { lower: keySuccessor(key), upper: interval.upper }
    : { lower: interval.lower, upper: key }
}

/** Returns the interval up to one of its keys, inclusive. Throws OperationError for other keys. */
function intervalUntil(interval: KeyInterval, order: 'asc' | 'desc', key: string): KeyInterval {
  requireInside(interval, key)
  return order === 'asc'
    ? { lower: interval.lower, upper: keySuccessor(key) }
    : { lower: key, upper: interval.upper }
}

function requireInside({ lower, upper }: KeyInterval, key: string): void {
  if (key >= lower && key < upper) return
  throw new OperationError(INVALID_CURSOR, 'the cursor belongs to another list')
}

/** Returns the index by its name. Throws OperationError where the table does not have it. */
export function namedIndex(table: PreparedTable, name: string | null): PhysicalIndex {
  if (name === null) return table.creationOrder
  const index = table.indexes.get(name)
  if (index === undefined) {
    const known = [...table.indexes.keys()].join(', ') || 'none'
    throw new OperationError(
      'TypeError',
      `table "${table.manifest.name}" has no index "${name.slice(0, 64)}" (it has: ${known})`,
    )
  }
  return index.physical
}

/** Returns the requested interval. Throws OperationError for bounds that do not fit the index. */
export function intervalOf(
  table: PreparedTable,
  physical: PhysicalIndex,
  input: RangeInput,
): KeyInterval {
  const { fields } = physical
  if (input.equal.length > fields.length) {
    throw new OperationError('TypeError', `the index has ${fields.length} fields to compare`)
  }
  const equals = input.equal.map((json, i) => comparedValue(table, fields[i]!, json))
  const bounded = fields[equals.length] ?? '_createdAt'
  if (input.field !== undefined && input.field !== bounded) {
    throw new OperationError(
      'TypeError',
      `the next field of the index is "${bounded}", not "${input.field.slice(0, 64)}"`,
    )
  }
  const bound = (side: RangeInput['lower']) =>
    side && { value: fieldValue(table, bounded, side.value), inclusive: side.inclusive }
  const lower = bound(input.lower)
  const upper = bound(input.upper)
  const { order, afterKey, untilKey } = input
  const whole = keyInterval(physical, {
    equals,
    ...(lower && { lower }),
    ...(upper && { upper }),
  })
  const interval = untilKey === undefined ? whole : intervalUntil(whole, order, untilKey)
  return afterKey === undefined ? interval : intervalAfter(interval, order, afterKey)
}
