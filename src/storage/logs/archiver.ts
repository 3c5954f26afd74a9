/**
 * Keeps the archive of the log: closes segments, moves them to the S3-compatible store where there
 * is one, removes records that are archived whole, and removes segments after their retention. The
 * writer thread has the segments in the Product root; requests to the store leave from the main
 * thread, so that no batch waits for them.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isFault } from '../../errors/fault.ts'
import { SerialQueue } from '../../system/concurrency.ts'
import type { System } from '../../system/system.ts'
import type { LogReads } from './log-reads.ts'
import type { ArchiveState, PruneRequest, PruneResult, SegmentRef } from './log-rows.ts'
import { LogFailure, type LogThread } from './log-thread.ts'
import type { RemoteSegments } from './remote-segments.ts'

/** Segments that left the archive, with the digest after which its chain continues. */
export interface RemovedSegments {
  readonly segments: number
  /** Name of the newest removed segment. */
  readonly newest: string
  /** 64 lowercase hex characters. */
  readonly sha256: string
}

export interface ArchiverOptions {
  readonly thread: LogThread
  readonly reads: LogReads
  readonly system: Pick<System, 'nowMicros'>
  /** Directory of the archive segments. */
  readonly directory: string
  /** Null keeps segments in the directory. */
  readonly remote: RemoteSegments | null
  readonly segments: {
    /** Bytes of records after which a segment is closed. */
    readonly bytesMax: number
    readonly secondsMax: number
  }
  readonly retention: {
    /** Seconds after which records that are archived and verified leave the hot store. */
    readonly recordSeconds: number
    /** Seconds after which segments are removed, once the hot store has none of their records. */
    readonly segmentSeconds: number
  }
  /** Called when the archive fails or a segment is damaged, and when that changes. */
  readonly onDegraded: (reason: string) => void
  readonly onRemoved: (removed: RemovedSegments) => void
}

/** Longest interval of the runs: a segment is closed at most this long after it is due. */
const PERIOD_MILLIS_MAX = 10_000
/** Records that one turn removes: pages and batches wait for no more of them. */
const RETENTION_RECORDS_MAX = 100_000
/** Operators prune one after the other, and each may wait for the store. */
const WAITING_MAX = 8

export class Archiver {
  readonly #options: ArchiverOptions
  readonly #timer: ReturnType<typeof setInterval>
  /** Tasks that read or change segments in the store run one after the other. */
  readonly #turns = new SerialQueue(WAITING_MAX, 'PRODUCT_UNAVAILABLE')
  #isRunning = false
  #isClosed = false
  /** The reason why the last turn failed. */
  #turnFailure: string | null = null
  /** The segment that is missing or damaged. */
  #damage: string | null = null

  constructor(options: ArchiverOptions) {
    this.#options = options
    const period = Math.min(PERIOD_MILLIS_MAX, options.segments.secondsMax * 1_000)
    this.#timer = setInterval(() => void this.run(), period)
    this.#timer.unref()
  }

  /** The damaged segment, or the reason why the last turn failed; null if there is neither. */
  get failure(): string | null {
    return this.#damage ?? this.#turnFailure
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
  }

  /** Rejects with a LogFailure. */
  async state(): Promise<ArchiveState> {
    return this.#noted(await this.#options.thread.run({ kind: 'state' }))
  }

  /** Closes, moves and removes segments where that is due. Never rejects. */
  async run(): Promise<void> {
    if (this.#isRunning || this.#isClosed) return
    this.#isRunning = true
    try {
      await this.#turns.runUnbounded(() => this.#turn())
      this.#turnFailure = null
    } catch (error) {
      const reason = `the archive failed: ${reasonOf(error)}`
      const isNew = this.#turnFailure !== reason
      this.#turnFailure = reason
      if (isNew && !this.#isClosed) this.#options.onDegraded(reason)
    } finally {
      this.#isRunning = false
    }
  }

  /**
   * Removes or counts records behind the frontier. Rejects with a LogFailure, UNAVAILABLE, or
   * PRODUCT_UNAVAILABLE where too many wait.
   */
  prune(request: Omit<PruneRequest, 'now' | 'whole'>): Promise<PruneResult> {
    return this.#turns.run(() => this.#prune(request))
  }

  async #turn(): Promise<void> {
    const { thread, system, segments } = this.#options
    const { bytesMax, secondsMax } = segments
    const now = Number(system.nowMicros())
    let state = await thread.run({ kind: 'archive', now, bytesMax, ageMax: secondsMax * 1e6 })
    if (await this.#move()) state = await thread.run({ kind: 'state' })
    this.#noted(state)
    await this.#removeRecords(now, state)
    await this.#removeSegments(now)
  }

  /** Moves closed segments to the store and reads them there. Returns whether there were any. */
  async #move(): Promise<boolean> {
    const { thread, remote, directory, system } = this.#options
    if (remote === null) return false
    const unmoved = await thread.run({ kind: 'unmoved' })
    for (const segment of unmoved) {
      if (this.#isClosed) break
      const path = join(directory, segment.name)
      // A power failure may take back the note of a move whose file is removed already.
      if (existsSync(path)) await remote.put(segment, path)
      const condition = await remote.check(segment)
      if (condition !== 'whole') {
        throw new LogFailure(`the segment ${segment.name} is ${condition} once it was moved`)
      }
      const now = Number(system.nowMicros())
      await thread.run({ kind: 'moved', number: segment.number, now })
    }
    return unmoved.length > 0
  }

  async #prune(request: Omit<PruneRequest, 'now' | 'whole'>): Promise<PruneResult> {
    const { thread, system } = this.#options
    const concerned = await thread.run({ kind: 'concerned', before: request.before })
    const whole = await this.#wholeOf(concerned)
    const now = Number(system.nowMicros())
    const result = await thread.run({ kind: 'prune', ...request, now, whole })
    this.#noted(result.archive)
    return result
  }

  async #wholeOf(segments: readonly SegmentRef[]): Promise<readonly number[]> {
    const { remote } = this.#options
    if (segments.length > 0 && remote === null) {
      throw new LogFailure('segments are in an S3-compatible store that is not configured')
    }
    const whole: number[] = []
    for (const segment of segments) {
      // Records after a segment that is not whole are kept in any case.
      if ((await remote!.check(segment)) !== 'whole') break
      whole.push(segment.number)
    }
    return whole
  }

  /** Keeps records that the archive does not hold whole, however old they are. */
  async #removeRecords(now: number, { frontier }: ArchiveState): Promise<void> {
    const { reads, segments, retention } = this.#options
    const before = now - retention.recordSeconds * 1e6
    const oldest = this.#isClosed ? null : reads.oldest()
    if (oldest === null || frontier === null) return
    // The records of about one segment leave together: each turn reads the segments again.
    if (oldest.at >= before - segments.secondsMax * 1e6) return
    // Otherwise a damaged segment would be read again every time.
    if (frontier.sequence < oldest.sequence) return
    await this.#prune({ before, maximum: RETENTION_RECORDS_MAX, apply: true })
  }

  async #removeSegments(now: number): Promise<void> {
    const { thread, remote, retention, onRemoved } = this.#options
    const before = now - retention.segmentSeconds * 1e6
    const expired = await thread.run({ kind: 'expire', before })
    const { newlyRemoved: segments, chainStart } = expired
    if (segments > 0 && chainStart !== null) {
      onRemoved({ segments, newest: chainStart.name, sha256: chainStart.sha256 })
    }
    for (const segment of remote === null ? [] : expired.remote) {
      await remote!.remove(segment)
      await thread.run({ kind: 'expired', number: segment.number })
    }
  }

  #noted(archive: ArchiveState): ArchiveState {
    const { damaged } = archive
    const damage = damaged === null ? null : `the segment ${damaged} is missing or damaged`
    const isNew = this.#damage !== damage
    this.#damage = damage
    if (isNew && damage !== null) this.#options.onDegraded(damage)
    return archive
  }
}

/** A failure of the store has its reason in the private detail. */
function reasonOf(error: unknown): string {
  const detail = isFault(error) ? error.detail : undefined
  return detail ?? (error as Error).message
}
