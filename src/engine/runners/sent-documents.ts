/**
 * The documents that a runner holds. It keeps each that it was sent a second time under a number,
 * so that the next call which reads that version costs a few bytes: text, pipe and parsing are most
 * of what a list costs. Most of what comes once never comes again, and would push out what does.
 * Both sides number alike, in the order of sending, and forget the oldest together.
 */
import type { StoredDocument } from '../../documents/store.ts'
import { SeenFilter } from '../../system/seen-filter.ts'
import { documentText } from '../invocations/document-text.ts'

/** Characters of texts: a runner that holds so many has grown by 30 MB. */
const CHARACTERS_MAX = 4 * 1024 * 1024
/** What stays where the bound made some go: walking past those that went costs more than they. */
const KEPT_SHARE = 7 / 8
/** Of the system fields and what holds a document; a short one counts as what it costs. */
const CHARACTERS_EACH = 128
const CHARACTERS_MIN = 350
/** Of what was sent once: as many as the runner holds of the shortest come between at least. */
const ONCE_PLACES = 65_536

export class SentDocuments {
  /** Oldest first; numbers ascend without a gap. */
  #numbers = new Map<StoredDocument, number>()
  readonly #once = new SeenFilter(ONCE_PLACES)
  readonly #charactersMax: number
  #first = 1
  #next = 1
  #characters = 0

  constructor(charactersMax = CHARACTERS_MAX) {
    this.#charactersMax = charactersMax
  }

  /**
   * JSON texts, with commas between: a number for what the runner holds, `[document]` for what it
   * is to keep under the next number, else the document.
   */
  items(documents: readonly StoredDocument[]): string {
    let items = ''
    for (const document of documents) {
      if (items !== '') items += ','
      items += this.#numbers.get(document) ?? this.#send(document)
    }
    return items
  }

  /** The first number that stays, where the bound made some go; null otherwise. */
  trim(): number | null {
    if (this.#characters <= this.#charactersMax) return null
    for (const [document] of this.#numbers) {
      if (this.#characters <= this.#charactersMax * KEPT_SHARE) break
      this.#numbers.delete(document)
      this.#characters -= sizeOf(document)
      this.#first += 1
    }
    // See TransientMap: the table of this one would lead a collection to all tables behind it.
    this.#numbers = new Map(this.#numbers)
    return this.#first
  }

  #send(document: StoredDocument): string {
    const text = documentText(document)
    if (!this.#once.hasSeen(document.id, document.sequence)) return text
    this.#numbers.set(document, this.#next)
    this.#next += 1
    this.#characters += sizeOf(document)
    return `[${text}]`
  }
}

function sizeOf({ text }: StoredDocument): number {
  return Math.max(CHARACTERS_MIN, CHARACTERS_EACH + text.length)
}
