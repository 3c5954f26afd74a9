/**
 * Which operation IDs may have a record. Every Mutation asks for its own before it runs, and nearly
 * all are new: an ID begins with the time at which it was made, so it comes after most of what is
 * stored, and what was recorded last is remembered. In PostgreSQL a question costs a third of what
 * its commit does. An ID from the future brings the questions back until retention removes it.
 */
import { randomInt } from 'node:crypto'

/** Two generations are remembered: some seconds of the highest load, for clocks that are behind. */
const GENERATION_IDS = 50_000
/** Of a place in the table of a generation; no hash is that. */
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

  /** Called before the record is on its way to the database. */
  add(id: string): void {
    if (this.#current.size === this.#generationIds) {
      this.#boundary = greater(this.#boundary, this.#previous.newest)
      this.#previous = this.#current
      this.#current = new Generation(this.#generationIds)
    }
    this.#current.add(id)
  }

  /** False only where no record is, or is on its way. */
  mayExist(id: string): boolean {
    if (id <= this.#boundary) return true
    const hash = hashOf(id)
    return this.#current.has(hash) || this.#previous.has(hash)
  }
}

/**
 * Hashes rather than IDs: one that two share only asks the database for nothing. They stand in a
 * table of numbers, since a Set that is written to is looked through by each collection.
 */
class Generation {
  /** A hash is at the place that it names, or at the next free one. */
  readonly #table: Int32Array
  newest = ''
  size = 0

  constructor(ids: number) {
    this.#table = new Int32Array(2 ** Math.ceil(Math.log2(ids * 2)))
  }

  add(id: string): void {
    const hash = hashOf(id)
    this.#table[this.#placeOf(hash)] = hash
    this.newest = greater(this.newest, id)
    this.size += 1
  }

  has(hash: number): boolean {
    return this.#table[this.#placeOf(hash)] === hash
  }

  #placeOf(hash: number): number {
    const table = this.#table
    let place = hash & (table.length - 1)
    while (table[place] !== FREE && table[place] !== hash) place = (place + 1) & (table.length - 1)
    return place
  }
}

/** Callers make the IDs: they must not know which of them share a place. */
const SEED = randomInt(2 ** 32)

/** Signed: half of the unsigned ones are doubles to the engine (system/seen-filter.ts). */
function hashOf(id: string): number {
  return Bun.hash.xxHash32(id, SEED) | 0 || 1
}

function greater(a: string, b: string): string {
  return a < b ? b : a
}
