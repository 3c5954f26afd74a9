/**
 * A bounded number of permits that keys share fairly: each key has a part of them at most, and keys
 * that wait get permits in turn, one after the other, however many requests one key sends.
 */
import { Fault } from '../errors/fault.ts'
import type { System } from './system.ts'

export interface FairLimits {
  readonly permits: number
  readonly permitsPerKey: number
  /** Requests that may wait; one more is BUSY. */
  readonly waiting: number
  readonly waitingPerKey: number
  /** Milliseconds after which a request that waits is BUSY. */
  readonly waitMillis: number
}

/** Returns a permit. */
export type Release = () => void

/** The caller that waits for a permit. */
interface Caller {
  /** True once the caller has stopped waiting. */
  readonly aborted: boolean
}

interface Waiter {
  /** Monotonic milliseconds. */
  readonly deadline: number
  readonly caller: Caller | undefined
  readonly grant: (release: Release) => void
  readonly fail: (fault: Fault) => void
}

/** The permits and the queue of one key. */
interface Share {
  readonly key: string
  running: number
  waiting: Waiter[]
}

/** Longest time until a deadline or a departure is noticed. */
const SWEEP_MILLIS = 50

export class FairSemaphore {
  readonly #system: Pick<System, 'monotonicMillis'>
  readonly #limits: FairLimits
  /** Keys that have a permit or wait for one. */
  readonly #shares = new Map<string, Share>()
  /** Keys that wait, in the order of their turns. */
  readonly #turns = new Set<Share>()
  #running = 0
  #waiting = 0
  #sweep: ReturnType<typeof setInterval> | null = null

  readonly #work: string

  /** `work` names what the permits are for, in the detail of faults. */
  constructor(system: Pick<System, 'monotonicMillis'>, limits: FairLimits, work: string) {
    this.#system = system
    this.#limits = limits
    this.#work = work
  }

  get running(): number {
    return this.#running
  }

  get waiting(): number {
    return this.#waiting
  }

  /**
   * Waits for a permit. Raises BUSY where the queue is full or the wait takes too long, and
   * UNAVAILABLE where the caller leaves first.
   */
  async acquire(key: string, caller?: Caller): Promise<Release> {
    const share = this.#shares.get(key) ?? { key, running: 0, waiting: [] }
    // A free permit has no waiter, so this overtakes no other request.
    if (this.#hasPermit(share)) return this.#take(share)
    const { waiting, waitingPerKey, waitMillis } = this.#limits
    if (this.#waiting >= waiting || share.waiting.length >= waitingPerKey) throw this.#busy()
    const deadline = this.#system.monotonicMillis() + waitMillis
    return new Promise((grant, fail) => this.#enqueue(share, { deadline, caller, grant, fail }))
  }

  #hasPermit({ running }: Share): boolean {
    return this.#running < this.#limits.permits && running < this.#limits.permitsPerKey
  }

  #take(share: Share): Release {
    this.#shares.set(share.key, share)
    share.running += 1
    this.#running += 1
    return () => {
      share.running -= 1
      this.#running -= 1
      this.#forget(share)
      this.#grantNext()
    }
  }

  #enqueue(share: Share, waiter: Waiter): void {
    this.#shares.set(share.key, share)
    this.#turns.add(share)
    share.waiting.push(waiter)
    this.#waiting += 1
    this.#sweep ??= setInterval(() => this.#expire(), SWEEP_MILLIS)
  }

  #grantNext(): void {
    for (const share of this.#turns) {
      if (!this.#hasPermit(share)) continue
      const waiter = share.waiting.shift()!
      // Its next turn comes after those of all other keys.
      this.#turns.delete(share)
      if (share.waiting.length > 0) this.#turns.add(share)
      this.#left(1)
      if (waiter.caller?.aborted !== true) {
        waiter.grant(this.#take(share))
        return
      }
      waiter.fail(departed())
      this.#forget(share)
    }
  }

  #expire(): void {
    const now = this.#system.monotonicMillis()
    for (const share of [...this.#turns]) {
      const ended = share.waiting.filter((waiter) => isOver(waiter, now))
      if (ended.length === 0) continue
      share.waiting = share.waiting.filter((waiter) => !isOver(waiter, now))
      if (share.waiting.length === 0) this.#turns.delete(share)
      this.#forget(share)
      this.#left(ended.length)
      for (const { caller, fail } of ended) fail(caller?.aborted ? departed() : this.#busy())
    }
  }

  #busy(): Fault {
    return new Fault('BUSY', { detail: this.#work })
  }

  /** Drops a key that neither has a permit nor waits for one. */
  #forget({ key, running, waiting }: Share): void {
    if (running === 0 && waiting.length === 0) this.#shares.delete(key)
  }

  #left(count: number): void {
    this.#waiting -= count
    if (this.#waiting > 0 || this.#sweep === null) return
    clearInterval(this.#sweep)
    this.#sweep = null
  }
}

function isOver({ deadline, caller }: Waiter, now: number): boolean {
  return now >= deadline || caller?.aborted === true
}

function departed(): Fault {
  return new Fault('UNAVAILABLE', { detail: 'the caller has left' })
}
