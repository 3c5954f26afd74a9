/** The due work in memory, in the order of its due times, and what of it may start. */
import { SCHEDULED_ACTIONS_MAX, SCHEDULED_MUTATIONS_MAX, SCHEDULED_RUNS_MAX } from '../limits.ts'
import type { ScheduledWork, WorkFields } from './scheduled-documents.ts'

/** Waiting pieces beyond which only those of Functions with few pieces are added. */
const WAITING_MAX = 2_048
/** Characters of the arguments of the waiting pieces, with the same effect. */
const CHARACTERS_MAX = 32 * 1024 * 1024

const RUNS_MAX = { mutation: SCHEDULED_MUTATIONS_MAX, action: SCHEDULED_ACTIONS_MAX }

interface WaitingWork {
  readonly work: ScheduledWork
  /** Number of pieces that were added before. */
  readonly position: number
}

/** The pieces of one Function: a Function whose runs are at their bound costs no scan of them. */
interface FunctionWork {
  readonly kind: ScheduledWork['kind']
  /** In the order of their positions. */
  readonly waiting: WaitingWork[]
  running: number
}

export class DueQueue {
  /** The Functions that have pieces that wait or run. */
  readonly #functions = new Map<string, FunctionWork>()
  /** Work that waits or runs, or that must not start again yet. */
  readonly #known = new Set<string>()
  readonly #running = { mutation: 0, action: 0 }
  #waiting = 0
  #added = 0
  /** Characters of the arguments of the pieces that wait. */
  #characters = 0

  get waiting(): number {
    return this.#waiting
  }

  /** The due time of the first piece that waits; null where none waits. */
  get oldestDueMicros(): bigint | null {
    return this.#first(() => true)?.waiting[0]?.work.dueAtMicros ?? null
  }

  get isHalfEmpty(): boolean {
    return this.#waiting <= WAITING_MAX / 2 && this.#characters <= CHARACTERS_MAX / 2
  }

  get running(): number {
    return this.#running.mutation + this.#running.action
  }

  /** Whether any work could start at all. */
  get hasCapacity(): boolean {
    return this.#hasCapacityFor('mutation') || this.#hasCapacityFor('action')
  }

  has(scheduledId: string): boolean {
    return this.#known.has(scheduledId)
  }

  /**
   * Adds due work that is not known. Returns false where the queue is full. A full queue still
   * takes work of a Function that could start more runs than it has pieces.
   */
  add(work: ScheduledWork): boolean {
    const key = keyOf(work)
    const of = this.#functions.get(key) ?? { kind: work.kind, waiting: [], running: 0 }
    const isFull = this.#waiting >= WAITING_MAX || this.#characters >= CHARACTERS_MAX
    if (isFull && of.waiting.length + of.running >= SCHEDULED_RUNS_MAX) return false
    this.#functions.set(key, of)
    of.waiting.push({ work, position: this.#added++ })
    this.#known.add(work.scheduledId)
    this.#waiting += 1
    this.#characters += work.argumentsText.length
    return true
  }

  /** Removes the work that may start now, and counts it as running. */
  take(): readonly ScheduledWork[] {
    const started: ScheduledWork[] = []
    while (this.#waiting > 0 && this.hasCapacity) {
      const of = this.#first(
        ({ kind, running }) => running < SCHEDULED_RUNS_MAX && this.#hasCapacityFor(kind),
      )
      if (of === null) break
      started.push(this.#begin(of))
    }
    return started
  }

  /** Counts the end of a run. The work stays known until `forget`. */
  end(work: WorkFields): void {
    const key = keyOf(work)
    const of = this.#functions.get(key)!
    this.#running[work.kind] -= 1
    of.running -= 1
    if (of.running === 0 && of.waiting.length === 0) this.#functions.delete(key)
  }

  /** Lets a later read find the work again, where it is still pending. */
  forget(scheduledId: string): void {
    this.#known.delete(scheduledId)
  }

  #hasCapacityFor(kind: ScheduledWork['kind']): boolean {
    return this.#running[kind] < RUNS_MAX[kind]
  }

  /** Returns the Function whose first piece was added first, among those that are admitted. */
  #first(admits: (work: FunctionWork) => boolean): FunctionWork | null {
    let first: FunctionWork | null = null
    let position = Number.POSITIVE_INFINITY
    for (const of of this.#functions.values()) {
      const [waiting] = of.waiting
      if (waiting === undefined || waiting.position > position || !admits(of)) continue
      first = of
      position = waiting.position
    }
    return first
  }

  #begin(of: FunctionWork): ScheduledWork {
    const { work } = of.waiting.shift()!
    of.running += 1
    this.#running[of.kind] += 1
    this.#waiting -= 1
    this.#characters -= work.argumentsText.length
    return work
  }
}

/** Releases may declare a Function of one name as different kinds. */
function keyOf({ kind, function: name }: Pick<WorkFields, 'kind' | 'function'>): string {
  return `${kind} ${name}`
}
