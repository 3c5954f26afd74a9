/**
 * Deletes document versions that no snapshot sees, and idempotency records after 30 days. It
 * deletes few rows at a time, so that commits never wait long for it.
 */
import type { DocumentStore } from '../../documents/store.ts'
import { PeriodicSweep } from '../../system/periodic-sweep.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Committer } from './committer.ts'

const PERIOD_MILLIS = 30_000
/** Age at which a replaced version is deleted, so that a slow reader finds its snapshot. */
const VERSIONS_MICROS = 10n * 60n * 1_000_000n
/** @limit Calls: time for which a repeated Mutation gets its first result */
export const OPERATIONS_MICROS = 30n * 24n * 3_600n * 1_000_000n
/** Most rows deleted in one transaction of the store. */
const ROWS_MAX = 2_000

export interface RetentionOptions {
  readonly store: Pick<DocumentStore, 'prune' | 'status'>
  readonly committer: Pick<Committer, 'durable' | 'oldestHeld'>
  readonly system: System
  readonly log: Logger
}

export class Retention {
  readonly #options: RetentionOptions
  readonly #sweep: PeriodicSweep
  /** The durable sequence one period ago. Invocations end sooner, so none reads before it. */
  #previousDurable: number

  constructor(options: RetentionOptions) {
    this.#options = options
    this.#previousDurable = options.committer.durable
    this.#sweep = new PeriodicSweep({
      periodMillis: PERIOD_MILLIS,
      sweep: (isStopped) => this.#prune(isStopped),
      onError: (error) => options.log.error('retention.failed', { error }),
    })
  }

  start(): void {
    this.#sweep.start()
  }

  /** Stops the timer and waits for the sweep that is running. */
  stop(): Promise<void> {
    return this.#sweep.stop()
  }

  async #prune(isStopped: () => boolean): Promise<void> {
    const { store, committer, system } = this.#options
    const oldestSnapshot = this.#previousDurable
    this.#previousDurable = committer.durable
    const now = system.nowMicros()
    let more = true
    while (more && !isStopped() && store.status.state === 'open') {
      const pruned = await store.prune({
        oldestSnapshot: Math.min(oldestSnapshot, committer.oldestHeld),
        beforeMicros: now - VERSIONS_MICROS,
        operationsBeforeMicros: now - OPERATIONS_MICROS,
        rowsMax: ROWS_MAX,
      })
      more = pruned.more
    }
  }
}
