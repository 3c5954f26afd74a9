/**
 * The documents that the server sent. Those that it marks are kept for later calls, and from then
 * on a number stands for them. The code of a Function is given copies, which it may change; a copy
 * that it returns unchanged is named to the server instead of being sent back.
 */
import { NAMED_DOCUMENTS_MAX } from '../protocol/messages.ts'
import { decode } from './decoding.ts'

/** The copies that one call received. */
export interface DeliveredDocuments {
  /** Count of the documents in all replies so far. */
  count: number
  /**
   * The first copies and placeholders, each with its index among all documents. The original of a
   * placeholder is null.
   */
  readonly copies: Map<object, { readonly index: number; readonly original: object | null }>
}

/**
 * A document as the server sends it: the number of one that is kept, or Stored JSON as JSON.parse
 * made it, inside an array if it is to be kept. A string stands for a placeholder: the ID of a
 * prefetched document, otherwise empty.
 */
export type SentItem = number | string | object | readonly [kept: object]

type Fields = Record<string, unknown>

interface Received {
  readonly document: object
  /** True if no field holds an object. */
  readonly isFlat: boolean
}

const { getPrototypeOf, hasOwn, keys } = Object
const { isArray } = Array

export class ReceivedDocuments {
  #kept = new Map<number, Received>()
  #first = 1
  #next = 1

  /**
   * Caches the marked documents. Returns copies and placeholders for the call, or an empty list if
   * it is null.
   */
  receive(
    items: readonly SentItem[],
    delivered: DeliveredDocuments | null,
    newPlaceholder: () => object,
  ): unknown[] {
    const copies: unknown[] = []
    for (let i = 0; i < items.length; i++) {
      const item = items[i]!
      if (typeof item === 'string') {
        if (delivered !== null) copies[i] = addPlaceholder(delivered, newPlaceholder())
        continue
      }
      const { document, isFlat } = this.#find(item)
      if (delivered === null) continue
      const copy = (isFlat ? { ...document } : copyOf(document)) as object
      copies[i] = copy
      if (delivered.count < NAMED_DOCUMENTS_MAX) {
        delivered.copies.set(copy, { index: delivered.count, original: document })
      }
      delivered.count += 1
    }
    return copies
  }

  #find(item: Exclude<SentItem, string>): Received {
    if (typeof item === 'number') return this.#kept.get(item)!
    if (!isArray(item)) return decodeDocument(item)
    const received = decodeDocument(item[0])
    this.#kept.set(this.#next++, received)
    return received
  }

  /** Removes documents with a number below `before`, which the server does not name again. */
  forget(before: number): void {
    for (; this.#first < before; this.#first++) this.#kept.delete(this.#first)
    // The table of a Map leads a collection to all tables that replaced it.
    this.#kept = new Map(this.#kept)
  }
}

/** The documents of this realm. */
export const documents = new ReceivedDocuments()

/** JSON text that stands for a copy; null for other objects, and for a copy that was changed. */
export function nameOfCopy({ copies }: DeliveredDocuments, value: object): string | null {
  const found = copies.get(value)
  if (found === undefined || found.original === null) return null
  return isSameObject(value, found.original) ? `{"$r":${found.index}}` : null
}

/** JSON text that stands for a placeholder of the call; null for other objects. */
export function nameOfPlaceholder({ copies }: DeliveredDocuments, value: object): string | null {
  const found = copies.get(value)
  return found?.original === null ? `{"$r":${found.index}}` : null
}

/** Makes the placeholder known to the call. Returns it. */
function addPlaceholder(delivered: DeliveredDocuments, placeholder: object): object {
  delivered.copies.set(placeholder, { index: delivered.count, original: null })
  delivered.count += 1
  return placeholder
}

function decodeDocument(item: object): Received {
  const document = decode(item) as Fields
  let isFlat = true
  for (const name in document) {
    if (typeof document[name] === 'object' && document[name] !== null) isFlat = false
  }
  return { document, isFlat }
}

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
    // A name that the original lacks reads as undefined there, and may be undefined here.
    if (!hasOwn(original, name)) return false
    if (!isSame((copy as Fields)[name], (original as Fields)[name])) return false
    names += 1
  }
  for (const _ in original) names -= 1
  return names === 0
}
