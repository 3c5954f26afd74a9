/** The state of calls and transfers that all processes of a server share in memory. */
import { sharedMicros } from '../../system/memory/shared-memory.ts'
import type { TransferState } from './transfer-turns.ts'

/** Microseconds of the last call, and those from which the next piece may be transferred. */
const CALLED = 0
const FREE = 1
/** The number of downloads of each process follows. */
const DOWNLOADS = 2
const PROCESSES_MAX = 65

export const SHARED_TRANSFERS_BYTES = (DOWNLOADS + PROCESSES_MAX) * BigInt64Array.BYTES_PER_ELEMENT
/** Time in which further calls need not be recorded. */
const RECORDED_MICROS = 2_000
/** More than all pieces can reserve: a time beyond it was stored before the clock was set back. */
const AHEAD_MICROS_MAX = 10_000_000

export class SharedTransferState implements TransferState {
  readonly #memory: BigInt64Array
  readonly #micros: () => number
  readonly #slot: number
  #recordedMicros = Number.NEGATIVE_INFINITY

  /** `number` is that of this process, from 0. */
  constructor(memory: BigInt64Array, number: number, micros: () => number = sharedMicros) {
    this.#memory = memory
    this.#micros = micros
    this.#slot = DOWNLOADS + number
    // Those of a process with this number that has ended.
    this.downloads(0)
  }

  called(): void {
    const now = this.#micros()
    if (Math.abs(now - this.#recordedMicros) < RECORDED_MICROS) return
    this.#recordedMicros = now
    Atomics.store(this.#memory, CALLED, BigInt(now))
  }

  sinceCall(): number {
    return Math.abs(this.#micros() - Number(Atomics.load(this.#memory, CALLED))) / 1000
  }

  reserve(_: number, millis: number): number {
    for (;;) {
      const stored = Atomics.load(this.#memory, FREE)
      const now = this.#micros()
      const free = Number(stored)
      const from = free > now && free - now <= AHEAD_MICROS_MAX ? free : now
      const next = BigInt(Math.round(from + millis * 1000))
      if (Atomics.compareExchange(this.#memory, FREE, stored, next) === stored) {
        return (from - now) / 1000
      }
    }
  }

  clear(): void {
    Atomics.store(this.#memory, FREE, BigInt(this.#micros()))
  }

  downloads(own: number): number {
    Atomics.store(this.#memory, this.#slot, BigInt(own))
    let sum = 0
    for (let i = 0; i < PROCESSES_MAX; i++) sum += Number(Atomics.load(this.#memory, DOWNLOADS + i))
    return sum
  }
}
