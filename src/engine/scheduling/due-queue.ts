/** The due work in memory, in the order of its due times, and what of it may start. */
import { SCHEDULED_ACTIONS_MAX, SCHEDULED_MUTATIONS_MAX, SCHEDULED_RUNS_MAX } from '../limits.ts'
import type { ScheduledWork, WorkFields } from './scheduled-documents.ts'

const RUNS_MAX = { mutation: SCHEDULED_MUTATIONS_MAX, action: SCHEDULED_ACTIONS_MAX }

export class DueQueue {
  #waiting: ScheduledWork[] = []
  /** Work that waits or runs, or that must not start again yet. */
  readonly #known = new Set<string>()
  readonly #running = { mutation: 0, action: 0 }
  readonly #runningByFunction = new Map<string, number>()

  get waiting(): number {
    return this.#waiting.length
  }

  /** The due time of the first piece that waits; null where none waits. */
  get oldestDueMicros(): bigint | null {
    return this.#waiting[0]?.dueAtMicros ?? null
  }

  /** Number of pieces that a read of the due work finds again. */
  get known(): number {
    return this.#known.size
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

  /** Adds due work that is not known. */
  add(work: ScheduledWork): void {
    this.#known.add(work.scheduledId)
    this.#waiting.push(work)
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

  #begin({ kind, function: name }: WorkFields): boolean {
    const count = this.#runningByFunction.get(name) ?? 0
    if (this.#running[kind] >= RUNS_MAX[kind] || count >= SCHEDULED_RUNS_MAX) return false
    this.#running[kind] += 1
    this.#runningByFunction.set(name, count + 1)
    return true
  }
}
