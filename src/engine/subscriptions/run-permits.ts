/**
 * Permits for runs of watched Queries, by the memory that they take. Each address and each key may
 * have a share of them, and those that wait take turns.
 */
import {
  type Holder,
  MemoryBudget,
  type MemoryShare,
  type Reservation,
} from '../../system/memory/memory-budget.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'

/** The memory that a run takes, and for whom. */
export interface RunCost {
  /** The subscribers for whom it runs, of which one is charged. */
  readonly shares: Iterable<Pick<MemoryShare, 'holder'>>
  /** More than the share of an address counts as that. */
  readonly bytes: number
}

interface Waiter {
  readonly holder: Holder
  readonly bytes: number
  readonly grant: (permit: Reservation | null) => void
}

/** Charged for a run whose last subscriber has just left. */
const NOBODY: Holder = { credential: null, peer: '' }

/** The runs that wait for one holder, in the order of their arrival. */
type Line = TransientMap<object, Waiter>

export class RunPermits {
  readonly #budget: MemoryBudget
  readonly #runBytesMax: number
  /** The lines by holder, in the order of their turns. */
  readonly #lines = new TransientMap<string, Line>()
  /** The keys of the lines in which runs wait. */
  readonly #waiting = new TransientMap<object, string>()

  constructor(bytesMax: number) {
    this.#budget = new MemoryBudget(bytesMax)
    this.#runBytesMax = bytesMax / 4
  }

  /**
   * Runs the task once the run has a permit. Returns null if `cancel` was called for the run
   * before that.
   */
  async use<T>(run: object, cost: RunCost, task: () => Promise<T>): Promise<T | null> {
    const permit = await this.#acquire(run, cost)
    if (permit === null) return null
    try {
      return await task()
    } finally {
      permit.release()
      this.#grantAll()
    }
  }

  /** Removes a run that waits. */
  cancel(run: object): void {
    const key = this.#waiting.get(run)
    if (key === undefined) return
    const line = this.#lines.get(key)!
    const { grant } = line.get(run)!
    this.#leave(key, line, run)
    grant(null)
  }

  #acquire(run: object, cost: RunCost): Promise<Reservation | null> {
    const bytes = Math.min(cost.bytes, this.#runBytesMax)
    const holder = this.#holderOf(cost.shares, bytes)
    return new Promise((grant) => {
      const key = `${holder.credential}\n${holder.peer}`
      const line: Line = this.#lines.get(key) ?? new TransientMap()
      this.#lines.set(key, line)
      line.set(run, { holder, bytes, grant })
      this.#waiting.set(run, key)
      this.#grantAll()
    })
  }

  /** Returns a subscriber that has room, or the first one. */
  #holderOf(shares: RunCost['shares'], bytes: number): Holder {
    let first: Holder | null = null
    for (const { holder } of shares) {
      first ??= holder
      if (this.#budget.fits(bytes, holder)) return holder
    }
    return first ?? NOBODY
  }

  #leave(key: string, line: Line, run: object): void {
    this.#waiting.delete(run)
    line.delete(run)
    this.#lines.delete(key)
    // Its next turn comes after those of all others.
    if (line.size > 0) this.#lines.set(key, line)
  }

  #grantAll(): void {
    while (this.#grantOne());
  }

  /** Returns whether a run got a permit. One that only waits for the whole is not overtaken. */
  #grantOne(): boolean {
    for (const [key, line] of this.#lines) {
      const [run, waiter] = firstOf(line)!
      const permit = this.#budget.reserve(waiter.bytes, waiter.holder)
      if (permit === null) {
        if (!this.#budget.hasRoom(waiter.bytes)) return false
        continue
      }
      this.#leave(key, line, run)
      waiter.grant(permit)
      return true
    }
    return false
  }
}

function firstOf(line: Line): [object, Waiter] | null {
  for (const entry of line) return entry
  return null
}
