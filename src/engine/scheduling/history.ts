/**
 * Deletes finished work after 7 days, and before that the oldest beyond a number of rows and the
 * oldest deliveries of a mount beyond their size.
 */
import type { StoredDocument } from '../../documents/store.ts'
import { PeriodicSweep } from '../../system/periodic-sweep.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Committer } from '../commits/committer.ts'
import type { SystemDocuments } from '../files/system-documents.ts'
import { HISTORY_MICROS, HISTORY_ROWS_MAX } from '../limits.ts'
import { FINISHED_CHARACTERS_MAX, isDeliveryText } from '../scheduled-work/delivery-sizes.ts'
import type { PendingWork } from '../scheduled-work/pending-work.ts'
import { readWork, workOf } from '../scheduled-work/scheduled-documents.ts'
import { byFinish, type WorkPage, type WorkRange, type WorkReads } from './work-reads.ts'

const PERIOD_MILLIS = 30_000
/** Most rows deleted in one transaction, so that commits never wait long for it. */
const ROWS_MAX = 200
/** Characters of the rows that one transaction deletes, beyond which it takes no further row. */
const CHARACTERS_MAX = 1024 * 1024
/** Share of the size of the deliveries that a deletion leaves, so that the next one comes later. */
const LEFT_SHARE = 3 / 4
/** Shortest pause between two sweeps that the size of deliveries causes. */
const WAKE_MILLIS = 1_000

export interface HistoryOptions {
  readonly reads: WorkReads
  readonly documents: SystemDocuments
  readonly committer: Committer
  readonly system: System
  readonly log: Logger
  readonly pending: PendingWork
  /** Rows that are kept; `HISTORY_ROWS_MAX` where absent. */
  readonly rowsMax?: number
  /** Size of the deliveries of a mount; `FINISHED_CHARACTERS_MAX` where absent. */
  readonly deliveriesMax?: number
}

export class History {
  readonly #options: HistoryOptions
  /** Starts once the scheduler does. */
  readonly sweep: PeriodicSweep
  #wokenMillis = Number.NEGATIVE_INFINITY

  constructor(options: HistoryOptions) {
    this.#options = options
    this.sweep = new PeriodicSweep({
      periodMillis: PERIOD_MILLIS,
      sweep: async (isStopped) => {
        while (!isStopped() && (await this.prune()));
        await this.pruneDeliveries(isStopped)
      },
      onError: (error) => options.log.error('schedule.prune_failed', { error }),
    })
  }

  get #deliveriesMax(): number {
    return this.#options.deliveriesMax ?? FINISHED_CHARACTERS_MAX
  }

  /** Notices that work has ended. A sender of long deliveries does not wait for the period. */
  onCommit(): void {
    const { pending, system } = this.#options
    if (pending.deliveries.beyond(this.#deliveriesMax).size === 0) return
    const nowMillis = system.monotonicMillis()
    if (nowMillis < this.#wokenMillis + WAKE_MILLIS) return
    this.#wokenMillis = nowMillis
    this.sweep.wake()
  }

  /** Deletes one batch. Returns whether more may follow. */
  async prune(): Promise<boolean> {
    const { system, pending } = this.#options
    const { rowsMax = HISTORY_ROWS_MAX } = this.#options
    const excess = Math.max(0, pending.finished - rowsMax)
    const oldestMicros = system.nowMicros() - HISTORY_MICROS
    const range =
      excess > 0 ? byFinish(Math.min(excess, ROWS_MAX)) : byFinish(ROWS_MAX, oldestMicros)
    const page = await this.#page(range)
    const { documents, done } = page
    await this.#delete(documents.map(({ document }) => document))
    // A page of long work has few rows.
    return documents.length > 0 && (excess > documents.length || !done)
  }

  /** Deletes the oldest deliveries of each mount whose history is too long. */
  async pruneDeliveries(isStopped: () => boolean = () => false): Promise<void> {
    const max = this.#deliveriesMax
    const excess = new Map<string, number>()
    for (const [mount, size] of this.#options.pending.deliveries.beyond(max)) {
      excess.set(mount, size - max * LEFT_SHARE)
    }
    let afterKey: string | undefined
    while (excess.size > 0 && !isStopped()) {
      const page = await this.#page({ ...byFinish(ROWS_MAX), afterKey })
      const oldest: StoredDocument[] = []
      for (const { document } of page.documents) {
        if (!isDeliveryText(document.text)) continue
        const { http, argumentsText } = workOf(document)
        const left = http === undefined ? undefined : excess.get(http.mount)
        if (left === undefined) continue
        oldest.push(document)
        if (left > argumentsText.length) excess.set(http!.mount, left - argumentsText.length)
        else excess.delete(http!.mount)
      }
      await this.#delete(oldest)
      if (page.done) return
      afterKey = page.documents.at(-1)!.key
    }
  }

  async #page(range: WorkRange): Promise<WorkPage> {
    const { reads, committer } = this.#options
    const pin = committer.pinSnapshot()
    try {
      return await reads.page(range, committer.durable)
    } finally {
      committer.unpinSnapshot(pin)
    }
  }

  /** Deletes what is still finished: an operator may have made it run again meanwhile. */
  async #delete(rows: readonly StoredDocument[]): Promise<void> {
    for (let next = 0; next < rows.length; ) {
      const ids: string[] = []
      // A transaction may read only so much, and work may be as long as a document.
      for (let characters = 0; next < rows.length && characters < CHARACTERS_MAX; next++) {
        ids.push(rows[next]!.id)
        characters += rows[next]!.text.length
      }
      await this.#options.documents.change(async (transaction) => {
        for (const id of ids) {
          const work = await readWork(transaction, id)
          if (work !== null && work.finishedAtMicros !== null) await transaction.delete(id)
        }
      })
    }
  }
}
