/**
 * The server's side of the document cache of a runner. The runner caches each document that it
 * receives a second time under a number, so that the next call which reads that version costs a few
 * bytes: text, pipe and parsing are most of the cost of a list. A document that is sent once is
 * usually never sent again, and would only evict others. Both sides number the documents alike, in
 * the order of sending, and evict the oldest together.
 */
import type { StoredDocument } from '../../documents/store.ts'
import { DEFAULT_PLAN } from '../../system/memory/memory-plan.ts'
import { SeenFilter } from '../../system/seen-filter.ts'
import { documentText } from '../calls/document-text.ts'

/** The share of the bound that an eviction leaves, since single evictions cost more. */
const RETAINED_SHARE = 7 / 8
/** Characters added for the system fields and the object of a document. */
const CHARACTERS_EACH = 128
/** Fewest characters that a document counts, which is the cost of a short one. */
const CHARACTERS_MIN = 350
/** Slots of the filter for documents that were sent once: more than the shortest ones that fit. */
const SENT_ONCE_SLOTS = 65_536

export class SentDocuments {
  /** The cached documents, oldest first; their numbers ascend without a gap. */
  #numbers = new Map<StoredDocument, number>()
  readonly #sentOnce = new SeenFilter(SENT_ONCE_SLOTS)
  readonly #charactersMax: number
  #first = 1
  #next = 1
  #characters = 0

  /** `charactersMax` bounds the texts: a runner that caches 4 Mi has grown by 30 MB. */
  constructor(charactersMax = DEFAULT_PLAN.runnerCharacters) {
    this.#charactersMax = charactersMax
  }

  /**
   * Returns JSON texts separated by commas: a number for a cached document, `[document]` for one
   * that the runner has to cache under the next number, else the document.
   */
  items(documents: readonly StoredDocument[]): string {
    let items = ''
    for (const document of documents) {
      if (items !== '') items += ','
      items += this.#numbers.get(document) ?? this.#send(document)
    }
    return items
  }

  /** Evicts beyond the bound. Returns the first number that is left; null without an eviction. */
  trim(): number | null {
    if (this.#characters <= this.#charactersMax) return null
    for (const [document] of this.#numbers) {
      if (this.#characters <= this.#charactersMax * RETAINED_SHARE) break
      this.#numbers.delete(document)
      this.#characters -= sizeOf(document)
      this.#first += 1
    }
    // The old table of a shrunk Map would keep later tables alive (see TransientMap).
    this.#numbers = new Map(this.#numbers)
    return this.#first
  }

  /** Evicts all documents. Returns the first number that is left; null if none was cached. */
  clear(): number | null {
    if (this.#numbers.size === 0) return null
    this.#numbers = new Map()
    this.#characters = 0
    this.#first = this.#next
    return this.#first
  }

  #send(document: StoredDocument): string {
    const text = documentText(document)
    if (!this.#sentOnce.hasSeen(document.id, document.sequence)) return text
    this.#numbers.set(document, this.#next)
    this.#next += 1
    this.#characters += sizeOf(document)
    return `[${text}]`
  }
}

function sizeOf({ text }: StoredDocument): number {
  return Math.max(CHARACTERS_MIN, CHARACTERS_EACH + text.length)
}
