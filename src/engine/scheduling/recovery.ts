/**
 * The start of the scheduler over what the last server stored: settles the Actions that it left
 * running, then counts the stored work.
 */
import type { StoredDocument } from '../../documents/store.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { decodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import type { Committer } from '../commits/committer.ts'
import { DeliverySizes, isDeliveryText } from '../scheduled-work/delivery-sizes.ts'
import type { PendingWork } from '../scheduled-work/pending-work.ts'
import { workOf } from '../scheduled-work/scheduled-documents.ts'
import { byDueTime, byFinish, type WorkRange, type WorkReads } from './work-reads.ts'
import type { LoadRelease, WorkRuns } from './work-runs.ts'

const SCAN_ROWS = 1_000
const RETRY_MILLIS = 1_000

export interface RecoveryOptions {
  readonly committer: Committer
  readonly system: System
  readonly log: Logger
  readonly pending: PendingWork
  readonly reads: WorkReads
  readonly runs: WorkRuns
  readonly isStopped: () => boolean
}

export class Recovery {
  readonly #options: RecoveryOptions
  #failingSinceMillis: number | null = null

  constructor(options: RecoveryOptions) {
    this.#options = options
  }

  /** Monotonic milliseconds of the first failure of the step that fails now; null for none. */
  get failingSinceMillis(): number | null {
    return this.#failingSinceMillis
  }

  /**
   * Settles what ran, calls `onSettled`, from which on work may start, and counts what is stored.
   * Repeats a step that fails; returns early once the scheduler stops.
   */
  async run(load: LoadRelease, onSettled: () => void): Promise<void> {
    const { committer, pending, isStopped } = this.#options
    // What is pending counted at its assignment, and is not part of the snapshot.
    while (committer.assigned !== committer.durable) await committer.drain()
    pending.reset()
    const snapshot = committer.durable
    const pin = committer.pinSnapshot()
    try {
      await this.#repeat(() => this.#settle(load))
      if (isStopped()) return
      onSettled()
      await this.#repeat(() => this.#count(snapshot))
    } finally {
      committer.unpinSnapshot(pin)
    }
  }

  /** Repeats the step until it succeeds or the scheduler stops. */
  async #repeat(step: () => Promise<void>): Promise<void> {
    const { system, log, isStopped } = this.#options
    while (!isStopped()) {
      try {
        await step()
        this.#failingSinceMillis = null
        return
      } catch (error) {
        this.#failingSinceMillis ??= system.monotonicMillis()
        log.error('schedule.start_failed', { error })
        await new Promise((resolve) => setTimeout(resolve, RETRY_MILLIS))
      }
    }
  }

  /** Settles the Actions that ran when the last server ended. */
  async #settle(load: LoadRelease): Promise<void> {
    const { committer, reads, runs, isStopped } = this.#options
    for (;;) {
      const page = await reads.page(byDueTime('running', SCAN_ROWS), committer.durable)
      for (const { document } of page.documents) await runs.recover(workOf(document), load)
      if (page.documents.length === 0 || isStopped()) return
    }
  }

  /** Counts the work that was stored at the snapshot. */
  async #count(snapshot: number): Promise<void> {
    const byRelease = new Map<ReleaseId, number>()
    const deliveries = new DeliverySizes()
    const measure = ({ text }: StoredDocument) => {
      if (isDeliveryText(text)) deliveries.add(decodeStored(text) as ValueObject, 1)
    }
    for (const state of ['pending', 'running']) {
      for await (const text of this.#texts(byDueTime(state, SCAN_ROWS), snapshot)) {
        measure(text)
        const releaseId = workOf(text).releaseId as ReleaseId
        byRelease.set(releaseId, (byRelease.get(releaseId) ?? 0) + 1)
      }
    }
    let finished = 0
    for await (const text of this.#texts(byFinish(SCAN_ROWS), snapshot)) {
      measure(text)
      finished += 1
    }
    const { pending, isStopped } = this.#options
    if (!isStopped()) pending.add({ byRelease, finished, deliveries })
  }

  async *#texts(range: WorkRange, snapshot: number) {
    const { reads, isStopped } = this.#options
    let afterKey: string | undefined
    while (!isStopped()) {
      const { documents, done } = await reads.page({ ...range, afterKey }, snapshot)
      for (const { document } of documents) yield document
      if (done) return
      afterKey = documents.at(-1)!.key
    }
  }
}
