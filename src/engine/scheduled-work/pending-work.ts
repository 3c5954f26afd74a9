/**
 * Counts of scheduled work, kept in memory from the changes of commits. A piece counts from the
 * assignment of the commit that schedules it until the commit that ends it is durable: a Release
 * that is retired meanwhile would be unable to execute it, after a crash too.
 */
import type { ReleaseId } from '../../value/ids.ts'
import type { ValueObject } from '../../value/values.ts'
import type { ScheduledChange } from '../commits/read-set.ts'
import { DeliverySizes } from './delivery-sizes.ts'
import { stateOf } from './scheduled-documents.ts'

/** Counts of stored work, by the scan of the start. */
export interface StoredCounts {
  readonly byRelease: ReadonlyMap<ReleaseId, number>
  readonly finished: number
  readonly deliveries: DeliverySizes
}

/** Unfinished work by Release, and the rows of the history. */
export class PendingWork {
  /** Sizes of the deliveries among the work. */
  readonly deliveries = new DeliverySizes()
  readonly #byRelease = new Map<ReleaseId, number>()
  #unfinished = 0
  #finished = 0
  #isComplete = false

  /** Pending and running pieces. */
  get count(): number {
    return this.#unfinished
  }

  /** Rows of the history. */
  get finished(): number {
    return this.#finished
  }

  /** Returns whether the work that was stored before the start is counted too. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** Unfinished pieces that a Release has to execute. */
  countOf(releaseId: ReleaseId): number {
    return this.#byRelease.get(releaseId) ?? 0
  }

  /** Adds what was stored at the snapshot after which `change` counts. */
  add({ byRelease, finished, deliveries }: StoredCounts): void {
    this.deliveries.addAll(deliveries)
    for (const [releaseId, count] of byRelease) this.#count(releaseId, count)
    this.#finished += finished
    this.#isComplete = true
  }

  /** Starts over: later changes count from here. */
  reset(): void {
    this.deliveries.reset()
    this.#byRelease.clear()
    this.#unfinished = 0
    this.#finished = 0
    this.#isComplete = false
  }

  /** Counts what a commit whose sequence is assigned adds. */
  assign(change: ScheduledChange): void {
    this.deliveries.assign(change)
    this.#countAdded(change, 1)
  }

  /** Undoes `assign` for a commit that was rolled back. */
  revert(change: ScheduledChange): void {
    this.deliveries.revert(change)
    this.#countAdded(change, -1)
  }

  /** Counts what a durable commit removes. */
  commit(change: ScheduledChange): void {
    this.deliveries.commit(change)
    const { before, after } = change
    const wasUnfinished = isUnfinished(before)
    if (before !== null && wasUnfinished && !isUnfinished(after)) this.#count(releaseOf(before), -1)
    if (before !== null && !wasUnfinished) this.#finished -= 1
  }

  #countAdded({ before, after }: ScheduledChange, by: 1 | -1): void {
    if (after === null) return
    if (!isUnfinished(after)) this.#finished += by
    else if (!isUnfinished(before)) this.#count(releaseOf(after), by)
  }

  #count(releaseId: ReleaseId, by: number): void {
    this.#unfinished += by
    const count = this.countOf(releaseId) + by
    if (count === 0) this.#byRelease.delete(releaseId)
    else this.#byRelease.set(releaseId, count)
  }
}

function releaseOf(fields: ValueObject): ReleaseId {
  return fields.get('releaseId') as ReleaseId
}

/** Returns whether the fields are those of pending or running work; false for none. */
export function isUnfinished(fields: ValueObject | null): boolean {
  if (fields === null) return false
  const state = stateOf(fields)
  return state === 'pending' || state === 'running'
}
