/** The due work in memory, in the order of its due times, and what of it may start. */
import {
  SCHEDULED_ACTION_RUNS_MAX,
  SCHEDULED_ACTIONS_MAX,
  SCHEDULED_MUTATION_RUNS_BESIDE_CALLS_MAX,
  SCHEDULED_MUTATION_RUNS_MAX,
  SCHEDULED_MUTATIONS_BESIDE_CALLS_MAX,
  SCHEDULED_MUTATIONS_MAX,
} from '../limits.ts'
import type { ScheduledWork, WorkFields } from '../scheduled-work/scheduled-documents.ts'

/** Waiting pieces beyond which only those of Functions with few pieces are added. */
const WAITING_MAX = 2_048
/** Characters of the arguments of the waiting pieces, with the same effect. */
const CHARACTERS_MAX = 32 * 1024 * 1024
/** Waiting and running pieces of a Function that a full queue still takes. */
const FEW_PIECES = 24

/** Most runs at one time, in all and of one Function. */
interface RunLimits {
  readonly all: number
  readonly each: number
}

const ACTIONS: RunLimits = { all: SCHEDULED_ACTIONS_MAX, each: SCHEDULED_ACTION_RUNS_MAX }
const MUTATIONS: RunLimits = { all: SCHEDULED_MUTATIONS_MAX, each: SCHEDULED_MUTATION_RUNS_MAX }
const MUTATIONS_BESIDE_CALLS: RunLimits = {
  all: SCHEDULED_MUTATIONS_BESIDE_CALLS_MAX,
  each: SCHEDULED_MUTATION_RUNS_BESIDE_CALLS_MAX,
}

interface WaitingWork {
  readonly work: ScheduledWork
  /** Number of pieces that were added before. */
  readonly position: number
}

/** The pieces of one Function: a Function whose runs are at their bound costs no scan of them. */
interface FunctionWork {
  readonly kind: ScheduledWork['kind']
  /** The waiting work, in the order of its positions. */
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
  readonly #hasCalls: () => boolean

  /** `hasCalls` tells whether applications call, which come before scheduled Mutations. */
  constructor(hasCalls: () => boolean) {
    this.#hasCalls = hasCalls
  }

  get waiting(): number {
    return this.#waiting
  }

  /** The due time of the first piece that waits; null if none waits. */
  get oldestDueMicros(): bigint | null {
    return this.#first(() => true)?.waiting[0]?.work.dueAtMicros ?? null
  }

  get isHalfEmpty(): boolean {
    return this.#waiting <= WAITING_MAX / 2 && this.#characters <= CHARACTERS_MAX / 2
  }

  get running(): number {
    return this.#running.mutation + this.#running.action
  }

  /** Returns whether any work could start at all. */
  get hasCapacity(): boolean {
    const { mutation, action } = this.#limits()
    return this.#running.mutation < mutation.all || this.#running.action < action.all
  }

  has(scheduledId: string): boolean {
    return this.#known.has(scheduledId)
  }

  /**
   * Adds due work that is not known. Returns false if the queue is full. A full queue still
   * takes work of a Function that has few pieces.
   */
  add(work: ScheduledWork): boolean {
    const key = keyOf(work)
    const of = this.#functions.get(key) ?? { kind: work.kind, waiting: [], running: 0 }
    const isFull = this.#waiting >= WAITING_MAX || this.#characters >= CHARACTERS_MAX
    if (isFull && of.waiting.length + of.running >= FEW_PIECES) return false
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
    const limits = this.#limits()
    const running = this.#running
    while (this.#waiting > 0) {
      const of = this.#first(
        (work) =>
          work.running < limits[work.kind].each && running[work.kind] < limits[work.kind].all,
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

  #limits(): { readonly mutation: RunLimits; readonly action: RunLimits } {
    return { mutation: this.#hasCalls() ? MUTATIONS_BESIDE_CALLS : MUTATIONS, action: ACTIONS }
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
