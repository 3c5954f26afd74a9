/**
 * The documents that the server sent. Those that it says are kept for the calls that come: a number
 * stands for one that is here. What the code of a Function gets is a copy, which is its own to
 * change; a copy that it returns unchanged is named to the server instead of being sent back.
 */
import type { Codec } from './codec.ts'

/** What one call was handed. */
export interface Handed {
  /** Documents of all its replies so far. */
  count: number
  /** The first of them, with their place among all. */
  readonly copies: Map<object, { readonly place: number; readonly kept: object }>
}

/** As they come: the number of one that is here, or Stored JSON as JSON.parse made it. */
export type SentItem = number | object | readonly [kept: object]

type Fields = Record<string, unknown>

/** Copies of documents, and whether the code of a Function left one as it was. */
export function makeCopying() {
  const { getPrototypeOf, hasOwn, keys } = Object
  const { isArray } = Array

  function copyOf(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value
    if (isArray(value)) {
      const copy: unknown[] = []
      for (let i = 0; i < value.length; i++) copy[i] = copyOf(value[i])
      return copy
    }
    if (value instanceof Uint8Array) return value.slice()
    const copy: Fields = {}
    for (const name of keys(value)) copy[name] = copyOf((value as Fields)[name])
    return copy
  }

  function isSame(copy: unknown, original: unknown): boolean {
    if (typeof original !== 'object' || original === null) return copy === original
    if (typeof copy !== 'object' || copy === null) return false
    if (getPrototypeOf(copy) !== getPrototypeOf(original)) return false
    if (isArray(original)) return isArray(copy) && isSameList(copy, original)
    return !(original instanceof Uint8Array) && isSameObject(copy, original)
  }

  function isSameList(copy: readonly unknown[], original: readonly unknown[]): boolean {
    if (copy.length !== original.length) return false
    for (let i = 0; i < copy.length; i++) if (!isSame(copy[i], original[i])) return false
    return true
  }

  function isSameObject(copy: object, original: object): boolean {
    let names = 0
    for (const name in copy) {
      // A name that is not the original's reads as undefined there, and may be that here.
      if (!hasOwn(original, name)) return false
      if (!isSame((copy as Fields)[name], (original as Fields)[name])) return false
      names += 1
    }
    for (const _ in original) names -= 1
    return names === 0
  }

  return { copyOf, isSameObject }
}

export function makeDocuments(
  decode: Codec['decode'],
  { copyOf, isSameObject }: ReturnType<typeof makeCopying>,
  copiesMax: number,
) {
  const { isArray } = Array
  interface Received {
    readonly document: object
    /** Whether no field holds an object. */
    readonly isFlat: boolean
  }
  let kept = new Map<number, Received>()
  let first = 1
  let next = 1

  function decoded(item: object): Received {
    const document = decode(item) as Fields
    let isFlat = true
    for (const name in document) {
      if (typeof document[name] === 'object' && document[name] !== null) isFlat = false
    }
    return { document, isFlat }
  }

  function found(item: SentItem): Received {
    if (typeof item === 'number') return kept.get(item)!
    if (!isArray(item)) return decoded(item)
    const entry = decoded(item[0])
    kept.set(next++, entry)
    return entry
  }

  return {
    /** Keeps what is to be kept, for a call or for none; answers the call's copies. */
    receive(items: readonly SentItem[], handed: Handed | null): unknown[] {
      const copies: unknown[] = []
      for (let i = 0; i < items.length; i++) {
        const { document, isFlat } = found(items[i]!)
        if (handed === null) continue
        const copy = (isFlat ? { ...document } : copyOf(document)) as object
        copies[i] = copy
        if (handed.count < copiesMax)
          handed.copies.set(copy, { place: handed.count, kept: document })
        handed.count += 1
      }
      return copies
    },
    /** Those with a smaller number are not named again. */
    forget(before: number): void {
      for (; first < before; first++) kept.delete(first)
      // The table of this one would lead a collection to all tables behind it.
      kept = new Map(kept)
    },
    /** JSON text that stands for a copy; null for all that is none, or was changed. */
    nameOf({ copies }: Handed, value: object): string | null {
      const found = copies.get(value)
      if (found === undefined || !isSameObject(value, found.kept)) return null
      return `{"$r":${found.place}}`
    },
  }
}
