/**
 * Which operation IDs may have a record. Every Mutation asks for its own before it runs, and nearly
 * all are new: an ID begins with the time at which it was made, so it comes after most of what is
 * stored, and what was recorded last is remembered. In PostgreSQL a question costs a third of what
 * its commit does. An ID from the future brings the questions back until retention removes it.
 */
import { crc32 } from 'node:zlib'

/** Two generations are remembered: some seconds of the highest load, for clocks that are behind. */
const GENERATION_IDS = 50_000

export class OperationIds {
  readonly #generationIds: number
  /** Any ID up to this one may have a record. */
  #boundary: string
  #current = new Generation()
  #previous = new Generation()

  /** `newest` is the greatest ID that has a record; empty where none has. */
  constructor(newest: string, generationIds = GENERATION_IDS) {
    this.#boundary = newest
    this.#generationIds = generationIds
  }

  /** Called before the record is on its way to the database. */
  add(id: string): void {
    if (this.#current.size === this.#generationIds) {
      this.#boundary = greater(this.#boundary, this.#previous.newest)
      this.#previous = this.#current
      this.#current = new Generation()
    }
    this.#current.add(id)
  }

  /** False only where no record is, or is on its way. */
  mayExist(id: string): boolean {
    if (id <= this.#boundary) return true
    const checksum = crc32(id)
    return this.#current.checksums.has(checksum) || this.#previous.checksums.has(checksum)
  }
}

/** Checksums rather than IDs: one that two share only asks the database for nothing. */
class Generation {
  readonly checksums = new Set<number>()
  newest = ''
  size = 0

  add(id: string): void {
    this.checksums.add(crc32(id))
    this.newest = greater(this.newest, id)
    this.size += 1
  }
}

function greater(a: string, b: string): string {
  return a < b ? b : a
}
