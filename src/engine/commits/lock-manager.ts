/**
 * A place in the queue for a key that a Mutation lost. Without it, first attempts that keep coming
 * would starve the ones that run again; with it, hot documents queue instead of colliding.
 */
import { Fault } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'

export interface KeyLock {
  readonly keys: readonly string[]
  /** Gives every key to the next in line. Safe to call twice. */
  release(): void
}

interface Waiter {
  readonly deadline: number
  readonly wake: () => void
  readonly fail: (fault: Fault) => void
}

/** How late a deadline is noticed, at most: a timer for each that waits would cost more. */
const SWEEP_MILLIS = 50

export class LockManager {
  readonly #system: Pick<System, 'monotonicMillis'>
  /** A key that is held has an entry; the array holds those who wait for it. */
  readonly #queues = new TransientMap<string, Waiter[]>()
  #waiting = 0
  #sweep: ReturnType<typeof setInterval> | null = null

  constructor(system: Pick<System, 'monotonicMillis'>) {
    this.#system = system
  }

  get size(): number {
    return this.#queues.size
  }

  /** Whether somebody else holds one of `keys`; the first such key, or null. */
  heldByOther(keys: Iterable<string>, own: KeyLock | null): string | null {
    if (this.#queues.size === 0) return null
    for (const key of keys) {
      if (this.#queues.has(key) && own?.keys.includes(key) !== true) return key
    }
    return null
  }

  /** Those of `keys` that somebody holds. */
  held(keys: Iterable<string>): readonly string[] {
    return [...keys].filter((key) => this.#queues.has(key))
  }

  /**
   * Waits for every key. Keys are taken in one order by everybody, so nobody waits in a ring.
   * DEADLINE_EXCEEDED where `deadline`, in monotonic milliseconds, comes first.
   */
  async acquire(keys: Iterable<string>, deadline: number): Promise<KeyLock> {
    const wanted = [...new Set(keys)].sort()
    const taken: string[] = []
    const release = (): void => {
      for (const key of taken.splice(0)) this.#pass(key)
    }
    try {
      for (const key of wanted) {
        await this.#take(key, deadline)
        taken.push(key)
      }
    } catch (error) {
      release()
      throw error
    }
    return { keys: wanted, release }
  }

  #take(key: string, deadline: number): Promise<void> | undefined {
    const queue = this.#queues.get(key)
    if (queue === undefined) {
      this.#queues.set(key, [])
      return undefined
    }
    this.#waiting += 1
    this.#sweep ??= setInterval(() => this.#expire(), SWEEP_MILLIS)
    return new Promise((wake, fail) => queue.push({ deadline, wake, fail }))
  }

  #pass(key: string): void {
    const next = this.#queues.get(key)?.shift()
    if (next === undefined) {
      this.#queues.delete(key)
      return
    }
    this.#left()
    next.wake()
  }

  #expire(): void {
    const now = this.#system.monotonicMillis()
    for (const queue of this.#queues.values()) {
      for (const waiter of queue.splice(0)) {
        if (now < waiter.deadline) queue.push(waiter)
        else {
          this.#left()
          waiter.fail(new Fault('DEADLINE_EXCEEDED'))
        }
      }
    }
  }

  #left(): void {
    this.#waiting -= 1
    if (this.#waiting > 0 || this.#sweep === null) return
    clearInterval(this.#sweep)
    this.#sweep = null
  }
}
