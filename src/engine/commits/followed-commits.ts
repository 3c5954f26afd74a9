/**
 * The commits of another process, followed in their order: what Queries and subscriptions need of a
 * committer, in a process that commits nothing itself.
 */
import { DEFAULT_PLAN, type MemoryPlan } from '../../system/memory/memory-plan.ts'
import { emptyLog, type ReadableCommits } from './committer.ts'
import { PinnedSnapshots, type SnapshotPin } from './pinned-snapshots.ts'
import type { CommitWrites, ReadSet } from './read-set.ts'

export class FollowedCommits implements ReadableCommits {
  readonly #snapshots: PinnedSnapshots
  readonly #writeLog
  #durable: number

  /** `durable` is the newest sequence that was announced. */
  constructor(durable: number, memory: MemoryPlan = DEFAULT_PLAN) {
    this.#durable = durable
    this.#snapshots = new PinnedSnapshots(durable)
    this.#writeLog = emptyLog(durable, memory)
  }

  /** Notes a durable commit. Sequences ascend. */
  follow(sequence: number, writes: CommitWrites): void {
    const oldestPinned = this.#snapshots.oldest(this.#durable)
    this.#writeLog.append({ sequence, writes, oldestPinned })
    this.#durable = sequence
  }

  get durable(): number {
    return this.#durable
  }

  pinSnapshot(): SnapshotPin {
    return this.#snapshots.pin(this.#durable)
  }

  unpinSnapshot(pin: SnapshotPin): void {
    this.#snapshots.unpin(pin)
  }

  changedSince(readSet: ReadSet, snapshot: number): boolean {
    return this.#writeLog.conflicts(readSet, snapshot) !== null
  }

  /** Resolves at once: nothing is pending here. */
  async drain(): Promise<void> {}
}
