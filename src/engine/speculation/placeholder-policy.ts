/**
 * Decides which calls of a Query receive placeholders in place of documents. Most Queries return
 * the documents that they read and look into none: then a document crosses no pipe and is parsed
 * nowhere. A call whose code reads a placeholder is misspeculated and repeated with the documents.
 */

/** Calls with documents between two that try placeholders, once the code was seen to read one. */
const DOCUMENT_CALLS = 1_024

/** The placeholders of one call: of every call, or of one that tries them. */
export type Placeholders = 'always' | 'tried'

/** The policy of one Query. */
export class PlaceholderPolicy {
  #readsDocuments = false
  #documentCalls = 0

  /** Returns whether the next call receives placeholders, and counts it; null for documents. */
  decide(): Placeholders | null {
    if (!this.#readsDocuments) return 'always'
    if (this.#documentCalls > 0) {
      this.#documentCalls -= 1
      return null
    }
    // One call at a time, since many are in flight until the first one ends.
    this.#documentCalls = DOCUMENT_CALLS
    return 'tried'
  }

  /** Notes that the code of a call read a placeholder. */
  onRead(): void {
    this.#readsDocuments = true
    this.#documentCalls = DOCUMENT_CALLS
  }

  /** Notes that a call returned and read none. */
  onReturn(placeholders: Placeholders): void {
    if (placeholders === 'tried') this.#readsDocuments = false
  }
}
