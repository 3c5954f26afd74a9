/** Deletes finished work after 7 days, and the oldest beyond a number of rows. */
import { PeriodicSweep } from '../../system/periodic-sweep.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Committer } from '../commits/committer.ts'
import type { SystemDocuments } from '../files/system-documents.ts'
import { HISTORY_MICROS, HISTORY_ROWS_MAX } from '../limits.ts'
import type { PendingWork } from '../scheduled-work/pending-work.ts'
import { byFinish, type WorkReads } from './work-reads.ts'

const PERIOD_MILLIS = 30_000
/** Most rows deleted in one transaction, so that commits never wait long for it. */
const ROWS_MAX = 200

export interface HistoryOptions {
  readonly reads: WorkReads
  readonly documents: SystemDocuments
  readonly committer: Committer
  readonly system: System
  readonly log: Logger
  readonly pending: PendingWork
  /** Rows that are kept; `HISTORY_ROWS_MAX` where absent. */
  readonly rowsMax?: number
}

export class History {
  readonly #options: HistoryOptions
  /** Starts once the scheduler does. */
  readonly sweep: PeriodicSweep

  constructor(options: HistoryOptions) {
    this.#options = options
    this.sweep = new PeriodicSweep({
      periodMillis: PERIOD_MILLIS,
      sweep: async (isStopped) => {
        while (!isStopped() && (await this.prune()));
      },
      onError: (error) => options.log.error('schedule.prune_failed', { error }),
    })
  }

  /** Deletes one batch. Returns whether more may follow. */
  async prune(): Promise<boolean> {
    const { reads, documents, committer, system, pending } = this.#options
    const { rowsMax = HISTORY_ROWS_MAX } = this.#options
    const excess = Math.max(0, pending.finished - rowsMax)
    const oldestMicros = system.nowMicros() - HISTORY_MICROS
    const range =
      excess > 0 ? byFinish(Math.min(excess, ROWS_MAX)) : byFinish(ROWS_MAX, oldestMicros)
    const pin = committer.pinSnapshot()
    let ids: readonly string[]
    try {
      const page = await reads.page(range, committer.durable)
      ids = page.documents.map(({ document }) => document.id)
    } finally {
      committer.unpinSnapshot(pin)
    }
    if (ids.length === 0) return false
    await documents.change(async (transaction) => {
      for (const id of ids) {
        if ((await transaction.get(id)) !== null) await transaction.delete(id)
      }
    })
    return excess > ids.length || ids.length === ROWS_MAX
  }
}
