/** Counts by key with a bound, such as the connections of an address. */
import { sha256 } from '../digests.ts'

export interface Counts {
  /** Counts one more for the key unless it has `max`. Returns whether it was counted. */
  take(key: string, max: number): boolean
  /** Takes back one that was counted. */
  release(key: string): void
  count(key: string): number
}

/** The counts of one process. */
export class OwnCounts implements Counts {
  readonly #counts = new Map<string, number>()

  take(key: string, max: number): boolean {
    const count = this.count(key)
    if (count >= max) return false
    this.#counts.set(key, count + 1)
    return true
  }

  release(key: string): void {
    const count = this.count(key) - 1
    if (count === 0) this.#counts.delete(key)
    else this.#counts.set(key, count)
  }

  count(key: string): number {
    return this.#counts.get(key) ?? 0
  }
}

/** Cells of each of the two tables. */
const CELLS = 8_192
const TABLES = 2

/** The place of one process. */
interface Column {
  /** Number of processes that count. */
  readonly processes: number
  /** The number of this one, from 0. */
  readonly number: number
}

/** Bytes for the counts of that many processes. */
export function sharedCountsBytes(processes: number): number {
  return CELLS * TABLES * processes * BigInt64Array.BYTES_PER_ELEMENT
}

/**
 * Counts that several processes share in memory. A key has a cell in each of two tables, chosen by
 * its digest, and its count is the lower one of the two. So a bound is never exceeded. A key that
 * shares both cells may meet it early: one in 80 does with a thousand keys. Each process has a
 * column of its own, so that the counts of a killed one can be removed.
 */
export class SharedCounts implements Counts {
  readonly #memory: BigInt64Array
  readonly #processes: number
  readonly #number: number
  readonly #salt: string

  /** `salt` hides from callers which keys share cells. */
  constructor(
    memory: BigInt64Array,
    { processes, number, salt }: Column & { readonly salt: string },
  ) {
    this.#memory = memory
    this.#processes = processes
    this.#number = number
    this.#salt = salt
  }

  /** Removes the counts of a process that has ended. */
  static clear(memory: BigInt64Array, { processes, number }: Column): void {
    for (let cell = 0; cell < CELLS * TABLES; cell++) {
      const at = cell * processes + number
      if (Atomics.load(memory, at) !== 0n) Atomics.store(memory, at, 0n)
    }
  }

  /** Counts first, so that of two processes that take the last one both may get false. */
  take(key: string, max: number): boolean {
    const cells = this.#cellsOf(key)
    this.#add(cells, 1n)
    if (this.#least(cells) <= max) return true
    this.#add(cells, -1n)
    return false
  }

  release(key: string): void {
    this.#add(this.#cellsOf(key), -1n)
  }

  count(key: string): number {
    return this.#least(this.#cellsOf(key))
  }

  #cellsOf(key: string): readonly number[] {
    const digest = sha256(`${this.#salt} ${key}`)
    return [digest.readUInt32BE(0) % CELLS, CELLS + (digest.readUInt32BE(4) % CELLS)]
  }

  #add(cells: readonly number[], change: bigint): void {
    for (const cell of cells) {
      Atomics.add(this.#memory, cell * this.#processes + this.#number, change)
    }
  }

  #least(cells: readonly number[]): number {
    return Math.min(
      ...cells.map((cell) => {
        let sum = 0n
        const first = cell * this.#processes
        for (let i = 0; i < this.#processes; i++) sum += Atomics.load(this.#memory, first + i)
        return Number(sum)
      }),
    )
  }
}
