/**
 * Filter of the operation IDs that may have a record. Every Mutation looks its own ID up before it
 * runs, and nearly all IDs are new: an ID begins with the time of its creation, so it is greater
 * than most stored ones, and the ones recorded last are in memory. In PostgreSQL a lookup costs a
 * third of a commit. While an ID from the future is stored, lookups are not filtered.
 */
import { randomInt } from 'node:crypto'

/** IDs of each of the two generations: some seconds of the highest load, for clocks that lag. */
const GENERATION_IDS = 50_000
/** Value of a free slot in the table of a generation. No hash has it. */
const FREE = 0

export class OperationIds {
  readonly #generationIds: number
  /** Any ID up to this one may have a record. */
  #boundary: string
  #current: Generation
  #previous: Generation

  /** `newest` is the greatest ID that has a record; empty where none has. */
  constructor(newest: string, generationIds = GENERATION_IDS) {
    this.#boundary = newest
    this.#generationIds = generationIds
    this.#current = new Generation(generationIds)
    this.#previous = new Generation(generationIds)
  }

  /** Adds an ID, before its record is sent to the database. */
  add(id: string): void {
    if (this.#current.size === this.#generationIds) {
      this.#boundary = greater(this.#boundary, this.#previous.newest)
      this.#previous = this.#current
      this.#current = new Generation(this.#generationIds)
    }
    this.#current.add(id)
  }

  /** Returns false only where no record is stored or being stored. */
  mayExist(id: string): boolean {
    if (id <= this.#boundary) return true
    const hash = hashOf(id)
    return this.#current.has(hash) || this.#previous.has(hash)
  }
}

/**
 * A set of hashes of IDs. A collision only causes a lookup that finds nothing. It is a table of
 * numbers, since each garbage collection scans a Set that was written.
 */
class Generation {
  /** Open addressing: a hash is in the slot that it selects, or in the next free one. */
  readonly #table: Int32Array
  newest = ''
  size = 0

  constructor(ids: number) {
    this.#table = new Int32Array(2 ** Math.ceil(Math.log2(ids * 2)))
  }

  add(id: string): void {
    const hash = hashOf(id)
    this.#table[this.#slotOf(hash)] = hash
    this.newest = greater(this.newest, id)
    this.size += 1
  }

  has(hash: number): boolean {
    return this.#table[this.#slotOf(hash)] === hash
  }

  #slotOf(hash: number): number {
    const table = this.#table
    let slot = hash & (table.length - 1)
    while (table[slot] !== FREE && table[slot] !== hash) slot = (slot + 1) & (table.length - 1)
    return slot
  }
}

/** Random, since callers choose the IDs and must not be able to produce collisions. */
const SEED = randomInt(2 ** 32)

/** A signed hash: the engine represents half of the unsigned ones as doubles (seen-filter.ts). */
function hashOf(id: string): number {
  return Bun.hash.xxHash32(id, SEED) | 0 || 1
}

function greater(a: string, b: string): string {
  return a < b ? b : a
}
