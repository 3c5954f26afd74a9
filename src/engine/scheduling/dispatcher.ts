/**
 * Starts scheduled work when it is due. It sleeps until the next due time, and wakes for commits
 * that schedule something sooner; nothing polls. Work that is due when its commit is durable starts
 * from the commit, without a read. The wall clock decides what is due, and a step of it is noticed
 * within a minute.
 */
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { ValueObject } from '../../value/values.ts'
import type { Committer } from '../commits/committer.ts'
import type { ScheduledChange } from '../commits/read-set.ts'
import {
  dueAtOf,
  type ScheduledWork,
  stateOf,
  workOf,
  workOfCommit,
} from '../scheduled-work/scheduled-documents.ts'
import { DueQueue } from './due-queue.ts'
import type { Timers } from './timers.ts'
import { byDueTime, type WorkReads } from './work-reads.ts'
import type { RunEnd } from './work-runs.ts'

/** Rows of one page, which block other calls for a millisecond or two. */
const PAGE_MAX = 256
/** Shortest pause between two reads for a full queue. */
const FULL_PAUSE_MILLIS = 1_000
/** The pause after a read for a full queue, as a multiple of its duration. */
const FULL_PAUSE_FACTOR = 20
/** Pause before a run that failed for no fault of its own is repeated. */
const REPEAT_MILLIS = 1_000
/** Pause after due work could not be read. */
const READ_PAUSE_MILLIS = 1_000

export interface DispatcherOptions {
  readonly reads: WorkReads
  readonly committer: Committer
  readonly system: System
  readonly log: Logger
  readonly timers: Timers
  /** Runs the work; never rejects. */
  readonly run: (work: ScheduledWork) => Promise<RunEnd>
  /** Returns whether work may start now. */
  readonly admits: () => boolean
  /** Returns whether applications have called recently. */
  readonly hasCalls: () => boolean
}

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #queue: DueQueue
  #cancelTimer: (() => void) | null = null
  /** The time that the timer waits for; null for none. */
  #wakesAtMicros: bigint | null = null
  #pumping: Promise<void> | null = null
  /** True if the task in progress may have missed a change. */
  #pumpsAgain = false
  /** True if stored work that is not in the queue may be due. */
  #mayHaveMore = true
  /**
   * The key up to which all due work is, or was, in the queue; null to read from the beginning.
   * Work that ended leaves entries of its index behind until they are pruned, which each read from
   * the beginning would pass again.
   */
  #readUpTo: string | null = null
  /** Work of the queue that a later commit made pending again. */
  readonly #pendingAgain = new Set<string>()
  /** Number of times that a read has had to begin again. */
  #restarts = 0
  #isFullReadPaused = false
  #isStarted = false
  #isStopped = false
  #failingSinceMillis: number | null = null
  readonly #runs = new Set<Promise<void>>()
  readonly #repeats = new Set<() => void>()

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#queue = new DueQueue(options.hasCalls)
  }

  /** Monotonic milliseconds of the first of the failed reads in a row; null without one. */
  get failingSinceMillis(): number | null {
    return this.#failingSinceMillis
  }

  /** Pieces that are due and wait for a run, among those in memory. */
  get due(): number {
    return this.#queue.waiting
  }

  /** The due time of the first of the waiting pieces; null if none waits. */
  get oldestDueMicros(): bigint | null {
    return this.#queue.oldestDueMicros
  }

  get running(): number {
    return this.#queue.running
  }

  start(): void {
    this.#isStarted = true
    this.#pump()
  }

  /** Starts nothing more. Runs in progress continue. */
  stop(): void {
    this.#isStopped = true
    this.#clearTimer()
    for (const cancel of this.#repeats) cancel()
  }

  /** Resolves once no run is in progress, and nothing that is due could start. */
  async whenIdle(): Promise<void> {
    while (this.#pumping !== null || this.#runs.size > 0) {
      await this.#pumping
      await Promise.all(this.#runs)
    }
  }

  /** Notices durable changes of scheduled work. */
  onCommit(changes: readonly ScheduledChange[]): void {
    if (!this.#isStarted || this.#isStopped) return
    const nowMicros = this.#options.system.nowMicros()
    let hasUnread = false
    for (const { scheduledId, after } of changes) {
      if (after === null || stateOf(after) !== 'pending') continue
      const dueAtMicros = dueAtOf(after)
      if (dueAtMicros <= nowMicros) hasUnread = !this.#addCommitted(scheduledId, after) || hasUnread
      else if (this.#wakesAtMicros === null || dueAtMicros < this.#wakesAtMicros) {
        this.#sleepUntil(dueAtMicros)
      }
    }
    if (hasUnread) this.#wake()
    else this.#startWaiting()
  }

  /**
   * Adds work to the queue from its commit. Returns false if a read must find it: while the queue
   * is full, nothing may run or older work is not in the queue yet.
   */
  #addCommitted(scheduledId: string, fields: ValueObject): boolean {
    if (this.#queue.has(scheduledId)) {
      // Its run has not returned, and would be taken for the one that the commit asks for.
      this.#pendingAgain.add(scheduledId)
      return true
    }
    if (this.#mayHaveMore || !this.#options.admits()) return false
    return this.#queue.add(workOfCommit(scheduledId, fields))
  }

  /** Reads the due work again, after a change of what is admitted. */
  wake(): void {
    if (this.#isStarted && !this.#isStopped) this.#wake()
  }

  #wake(): void {
    this.#readAgain()
    this.#pump()
  }

  /** Lets the next read begin at the first due work: some may be there that no read has seen. */
  #readAgain(): void {
    this.#mayHaveMore = true
    this.#readUpTo = null
    this.#restarts += 1
  }

  /** Starts what may start, in one task at a time. */
  #pump(): void {
    if (this.#isStopped) return
    if (this.#pumping !== null) {
      this.#pumpsAgain = true
      return
    }
    this.#pumpsAgain = false
    this.#pumping = this.#fill().then(
      () => this.#endPump(null),
      (error: unknown) => this.#endPump(error),
    )
  }

  #endPump(error: unknown): void {
    this.#pumping = null
    if (error === null) this.#failingSinceMillis = null
    else this.#failingSinceMillis ??= this.#options.system.monotonicMillis()
    if (this.#isStopped) return
    if (error === null) {
      if (this.#pumpsAgain) this.#pump()
      return
    }
    this.#options.log.error('schedule.read_failed', { error })
    this.#later(READ_PAUSE_MILLIS, () => this.#wake())
  }

  async #fill(): Promise<void> {
    this.#startWaiting()
    while (this.#canRead()) {
      await this.#read()
      this.#startWaiting()
    }
    if (!this.#isStopped && this.#cancelTimer === null) this.#sleepUntil(null)
  }

  /**
   * A read begins with the work that is in the queue already, so it waits until half of the queue
   * is empty. A full queue may hold work of few Functions that all run as often as they may: then a
   * read finds the work of others, as seldom as its duration demands.
   */
  #canRead(): boolean {
    const { hasCapacity, isHalfEmpty } = this.#queue
    const isOpen = !this.#isStopped && this.#options.admits()
    if (!isOpen || !this.#mayHaveMore || !hasCapacity) return false
    return isHalfEmpty || !this.#isFullReadPaused
  }

  #startWaiting(): void {
    if (this.#isStopped || !this.#options.admits()) return
    for (const work of this.#queue.take()) {
      const run = this.#run(work).finally(() => this.#runs.delete(run))
      this.#runs.add(run)
    }
  }

  async #run(work: ScheduledWork): Promise<void> {
    const end = await this.#options.run(work)
    this.#queue.end(work)
    const { scheduledId } = work
    if (end === 'transient') {
      this.#later(REPEAT_MILLIS, () => {
        this.#forget(scheduledId)
        this.#wake()
      })
    } else if (this.#forget(scheduledId) || end === 'postponed') {
      // A read after its commit may have skipped the work, which was known then.
      this.#readAgain()
    }
    // A read in progress does not delay the work that is in memory.
    this.#startWaiting()
    if (this.#canRead()) this.#pump()
  }

  /** Lets the work start again. Returns whether a commit asked for that meanwhile. */
  #forget(scheduledId: string): boolean {
    this.#queue.forget(scheduledId)
    return this.#pendingAgain.delete(scheduledId)
  }

  #later(millis: number, task: () => void): void {
    const cancel = this.#options.timers.set(millis, () => {
      this.#repeats.delete(cancel)
      task()
    })
    this.#repeats.add(cancel)
  }

  /** Adds due work to the queue; without any left, sleeps until the next due time. */
  async #read(): Promise<void> {
    const { reads, committer, system } = this.#options
    // Changes during the read set it again.
    this.#mayHaveMore = false
    this.#clearTimer()
    const untilMicros = system.nowMicros()
    const pin = committer.pinSnapshot()
    const snapshot = committer.durable
    try {
      if (!(await this.#addDue(untilMicros, snapshot))) {
        this.#mayHaveMore = true
        return
      }
      const next = byDueTime('pending', 1, { afterMicros: untilMicros })
      const [first] = (await reads.page(next, snapshot)).documents
      const stored = first === undefined ? null : workOf(first.document).dueAtMicros
      // A commit after the snapshot may have set the timer to an earlier time.
      const committed = this.#wakesAtMicros
      if (committed === null || (stored !== null && stored < committed)) this.#sleepUntil(stored)
    } catch (error) {
      this.#readAgain()
      throw error
    } finally {
      committer.unpinSnapshot(pin)
    }
  }

  /** Returns whether all due work of the snapshot is in the queue. */
  async #addDue(untilMicros: bigint, snapshot: number): Promise<boolean> {
    const queue = this.#queue
    const { reads, system } = this.#options
    const startedMillis = system.monotonicMillis()
    const isForOthers = !queue.isHalfEmpty
    const range = byDueTime('pending', PAGE_MAX, { untilMicros })
    const restarts = this.#restarts
    let isWhole = true
    let addedUpTo = isForOthers ? null : this.#readUpTo
    this.#readUpTo = null
    let afterKey = addedUpTo ?? undefined
    for (let done = false; !done && !this.#isStopped; ) {
      const page = await reads.page({ ...range, afterKey }, snapshot)
      for (const entry of page.documents) {
        const { document } = entry
        if (!queue.has(document.id) && !queue.add(workOf(document))) isWhole = false
        if (isWhole) addedUpTo = entry.key
      }
      if (!isWhole && !isForOthers) {
        // A change during the read may be before the key.
        if (restarts === this.#restarts) this.#readUpTo = addedUpTo
        this.#pauseFullReads(0)
        return false
      }
      done = page.done
      afterKey = page.documents.at(-1)?.key
    }
    if (isForOthers) this.#pauseFullReads(system.monotonicMillis() - startedMillis)
    return isWhole && !this.#isStopped
  }

  #pauseFullReads(durationMillis: number): void {
    if (this.#isFullReadPaused) return
    this.#isFullReadPaused = true
    this.#later(Math.max(FULL_PAUSE_MILLIS, FULL_PAUSE_FACTOR * durationMillis), () => {
      this.#isFullReadPaused = false
      this.#wake()
    })
  }

  #clearTimer(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = null
    this.#wakesAtMicros = null
  }

  #sleepUntil(dueAtMicros: bigint | null): void {
    this.#clearTimer()
    if (this.#isStopped) return
    const { system, timers } = this.#options
    const { sleepMillisMax } = timers
    const left = dueAtMicros === null ? sleepMillisMax : millisUntil(dueAtMicros, system)
    this.#wakesAtMicros = dueAtMicros
    const wake = () => {
      this.#cancelTimer = null
      this.#wakesAtMicros = null
      this.#wake()
    }
    const millis = Math.min(Math.max(left, 0), sleepMillisMax)
    this.#cancelTimer = timers.set(millis, wake)
  }
}

/** Rounds up, since work must not run early. */
function millisUntil(atMicros: bigint, system: Pick<System, 'nowMicros'>): number {
  return Math.ceil(Number(atMicros - system.nowMicros()) / 1000)
}
