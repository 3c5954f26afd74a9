/** Values between bounds: numbers, and the lengths of strings and bytes. */
import { INT64_MAX, INT64_MIN } from '../../../value/values.ts'

/** Both ends included; null stands for no bound. */
export interface Interval<T extends number | bigint> {
  readonly minimum: T | null
  readonly maximum: T | null
}

/**
 * Returns the first value of the interval that no other interval covers; null if they cover it.
 * `after` returns the value that follows another one.
 */
export function firstUncovered<T extends number | bigint>(
  whole: Interval<T>,
  covering: readonly Interval<T>[],
  { lowest, highest, after }: Pick<Order<T>, 'lowest' | 'highest' | 'after'>,
): T | null {
  const end = whole.maximum ?? highest
  let next = whole.minimum ?? lowest
  if (next > end) return null
  const sorted = covering.toSorted((a, b) => {
    const [x, y] = [a.minimum ?? lowest, b.minimum ?? lowest]
    return x < y ? -1 : x > y ? 1 : 0
  })
  for (const each of sorted) {
    if ((each.minimum ?? lowest) > next) return next
    const last = each.maximum ?? highest
    if (last < next) continue
    if (last >= end) return null
    next = after(last)
  }
  return next
}

/**
 * Returns a value of the interval that no other interval covers, one that people read easily where
 * there is a choice; null if they cover it.
 */
export function exampleUncovered<T extends number | bigint>(
  whole: Interval<T>,
  covering: readonly Interval<T>[],
  { lowest, highest, after, one, zero }: Order<T>,
): T | null {
  const first = firstUncovered(whole, covering, { lowest, highest, after })
  if (first === null) return null
  if (first > (whole.minimum ?? lowest)) return first
  const starts = covering.flatMap(({ minimum }) =>
    minimum !== null && minimum > first ? [minimum] : [],
  )
  const next = starts.reduce<T | null>((a, b) => (a === null || b < a ? b : a), null)
  if (next === null) return closestToZero(whole, zero)
  const last = (next - (one as never)) as T
  const end = whole.maximum ?? highest
  if (last < first) return first
  return last < end ? last : end
}

/** The properties in which integers, float64 and lengths differ. */
export interface Order<T extends number | bigint> {
  readonly lowest: T
  readonly highest: T
  readonly after: (value: T) => T
  readonly one: T
  readonly zero: T
}

export const INTEGERS: Order<bigint> = {
  lowest: INT64_MIN,
  highest: INT64_MAX,
  after: (value) => value + 1n,
  one: 1n,
  zero: 0n,
}
export const FLOATS: Order<number> = {
  lowest: -Number.MAX_VALUE,
  highest: Number.MAX_VALUE,
  after: nextFloat,
  one: 1,
  zero: 0,
}
export const LENGTHS: Order<number> = {
  lowest: 0,
  highest: Infinity,
  after: (length) => length + 1,
  one: 1,
  zero: 0,
}

/** Returns whether the intervals have a value in common. */
export function overlap<T extends number | bigint>(one: Interval<T>, other: Interval<T>): boolean {
  const isBelow = (a: Interval<T>, b: Interval<T>) =>
    a.maximum !== null && b.minimum !== null && a.maximum < b.minimum
  return !isBelow(one, other) && !isBelow(other, one)
}

/** Returns the value of the interval that is closest to zero. */
export function closestToZero<T extends number | bigint>(
  { minimum, maximum }: Interval<T>,
  zero: T,
): T {
  if (minimum !== null && minimum > zero) return minimum
  if (maximum !== null && maximum < zero) return maximum
  return zero
}

const FLOAT = new Float64Array(1)
const BITS = new BigInt64Array(FLOAT.buffer)

/** Returns the next greater finite float64. */
function nextFloat(value: number): number {
  FLOAT[0] = value === 0 ? 0 : value
  BITS[0]! += value >= 0 ? 1n : -1n
  return FLOAT[0]!
}
