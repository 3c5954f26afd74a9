/**
 * Locks on keys, granted in the order in which they were requested. A Mutation that lost a conflict
 * on a key locks it before it runs again: without the lock, a steady stream of first attempts would
 * starve the reruns; with it, writers of a hot document queue instead of colliding.
 */
import { Fault } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'

export interface KeyLock {
  readonly keys: readonly string[]
  /** Passes every key to the next waiter. Safe to call twice. */
  release(): void
}

interface Waiter {
  /** Monotonic milliseconds. */
  readonly deadline: number
  readonly wake: () => void
  readonly fail: (fault: Fault) => void
}

/** Longest delay until an expired deadline is noticed: one timer per waiter would cost more. */
const SWEEP_MILLIS = 50

export class LockManager {
  readonly #system: Pick<System, 'monotonicMillis'>
  /** The waiters of each locked key, oldest first. A key without an entry is not locked. */
  readonly #waiters = new TransientMap<string, Waiter[]>()
  #waiting = 0
  #sweep: ReturnType<typeof setInterval> | null = null

  constructor(system: Pick<System, 'monotonicMillis'>) {
    this.#system = system
  }

  /** Number of locked keys. */
  get size(): number {
    return this.#waiters.size
  }

  /** Returns the first of `keys` that is locked by another owner than `owned`, or null. */
  lockedByOther(keys: Iterable<string>, owned: KeyLock | null): string | null {
    if (this.#waiters.size === 0) return null
    for (const key of keys) {
      if (this.#waiters.has(key) && owned?.keys.includes(key) !== true) return key
    }
    return null
  }

  isLocked(key: string): boolean {
    return this.#waiters.has(key)
  }

  /**
   * Waits for the lock on every key. All callers lock keys in the same order, so no deadlock is
   * possible. Rejects with DEADLINE_EXCEEDED at `deadline`, in monotonic milliseconds.
   */
  async acquire(keys: Iterable<string>, deadline: number): Promise<KeyLock> {
    const sorted = [...new Set(keys)].sort()
    const acquired: string[] = []
    const release = (): void => {
      for (const key of acquired.splice(0)) this.#unlock(key)
    }
    try {
      for (const key of sorted) {
        await this.#lock(key, deadline)
        acquired.push(key)
      }
    } catch (error) {
      release()
      throw error
    }
    return { keys: sorted, release }
  }

  #lock(key: string, deadline: number): Promise<void> | undefined {
    const waiters = this.#waiters.get(key)
    if (waiters === undefined) {
      this.#waiters.set(key, [])
      return undefined
    }
    this.#waiting += 1
    this.#sweep ??= setInterval(() => this.#expire(), SWEEP_MILLIS)
    return new Promise((wake, fail) => waiters.push({ deadline, wake, fail }))
  }

  #unlock(key: string): void {
    const next = this.#waiters.get(key)?.shift()
    if (next === undefined) {
      this.#waiters.delete(key)
      return
    }
    this.#countDown()
    next.wake()
  }

  #expire(): void {
    const now = this.#system.monotonicMillis()
    for (const waiters of this.#waiters.values()) {
      for (const waiter of waiters.splice(0)) {
        if (now < waiter.deadline) waiters.push(waiter)
        else {
          this.#countDown()
          waiter.fail(new Fault('DEADLINE_EXCEEDED'))
        }
      }
    }
  }

  #countDown(): void {
    this.#waiting -= 1
    if (this.#waiting > 0 || this.#sweep === null) return
    clearInterval(this.#sweep)
    this.#sweep = null
  }
}
