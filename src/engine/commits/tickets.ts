/**
 * A place in the queue for a key that a Mutation lost. Without it, first attempts that keep coming
 * would starve the ones that run again; with it, hot documents queue instead of colliding.
 */
import { TransientMap } from '../../value/memory/transient-map.ts'

export interface Ticket {
  readonly keys: readonly string[]
  /** Gives every key to the next in line. Safe to call twice. */
  release(): void
}

interface Waiter {
  readonly wake: () => void
}

export class Tickets {
  /** A key that is held has an entry; the array holds those who wait for it. */
  readonly #queues = new TransientMap<string, Waiter[]>()

  get size(): number {
    return this.#queues.size
  }

  /** Whether somebody else holds one of `keys`; the first such key, or null. */
  heldByOther(keys: Iterable<string>, own: Ticket | null): string | null {
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

  /** Waits for every key. Keys are taken in one order by everybody, so nobody waits in a ring. */
  async acquire(keys: Iterable<string>): Promise<Ticket> {
    const sorted = [...new Set(keys)].sort()
    for (const key of sorted) await this.#take(key)
    let released = false
    return {
      keys: sorted,
      release: () => {
        if (released) return
        released = true
        for (const key of sorted) this.#pass(key)
      },
    }
  }

  #take(key: string): Promise<void> | undefined {
    const queue = this.#queues.get(key)
    if (queue === undefined) {
      this.#queues.set(key, [])
      return undefined
    }
    return new Promise((wake) => queue.push({ wake }))
  }

  #pass(key: string): void {
    const next = this.#queues.get(key)?.shift()
    if (next === undefined) this.#queues.delete(key)
    else next.wake()
  }
}
