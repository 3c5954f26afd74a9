/** Scheduled work of one Environment: wires its parts, and is what the engine and operators see. */
import type { DocumentStore } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { Traces } from '../../telemetry/traces/spans.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { PENDING_MAX } from '../../value/scheduling/scheduled-work.ts'
import type { CallAdmission } from '../admission/call-admission.ts'
import type { Committer } from '../commits/committer.ts'
import type { ScheduledChange } from '../commits/read-set.ts'
import type { SystemDocuments } from '../files/system-documents.ts'
import { checkRoomToRerun } from '../inbox/room.ts'
import { isUnfinished, type PendingWork } from '../scheduled-work/pending-work.ts'
import {
  cancelWork,
  type EndedWork,
  endedWorkOf,
  type Rerun,
  readWork,
  rerunWork,
  type ScheduledSummary,
  type ScheduledWork,
  summaryOf,
} from '../scheduled-work/scheduled-documents.ts'
import type { SystemTablesLoader } from '../tables/system-tables.ts'
import type { HealthStatus } from '../usage/health.ts'
import { Crons } from './crons/crons.ts'
import { Deliveries } from './deliveries.ts'
import { Dispatcher } from './dispatcher.ts'
import { History } from './history.ts'
import { Recovery } from './recovery.ts'
import { RunStatistics } from './run-statistics.ts'
import { schedulerHealth } from './scheduler-health.ts'
import { REAL_TIMERS, type Timers } from './timers.ts'
import { WorkReads } from './work-reads.ts'
import { type LoadRelease, type RunEnd, WorkRuns } from './work-runs.ts'
import { WorkWaits } from './work-waits.ts'

/** The parts of the Product that the scheduler needs. */
export interface SchedulerHost {
  /** Loads the Release that work is pinned to. Rejects with a Fault where it cannot run. */
  readonly load: LoadRelease
  /** Returns whether the Environment serves. */
  readonly admits: () => boolean
  /** Returns whether the Release is retired. Absent if Releases never are. */
  readonly isRetired?: (releaseId: ReleaseId) => boolean
}

/** Receives the durable changes of scheduled work of one commit. It must not throw. */
export type WorkListener = (changes: readonly ScheduledChange[]) => void

export interface SchedulerOptions {
  readonly store: DocumentStore
  readonly committer: Committer
  readonly documents: SystemDocuments
  readonly tables: SystemTablesLoader
  readonly calls: Pick<CallAdmission, 'mutation' | 'action' | 'hasCalls'>
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
  /** The counts that calls check before they schedule. */
  readonly pending: PendingWork
  /** Default: the timers of the runtime. Another kind belongs to a `system` with its clock. */
  readonly timers?: Timers
  /** Null or absent where nothing is traced. */
  readonly traces?: Traces | null | undefined
}

export interface WorkList {
  readonly items: readonly ScheduledSummary[]
  /** ID to continue after; null for the last page. */
  readonly nextId: string | null
}

export interface SchedulerStatistics {
  /** Pending and running pieces. */
  readonly unfinished: number
  readonly running: number
  /** Pieces in memory that are due and wait for a run. */
  readonly due: number
  /** Characters of the deliveries that are stored. */
  readonly deliveryCharacters: number
  /** Requests that wait for the end of a piece. */
  readonly waits: number
  /** Requests since the start of the server whose time of waiting ended. */
  readonly waitsExpired: number
  /** Runs since the start of the server. */
  readonly succeeded: number
  /** Failed runs, those that are attempted again included. */
  readonly failed: number
}

export class Scheduler {
  readonly #options: SchedulerOptions
  readonly #reads: WorkReads
  readonly #runs: WorkRuns
  readonly #history: History
  readonly #dispatcher: Dispatcher
  readonly #statistics: RunStatistics
  readonly #recovery: Recovery
  /** The Crons in force. */
  readonly crons: Crons
  /** The deliveries of other services. */
  readonly deliveries: Deliveries
  readonly #waits: WorkWaits
  readonly #listeners: WorkListener[] = []
  #host: SchedulerHost | null = null
  #starting: Promise<void> | null = null
  #isStopped = false

  constructor(options: SchedulerOptions) {
    this.#options = options
    this.#reads = new WorkReads(options.store, options.tables)
    const isStopped = () => this.#isStopped
    this.#runs = new WorkRuns({ ...options, isStopped })
    const parts = { reads: this.#reads, runs: this.#runs }
    this.#recovery = new Recovery({ ...options, ...parts, isStopped })
    this.deliveries = new Deliveries(this.#reads, options.committer)
    this.#history = new History({ ...options, reads: this.#reads })
    const { timers = REAL_TIMERS } = options
    const shared = { ...options, timers, admits: () => this.#host!.admits() }
    this.#dispatcher = new Dispatcher({
      ...shared,
      reads: this.#reads,
      run: (work) => this.#run(work),
      hasCalls: () => options.calls.hasCalls,
    })
    this.crons = new Crons(shared)
    this.#statistics = new RunStatistics(options)
    this.#waits = new WorkWaits({ ...shared, read: (id) => this.readEnded(id) })
  }

  get statistics(): SchedulerStatistics {
    return {
      unfinished: this.#options.pending.count,
      running: this.#dispatcher.running,
      due: this.#dispatcher.due,
      deliveryCharacters: this.#options.pending.deliveries.total,
      waits: this.#waits.count,
      waitsExpired: this.#waits.expired,
      succeeded: this.#statistics.succeeded,
      failed: this.#statistics.failed,
    }
  }

  get health(): HealthStatus {
    const { system } = this.#options
    const oldestMicros = this.#dispatcher.oldestDueMicros
    return schedulerHealth({
      failingSinceMillis: [
        this.#recovery.failingSinceMillis,
        this.#dispatcher.failingSinceMillis,
        this.crons.failingSinceMillis,
      ],
      nowMillis: system.monotonicMillis(),
      waitingMicros: oldestMicros === null ? null : system.nowMicros() - oldestMicros,
    })
  }

  /**
   * Number of unfinished pieces that the Release has to execute; null while the work that was
   * stored before the start is still being counted.
   */
  pendingOf(releaseId: ReleaseId): number | null {
    const { pending } = this.#options
    return pending.isComplete ? pending.countOf(releaseId) : null
  }

  /** Settles what the last server left running, then runs work when it is due. Never throws. */
  start(host: SchedulerHost): void {
    this.#host = host
    this.#starting = this.#recovery
      .run(host.load, () => this.#startParts())
      .catch((error: unknown) => this.#options.log.error('schedule.start_failed', { error }))
  }

  /** Starts what is due at once, after the Environment began to serve again. */
  wake(): void {
    this.#dispatcher.wake()
    this.crons.wake()
  }

  /** Starts nothing more. */
  stop(): void {
    this.#isStopped = true
    this.#waits.stop()
    this.crons.stop()
    this.#dispatcher.stop()
  }

  /**
   * Starts nothing more; resolves once what runs has ended and is recorded. Until `stop`, a record
   * that cannot be stored is tried again.
   */
  async drain(): Promise<void> {
    this.#waits.stop()
    this.crons.stop()
    this.#dispatcher.stop()
    await this.#dispatcher.whenIdle()
  }

  /** Resolves once every run has ended and is recorded. Call it after `stop`. */
  async whenIdle(): Promise<void> {
    await this.whenSettled()
    await this.#history.sweep.stop()
    this.#statistics.stop()
  }

  /** Resolves once nothing is in progress: all that was due by the clock has ended or waits. */
  async whenSettled(): Promise<void> {
    await this.#starting
    // The end of a run may make a Cron due.
    await this.crons.whenIdle()
    await this.#dispatcher.whenIdle()
    await this.crons.whenIdle()
    await this.#dispatcher.whenIdle()
  }

  listen(listener: WorkListener): void {
    this.#listeners.push(listener)
  }

  /**
   * Counts the changes of a commit whose sequence is about to be assigned. Throws RELEASE_RETIRED
   * where it schedules work of a retired Release, or makes failed work run again there, which could
   * never run: a call that was in flight at the retirement fails instead.
   */
  onAssign(changes: readonly ScheduledChange[]): void {
    let checked: unknown = null
    for (const { before, after } of changes) {
      const releaseId = after?.get('releaseId')
      const isAgain = before !== null && isUnfinished(after) && !isUnfinished(before)
      if (!(before === null || isAgain)) continue
      if (releaseId === undefined || releaseId === checked) continue
      if (this.#host?.isRetired?.(releaseId as ReleaseId)) throw new Fault('RELEASE_RETIRED')
      checked = releaseId
    }
    for (const change of changes) this.#options.pending.assign(change)
  }

  /** Undoes `onAssign` for a commit that was not stored. */
  onRollback(changes: readonly ScheduledChange[]): void {
    for (const change of changes) this.#options.pending.revert(change)
  }

  /** Notices durable changes of scheduled work. It must not throw. */
  onCommit(changes: readonly ScheduledChange[]): void {
    for (const change of changes) this.#options.pending.commit(change)
    this.#dispatcher.onCommit(changes)
    this.crons.onCommit(changes)
    this.#history.onCommit()
    this.#waits.onCommit(changes)
    for (const listener of this.#listeners) listener(changes)
  }

  /** Returns a page of all work, the history included, in the order of the IDs. */
  async list(afterId: string | null, limit: number): Promise<WorkList> {
    const { committer } = this.#options
    const pin = committer.pinSnapshot()
    try {
      const items = await this.#reads.after(afterId, limit + 1, committer.durable)
      const page = items.slice(0, limit)
      return { items: page, nextId: items.length > limit ? page.at(-1)!.scheduledId : null }
    } finally {
      committer.unpinSnapshot(pin)
    }
  }

  /** Returns one piece of work with its arguments; null if there is none. */
  find(scheduledId: string): Promise<ScheduledWork | null> {
    return this.#options.documents.read((transaction) => readWork(transaction, scheduledId))
  }

  /** Cancels pending work. Returns it as it is then; null if there is none. */
  cancel(
    scheduledId: string,
  ): Promise<{ readonly work: ScheduledSummary; readonly hasChanged: boolean } | null> {
    const { documents, system } = this.#options
    return documents.change(async (transaction) => {
      const hasChanged = await cancelWork(transaction, scheduledId, system.nowMicros())
      const work = await readWork(transaction, scheduledId)
      return work === null ? null : { work: summaryOf(work), hasChanged }
    })
  }

  /**
   * Makes failed work run again. Returns it as it is then, with false for work that has not failed
   * and for a repeat of the request; null if there is none. Rejects with RELEASE_RETIRED, and with
   * BUSY while no more work may be pending, or no more of a delivery's mount.
   */
  rerun(
    scheduledId: string,
    rerun: Omit<Rerun, 'dueAtMicros'>,
  ): Promise<{ readonly work: ScheduledSummary; readonly hasChanged: boolean } | null> {
    const { documents, system, pending } = this.#options
    return documents.change(async (transaction) => {
      const next = { ...rerun, dueAtMicros: system.nowMicros() }
      const hasChanged = await rerunWork(transaction, scheduledId, next)
      const work = await readWork(transaction, scheduledId)
      if (work === null) return null
      // What does not run again needs no room.
      if (hasChanged) checkRerun(pending, work)
      return { work: summaryOf(work), hasChanged }
    })
  }

  /** Waits for the end of work (work-waits.ts). */
  whenEnded(scheduledId: string, signal?: AbortSignal): Promise<EndedWork | null> {
    return this.#waits.whenEnded(scheduledId, signal)
  }

  /** Reads work as the end of a wait is; null if it has not ended. */
  readEnded(scheduledId: string): Promise<EndedWork | null> {
    return this.#options.documents.read(async (transaction) =>
      endedWorkOf(await transaction.get(scheduledId)),
    )
  }

  async #run(work: ScheduledWork): Promise<RunEnd> {
    this.#statistics.started(work, this.#options.system.nowMicros())
    const end = await this.#runs.run(work, this.#host!.load)
    this.#statistics.ended(work, end)
    return end
  }

  #startParts(): void {
    this.#dispatcher.start()
    this.crons.start()
    this.#history.sweep.start()
  }
}

/** Throws BUSY if the work must not be pending again now. */
function checkRerun(pending: PendingWork, { http }: ScheduledWork): void {
  if (http !== undefined) checkRoomToRerun(pending, http.mount)
  else if (pending.count >= PENDING_MAX) {
    throw new Fault('BUSY', { detail: `pending scheduled work: ${PENDING_MAX}` })
  }
}
