/**
 * Numbers that the main process publishes in memory that all processes of the server map: the
 * newest durable sequence and the numbers of changes of the control database and of what is served.
 * A process that has not followed as far waits for the messages about them, so that everything that
 * was answered is visible in each of them.
 */
import { createSharedMemory, mapSharedMemory } from '../../system/memory/shared-memory.ts'

const BYTES = 4_096
const DURABLE = 0
const CONTROL = 1
const SERVED = 2

export class SharedCounters {
  readonly #values: BigInt64Array

  private constructor(values: BigInt64Array) {
    this.#values = values
  }

  static create(path: string): SharedCounters {
    return new SharedCounters(createSharedMemory(path, BYTES))
  }

  static open(path: string): SharedCounters {
    return new SharedCounters(mapSharedMemory(path))
  }

  get durable(): number {
    return Number(Atomics.load(this.#values, DURABLE))
  }

  publishDurable(sequence: number): void {
    Atomics.store(this.#values, DURABLE, BigInt(sequence))
  }

  /** Number of changes of the control database. */
  get control(): number {
    return Number(Atomics.load(this.#values, CONTROL))
  }

  publishControl(changes: number): void {
    Atomics.store(this.#values, CONTROL, BigInt(changes))
  }

  /** Number of changes of the Releases that the main process serves. */
  get served(): number {
    return Number(Atomics.load(this.#values, SERVED))
  }

  publishServed(changes: number): void {
    Atomics.store(this.#values, SERVED, BigInt(changes))
  }
}
