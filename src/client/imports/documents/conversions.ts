/** Counts of values that became others, while the documents of an export are read. */

export class Conversions {
  readonly #counts = new Map<string, Map<string, number>>()
  #current = new Map<string, number>()

  /** Begins to read a collection. Documents are read twice, and counted once. */
  begin(collection: string): void {
    this.#current = new Map()
    this.#counts.set(collection, this.#current)
  }

  /** `what` says what became what, in the plural. */
  add(what: string): void {
    this.#current.set(what, (this.#current.get(what) ?? 0) + 1)
  }

  all(): readonly { readonly what: string; readonly count: number }[] {
    const sums = new Map<string, number>()
    for (const counts of this.#counts.values()) {
      for (const [what, count] of counts) sums.set(what, (sums.get(what) ?? 0) + count)
    }
    return [...sums].map(([what, count]) => ({ what, count }))
  }
}
