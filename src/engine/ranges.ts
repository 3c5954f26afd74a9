/** Ranges of an index as a runner asks for them, and which part of one was looked at. */
import { type KeyInterval, keySuccessor } from '../documents/keys.ts'
import { INVALID_CURSOR, Refusal } from './refusal.ts'

export interface RangeInput {
  readonly table: string
  /** Null walks the creation order. */
  readonly index: string | null
  /** Stored JSON as JSON.parse made it, of the first fields of the index. */
  readonly equal: readonly unknown[]
  /** Name of the bounded field; absent without bounds. */
  readonly field?: string | undefined
  readonly lower?: { readonly value: unknown; readonly inclusive: boolean } | undefined
  readonly upper?: { readonly value: unknown; readonly inclusive: boolean } | undefined
  readonly order: 'asc' | 'desc'
  readonly limit: number
  /** Continues behind this key; only keys inside the interval are accepted. */
  readonly afterKey?: string | undefined
}

export interface RangeOutput {
  /** Stored JSON of each document with its system fields. */
  readonly documents: readonly string[]
  /** Whether nothing is left in the interval. */
  readonly done: boolean
  /** Key of the last document; null where there is none. */
  readonly lastKey: string | null
}

/** Only what was looked at can conflict; `to` is null where that is the whole interval. */
export function examined(
  interval: KeyInterval,
  order: 'asc' | 'desc',
  to: string | null,
): KeyInterval {
  if (to === null) return interval
  return order === 'asc'
    ? { lower: interval.lower, upper: keySuccessor(to) }
    : { lower: to, upper: interval.upper }
}

/** What is left of the interval behind a key of it. Throws a Refusal for another key. */
export function behind(interval: KeyInterval, order: 'asc' | 'desc', key: string): KeyInterval {
  if (key < interval.lower || key >= interval.upper) {
    throw new Refusal(INVALID_CURSOR, 'the cursor belongs to another list')
  }
  return order === 'asc'
    ? { lower: keySuccessor(key), upper: interval.upper }
    : { lower: interval.lower, upper: key }
}
