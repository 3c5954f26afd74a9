/**
 * The documents that a runner holds. It keeps each that it was sent under a number, so that the
 * next call which reads that version costs a few bytes: text, pipe and parsing are most of what a
 * list costs. Both sides number alike, in the order of sending, and forget the oldest together.
 */
import type { StoredDocument } from '../../documents/store.ts'
import { documentText } from '../document-text.ts'

/** Characters of texts; a runner holds some three bytes for each. */
const CHARACTERS_MAX = 4 * 1024 * 1024

export class SentDocuments {
  /** Oldest first; numbers ascend without a gap. */
  readonly #numbers = new Map<StoredDocument, number>()
  readonly #charactersMax: number
  #first = 1
  #next = 1
  #characters = 0

  constructor(charactersMax = CHARACTERS_MAX) {
    this.#charactersMax = charactersMax
  }

  /** JSON texts, with commas between: a number for what the runner holds, else the document. */
  items(documents: readonly StoredDocument[]): string {
    let items = ''
    for (const document of documents) {
      if (items !== '') items += ','
      items += this.#numbers.get(document) ?? this.#add(document)
    }
    return items
  }

  /** The first number that stays, where the bound made some go; null otherwise. */
  trim(): number | null {
    if (this.#characters <= this.#charactersMax) return null
    for (const [document] of this.#numbers) {
      if (this.#characters <= this.#charactersMax) break
      this.#numbers.delete(document)
      this.#characters -= document.text.length
      this.#first += 1
    }
    return this.#first
  }

  #add(document: StoredDocument): string {
    this.#numbers.set(document, this.#next)
    this.#next += 1
    this.#characters += document.text.length
    return documentText(document)
  }
}
