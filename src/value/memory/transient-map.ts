/** Entries that may be deleted beyond the size of the map before it moves to a new table. */
const SPARE = 16

/**
 * A Map whose entries come and go, such as what is in flight. A Map of the runtime moves to a new
 * table when deleted entries have filled its own, and the old table, which is garbage, leads to the
 * new one. Once the collector takes it for old, every collection but a full one keeps all tables
 * behind it with what they held: of 70 objects that a Mutation leaves, all stayed. So this one
 * begins a new Map before that happens; a copy costs what the runtime's own move costs.
 */
export class TransientMap<K, V> {
  #map = new Map<K, V>()
  /** Since the Map is the one that it is. */
  #deleted = 0

  get size(): number {
    return this.#map.size
  }

  get(key: K): V | undefined {
    return this.#map.get(key)
  }

  has(key: K): boolean {
    return this.#map.has(key)
  }

  set(key: K, value: V): void {
    this.#map.set(key, value)
  }

  /** Returns whether the key was present. */
  delete(key: K): boolean {
    if (!this.#map.delete(key)) return false
    this.#deleted += 1
    if (this.#deleted > this.#map.size + SPARE) {
      this.#map = new Map(this.#map)
      this.#deleted = 0
    }
    return true
  }

  clear(): void {
    this.#map = new Map()
    this.#deleted = 0
  }

  /** Iterates in insertion order. Entries deleted meanwhile are skipped; added ones may appear. */
  *[Symbol.iterator](): IterableIterator<[K, V]> {
    const map = this.#map
    for (const entry of map) {
      if (map === this.#map || this.#map.has(entry[0])) yield entry
    }
  }

  /** Iterates over the values, in the order of the entries. */
  *values(): IterableIterator<V> {
    for (const [, value] of this) yield value
  }
}
