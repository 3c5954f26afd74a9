/** The due work in memory, in the order of its due times, and what of it may start. */
import { SCHEDULED_ACTIONS_MAX, SCHEDULED_MUTATIONS_MAX, SCHEDULED_RUNS_MAX } from '../limits.ts'
import type { ScheduledWork, WorkFields } from './scheduled-documents.ts'

/** Waiting pieces beyond which only those of Functions with few pieces are added. */
const WAITING_MAX = 2_048
/** Characters of the arguments of the waiting pieces, with the same effect. */
const CHARACTERS_MAX = 32 * 1024 * 1024

const RUNS_MAX = { mutation: SCHEDULED_MUTATIONS_MAX, action: SCHEDULED_ACTIONS_MAX }

export class DueQueue {
  #waiting: ScheduledWork[] = []
  /** Work that waits or runs, or that must not start again yet. */
  readonly #known = new Set<string>()
  readonly #running = { mutation: 0, action: 0 }
  readonly #runningByFunction = new Map<string, number>()
  readonly #waitingByFunction = new Map<string, number>()
  /** Characters of the arguments of the pieces that wait. */
  #characters = 0

  get waiting(): number {
    return this.#waiting.length
  }

  /** The due time of the first piece that waits; null where none waits. */
  get oldestDueMicros(): bigint | null {
    return this.#waiting[0]?.dueAtMicros ?? null
  }

  get isHalfEmpty(): boolean {
    return this.#waiting.length <= WAITING_MAX / 2 && this.#characters <= CHARACTERS_MAX / 2
  }

  get running(): number {
    return this.#running.mutation + this.#running.action
  }

  /** Whether any work could start at all. */
  get hasCapacity(): boolean {
    const { mutation, action } = this.#running
    return mutation < RUNS_MAX.mutation || action < RUNS_MAX.action
  }

  has(scheduledId: string): boolean {
    return this.#known.has(scheduledId)
  }

  /**
   * Adds due work that is not known. Returns false where the queue is full. A full queue still
   * takes work of a Function that could start more runs than it has pieces.
   */
  add(work: ScheduledWork): boolean {
    const { function: name, scheduledId, argumentsText } = work
    const waiting = this.#waitingByFunction.get(name) ?? 0
    const isFull = this.#waiting.length >= WAITING_MAX || this.#characters >= CHARACTERS_MAX
    const running = this.#runningByFunction.get(name) ?? 0
    if (isFull && waiting + running >= SCHEDULED_RUNS_MAX) return false
    this.#known.add(scheduledId)
    this.#waiting.push(work)
    this.#waitingByFunction.set(name, waiting + 1)
    this.#characters += argumentsText.length
    return true
  }

  /** Removes the work that may start now, and counts it as running. */
  take(): readonly ScheduledWork[] {
    const started: ScheduledWork[] = []
    const left: ScheduledWork[] = []
    for (const work of this.#waiting) {
      if (this.#begin(work)) started.push(work)
      else left.push(work)
    }
    this.#waiting = left
    return started
  }

  /** Counts the end of a run. The work stays known until `forget`. */
  end({ kind, function: name }: WorkFields): void {
    this.#running[kind] -= 1
    const count = this.#runningByFunction.get(name)! - 1
    if (count === 0) this.#runningByFunction.delete(name)
    else this.#runningByFunction.set(name, count)
  }

  /** Lets a later read find the work again, where it is still pending. */
  forget(scheduledId: string): void {
    this.#known.delete(scheduledId)
  }

  #begin({ kind, function: name, argumentsText }: WorkFields): boolean {
    const count = this.#runningByFunction.get(name) ?? 0
    if (this.#running[kind] >= RUNS_MAX[kind] || count >= SCHEDULED_RUNS_MAX) return false
    this.#running[kind] += 1
    this.#runningByFunction.set(name, count + 1)
    const waiting = this.#waitingByFunction.get(name)! - 1
    if (waiting === 0) this.#waitingByFunction.delete(name)
    else this.#waitingByFunction.set(name, waiting)
    this.#characters -= argumentsText.length
    return true
  }
}
