/**
 * The hot store of operational log records: a SQLite file that a thread writes in batches, and the
 * archive of its segments. Adding a record never waits; a record without room is dropped, counted,
 * and reported by a record of the log itself.
 */
import type { System } from '../../system/system.ts'
import { ensureOwnFile } from '../files.ts'
import { Archiver, type ArchiverOptions } from './archiver.ts'
import { type Found, type LogFilter, LogReads } from './log-reads.ts'
import type { ArchiveState, DroppedRecords, LogBatch, PruneResult } from './log-rows.ts'
import { LogThread } from './log-thread.ts'
import { lostSince, UnwrittenFile } from './unwritten-file.ts'

const NONE: DroppedRecords = { rate: 0, queue: 0, failed: 0 }

export interface LogStoreOptions {
  /** Path of the SQLite file. */
  readonly path: string
  /** Path of the file that counts records that are not written, which survives a kill. */
  readonly unwrittenPath: string
  /** Directory of the archive segments. */
  readonly directory: string
  readonly environmentId: string
  readonly system: Pick<System, 'monotonicMillis' | 'nowMicros'>
  /** Retention of records and segments, and the place of segments. */
  readonly archive: Pick<ArchiverOptions, 'remote' | 'segments' | 'retention'>
  /** Makes the JSON of the record that reports dropped records. */
  readonly reportDropped: (dropped: DroppedRecords) => string
  /** Called for every dropped record. */
  readonly onDropped: () => void
  /** Called when the archive fails or a segment is damaged, and when that changes. */
  readonly onDegraded: (reason: string) => void
  readonly onSegmentsRemoved: ArchiverOptions['onRemoved']
  /** Called when the writer thread ended by itself. */
  readonly onThreadEnded: (reason: string, isRestarted: boolean) => void
  /** Starts the writer thread. */
  readonly createWorker?: (() => Worker) | undefined
}

/**
 * The rate is promised (contract/wire.md, Logs).
 * @limit Logs: records of one Environment in a second
 */
export const LOG_RECORDS_PER_SECOND_MAX = 10_000
/**
 * Two seconds at the highest rate, for a disk that stalls.
 * @limit Logs: records that wait to be written
 */
export const LOG_QUEUE_RECORDS_MAX = 20_000
/** Bounds the memory of the queue: with records of 64 KiB its count alone would allow 1.2 GiB. */
const QUEUE_CHARACTERS_MAX = 32 * 1024 * 1024
const BATCH_RECORDS_MAX = 2_000
/** A batch gathers what comes within this time. */
const BATCH_MILLIS = 10
/** Minimum time between reports of dropped records, so that they do not fill the log themselves. */
const REPORT_MILLIS = 1_000

export class LogStore {
  readonly #options: LogStoreOptions
  readonly #thread: LogThread
  readonly #reads: LogReads
  readonly #archiver: Archiver
  readonly #wakes = new Set<() => void>()
  /** The JSON of records. The last one has the sequence before `#next`. */
  #queue: string[] = []
  #queuedCharacters = 0
  /** The sequence of the next record. */
  #next: number
  /** The newest record that readers can see. */
  #written: number
  #dropped: { rate: number; queue: number; failed: number }
  /** The batch that is being written, and what its report counts. */
  #inFlight: LogBatch | null = null
  #reported: DroppedRecords | null = null
  readonly #unwritten: UnwrittenFile
  #isUnwrittenStale = false
  #secondStart = 0
  #recordsOfSecond = 0
  #reportedAt = Number.NEGATIVE_INFINITY
  #batchTimer: ReturnType<typeof setTimeout> | null = null
  #writing: Promise<void> | null = null
  #writeFailure: string | null = null
  #isClosed = false

  private constructor(options: LogStoreOptions, thread: LogThread, next: number) {
    this.#options = options
    this.#thread = thread
    this.#written = next - 1
    this.#unwritten = new UnwrittenFile(options.unwrittenPath)
    const { lost, nextMin } = lostSince(this.#unwritten.read(), next - 1)
    this.#next = Math.max(next, nextMin)
    this.#dropped = { ...lost }
    for (let i = 0; i < lost.rate + lost.queue + lost.failed; i++) options.onDropped()
    this.#reads = new LogReads(options.path)
    const { archive, system, directory, onDegraded, onSegmentsRemoved: onRemoved } = options
    const parts = { thread, reads: this.#reads, system, directory }
    this.#archiver = new Archiver({ ...parts, ...archive, onDegraded, onRemoved })
    this.#noteUnwritten()
    this.#schedule()
  }

  /** Rejects with a LogFailure, or SERVER_PRODUCT_ROOT_INVALID or _UNAVAILABLE. */
  static async open(options: LogStoreOptions): Promise<LogStore> {
    const { path, directory, environmentId, system, createWorker } = options
    // Created before SQLite opens it, as SQLite's log files take their mode from this file.
    ensureOwnFile(path)
    ensureOwnFile(options.unwrittenPath)
    const thread = new LogThread({
      opening: () => ({
        path,
        directory,
        environmentId,
        now: Number(system.nowMicros()),
        isRemote: options.archive.remote !== null,
      }),
      monotonicMillis: () => system.monotonicMillis(),
      onEnded: options.onThreadEnded,
      createWorker,
    })
    try {
      return new LogStore(options, thread, await thread.open())
    } catch (error) {
      await thread.close().catch(() => {})
      throw error
    }
  }

  /**
   * Returns how many of `records` have room now, and counts the others as dropped. It
   * reserves nothing: the caller adds the records at once.
   */
  admit(records: number): number {
    const room = this.#room()
    if (records <= room.records) return records
    this.#drop(room.bound, records - room.records)
    this.#noteUnwritten()
    this.#schedule()
    return room.records
  }

  /** Queues the JSON of a record, or drops it. Never waits and never throws. */
  add(record: string): void {
    const reason = this.#reasonToDrop(record)
    if (reason === null) this.#enqueue(record)
    else this.#drop(reason, 1)
    this.#noteUnwritten()
    this.#schedule()
  }

  /** The newest record that readers can see; 0 before the first one. */
  get newest(): number {
    return this.#written
  }

  /** The reason why the newest batch or segment failed, or the damaged segment; null if neither. */
  get degraded(): string | null {
    return this.#writeFailure ?? this.#archiver.failure
  }

  /** The reason why records are not written; null while the writer thread runs. */
  get stopped(): string | null {
    return this.#thread.stopped
  }

  get queued(): number {
    return this.#queue.length
  }

  range(): ReturnType<LogReads['range']> {
    return this.#reads.range()
  }

  isReadable(): boolean {
    try {
      this.#reads.range()
      return true
    } catch {
      return false
    }
  }

  async after(after: number, filter: LogFilter, limit: number): Promise<Found> {
    // Read first: an empty file has no record up to here.
    const newest = this.#written
    const found = await this.#reads.after(after, filter, limit)
    const isEmpty = found.records.length === 0 && this.#reads.range() === null
    return isEmpty ? { records: [], end: Math.max(found.end, newest) } : found
  }

  newestOf(filter: LogFilter, limit: number): Promise<Found> {
    return this.#reads.newest(filter, limit)
  }

  /** Calls `wake` after each batch. Returns a function that removes it. */
  onWritten(wake: () => void): () => void {
    this.#wakes.add(wake)
    return () => this.#wakes.delete(wake)
  }

  /** Rejects with a LogFailure. */
  archiveState(): Promise<ArchiveState> {
    return this.#archiver.state()
  }

  /** Rejects with a LogFailure, UNAVAILABLE or PRODUCT_UNAVAILABLE. */
  prune(request: Parameters<Archiver['prune']>[0]): Promise<PruneResult> {
    return this.#archiver.prune(request)
  }

  /** Runs a turn of the archive at once. Never rejects. */
  archive(): Promise<void> {
    return this.#archiver.run()
  }

  /** Resolves when everything that was added is written or dropped. */
  async flushed(): Promise<void> {
    for (;;) {
      this.#write()
      if (this.#writing === null) return
      await this.#writing
    }
  }

  /** Writes what is queued, then closes the file. Never rejects. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#archiver.close()
    if (this.#batchTimer !== null) clearTimeout(this.#batchTimer)
    this.#reportedAt = Number.NEGATIVE_INFINITY
    await this.flushed()
    this.#isClosed = true
    this.#reads.close()
    await this.#thread.close().catch(() => {})
    this.#writeUnwritten()
    this.#unwritten.close()
  }

  #reasonToDrop(record: string): keyof DroppedRecords | null {
    const room = this.#room()
    if (room.records === 0) return room.bound
    this.#recordsOfSecond += 1
    return this.#queuedCharacters + record.length > QUEUE_CHARACTERS_MAX ? 'queue' : null
  }

  /** Returns how many more records fit now, and the bound that the next one exceeds. */
  #room(): { readonly records: number; readonly bound: keyof DroppedRecords } {
    if (this.#isClosed) return { records: 0, bound: 'failed' }
    const now = this.#options.system.monotonicMillis()
    if (now - this.#secondStart >= 1_000) {
      this.#secondStart = now
      this.#recordsOfSecond = 0
    }
    const rate = LOG_RECORDS_PER_SECOND_MAX - this.#recordsOfSecond
    const queue = Math.max(0, LOG_QUEUE_RECORDS_MAX - this.#queue.length)
    return rate <= queue ? { records: rate, bound: 'rate' } : { records: queue, bound: 'queue' }
  }

  #enqueue(record: string): void {
    this.#queue.push(record)
    this.#next += 1
    this.#queuedCharacters += record.length
  }

  /** The sequence of the first record in the queue. */
  get #first(): number {
    return this.#next - this.#queue.length
  }

  #drop(reason: keyof DroppedRecords, records: number): void {
    this.#dropped[reason] += records
    for (let i = 0; i < records; i++) this.#options.onDropped()
  }

  #schedule(): void {
    if (this.#batchTimer !== null || this.#writing !== null || this.#isClosed) return
    if (this.#queue.length === 0 && !this.#dropsPending()) return
    const wait = this.#queue.length > 0 ? BATCH_MILLIS : REPORT_MILLIS
    this.#batchTimer = setTimeout(() => {
      this.#batchTimer = null
      this.#write()
    }, wait)
    this.#batchTimer.unref()
  }

  /** Starts writing the next batch unless another one is being written. */
  #write(): void {
    if (this.#writing !== null || this.#isClosed) return
    const reported = this.#report()
    if (this.#queue.length === 0) return
    const first = this.#first
    const taken = this.#queue.splice(0, BATCH_RECORDS_MAX)
    for (const record of taken) this.#queuedCharacters -= record.length
    const batch = { first, count: taken.length, records: taken.join('\n') }
    this.#inFlight = batch
    this.#reported = reported
    this.#writing = this.#append(batch, reported).finally(() => {
      this.#writing = null
      this.#inFlight = null
      this.#reported = null
      this.#noteUnwritten()
      if (this.#queue.length > 0) this.#write()
      else if (this.#dropsPending()) this.#schedule()
    })
  }

  async #append(batch: LogBatch, reported: DroppedRecords | null): Promise<void> {
    const { first, count } = batch
    try {
      await this.#thread.run({ kind: 'append', ...batch })
      this.#writeFailure = null
      this.#written = first + count - 1
      for (const wake of [...this.#wakes]) wake()
    } catch (error) {
      this.#writeFailure = `a batch was not written: ${(error as Error).message}`
      this.#drop('failed', count - (reported === null ? 0 : 1))
      // The report was lost with the batch, and what it counted is reported by the next one.
      if (reported !== null) this.#addBack(reported)
    }
  }

  /** Queues the report of dropped records, at most once a second. Returns what it counts. */
  #report(): DroppedRecords | null {
    if (!this.#dropsPending()) return null
    const now = this.#options.system.monotonicMillis()
    if (now - this.#reportedAt < REPORT_MILLIS) return null
    this.#reportedAt = now
    const dropped = this.#dropped
    this.#dropped = { rate: 0, queue: 0, failed: 0 }
    const report = this.#options.reportDropped(dropped)
    // In front, so that it is in the batch that is written now. No queued record has been sent to
    // the thread, so all of them get the next sequence.
    this.#queue.unshift(report)
    this.#next += 1
    this.#queuedCharacters += report.length
    return dropped
  }

  #addBack({ rate, queue, failed }: DroppedRecords): void {
    this.#dropped.rate += rate
    this.#dropped.queue += queue
    this.#dropped.failed += failed
  }

  /**
   * Notes what would be lost if the process were killed, before anything that waits for this turn
   * of the event loop, such as the response of a call, can be sent.
   */
  #noteUnwritten(): void {
    if (this.#isUnwrittenStale || this.#isClosed) return
    this.#isUnwrittenStale = true
    queueMicrotask(() => {
      this.#isUnwrittenStale = false
      if (!this.#isClosed) this.#writeUnwritten()
    })
  }

  #writeUnwritten(): void {
    const first = this.#inFlight?.first ?? this.#first
    const report = this.#reported === null ? 0 : first
    this.#unwritten.write({
      first,
      next: this.#next,
      dropped: this.#dropped,
      report,
      reported: this.#reported ?? NONE,
    })
  }

  #dropsPending(): boolean {
    const { rate, queue, failed } = this.#dropped
    return rate + queue + failed > 0
  }
}
