/**
 * Which operation IDs may have a record. Every Mutation asks for its own before it runs, and nearly
 * all are new: an ID begins with the time at which it was made, so it comes after most of what is
 * stored, and what was recorded last is remembered. In PostgreSQL a question costs a third of what
 * its commit does. An ID from the future brings the questions back until retention removes it.
 */
import { crc32 } from 'node:zlib'

/** Two generations are remembered: some seconds of the highest load, for clocks that are behind. */
const GENERATION_IDS = 50_000
/** Of a place in the table of a generation; no checksum is that. */
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
    const checksum = checksumOf(id)
    return this.#current.has(checksum) || this.#previous.has(checksum)
  }
}

/**
 * Checksums rather than IDs: one that two share only asks the database for nothing. They stand in a
 * table of numbers, since a Set that is written to is looked through by each collection.
 */
class Generation {
  /** A checksum is at the place that it names, or at the next free one. */
  readonly #table: Uint32Array
  newest = ''
  size = 0

  constructor(ids: number) {
    this.#table = new Uint32Array(2 ** Math.ceil(Math.log2(ids * 2)))
  }

  add(id: string): void {
    const checksum = checksumOf(id)
    this.#table[this.#placeOf(checksum)] = checksum
    this.newest = greater(this.newest, id)
    this.size += 1
  }

  has(checksum: number): boolean {
    return this.#table[this.#placeOf(checksum)] === checksum
  }

  #placeOf(checksum: number): number {
    const table = this.#table
    let place = checksum & (table.length - 1)
    while (table[place] !== FREE && table[place] !== checksum)
      place = (place + 1) & (table.length - 1)
    return place
  }
}

function checksumOf(id: string): number {
  return crc32(id) || 1
}

function greater(a: string, b: string): string {
  return a < b ? b : a
}
