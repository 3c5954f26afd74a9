/**
 * Bounds the number of downloads of long files, which hold two descriptors each, the time that they
 * wait for their readers, and their rate while calls arrive. The runtime sends a file by itself and
 * reports neither progress nor end. So the idle timeout of the runtime cuts a slow reader, a poll
 * finds the downloads that have ended, and the system bounds the rates.
 */

import { Fault, isFault } from '../../errors/fault.ts'
import { FairSemaphore, type Release } from '../../system/fair-semaphore.ts'
import type { Counts } from '../../system/memory/shared-counts.ts'
import type { System } from '../../system/system.ts'
import { BYTES_PER_SECOND_BESIDE_CALLS, type TransferTurns } from './transfer-turns.ts'

/**
 * Each holds two descriptors, so all of them hold about 2,000.
 * @limit Requests: downloads of files over 64 KiB (long files) in one process; one more is `BUSY`
 */
export const DOWNLOADS_MAX = 1_024
/**
 * An eighth of all, so that one address with slow readers leaves permits to the others.
 * @limit Requests: downloads of long files of one address at one time; one more is `BUSY`
 */
export const PEER_DOWNLOADS_MAX = 128
/**
 * The longest idle timeout that the runtime has. The operating system buffers up to 4 MiB for a
 * slow reader, and takes more only after a third of that was read. Until then a slow reader looks
 * like one that has stopped, so a shorter time would cut readers that make progress.
 * @limit Requests: time for which a download may make no progress
 */
export const DOWNLOAD_IDLE_SECONDS = 255

/** Largest file that is not counted: the socket buffers take it at once. */
const SHORT_BYTES = 64 * 1024
/** Time after which the runtime has started to send a file, and has set its own idle timeout. */
const STARTED_MILLIS = 500
/** Interval of the poll for downloads that have ended. */
const LOOK_MILLIS = 1_000
/** Least pause between two polls, which take up to a millisecond each. */
const SOON_MILLIS = 50

/**
 * Interval at which the rates of downloads follow the calls: a reader as fast as this machine would
 * otherwise keep the event loop for as long as it takes the file.
 */
export const RATES_MILLIS = 50

/** The connection of a download. */
export interface DownloadConnection {
  isAnswered(): boolean
  setTime(seconds: number): void
  /** Bounds the bytes a second that the system sends; null for no bound. */
  setRate(bytesPerSecond: number | null): void
}

interface Download {
  readonly connection: DownloadConnection
  readonly release: Release
  /** Monotonic milliseconds. */
  readonly startedMillis: number
  hasTime: boolean
  /** Bytes a second; null for no bound. */
  rate: number | null
}

export interface DownloadBounds {
  /** Downloads of long files of one address; default: PEER_DOWNLOADS_MAX. */
  readonly permitsPerKey?: number | undefined
  /** The downloads of all processes of the server; null or absent for this one alone. */
  readonly counts?: Counts | null | undefined
}

export class Downloads {
  readonly #system: Pick<System, 'monotonicMillis'>
  readonly #turns: Pick<TransferTurns, 'hasCalls' | 'downloads'>
  readonly #permits: FairSemaphore
  readonly #counts: Counts | null
  readonly #peerMax: number
  readonly #downloads = new Set<Download>()
  #timer: ReturnType<typeof setInterval> | null = null
  #ratesTimer: ReturnType<typeof setInterval> | null = null
  #lookedAtMillis = Number.NEGATIVE_INFINITY

  constructor(
    system: Pick<System, 'monotonicMillis'>,
    turns: Pick<TransferTurns, 'hasCalls' | 'downloads'>,
    { permitsPerKey = PEER_DOWNLOADS_MAX, counts = null }: DownloadBounds = {},
  ) {
    this.#counts = counts
    this.#peerMax = permitsPerKey
    this.#system = system
    this.#turns = turns
    const permits = { permits: DOWNLOADS_MAX, permitsPerKey }
    const queue = { waiting: 0, waitingPerKey: 0, waitMillis: 0 }
    this.#permits = new FairSemaphore(system, { ...permits, ...queue }, 'downloads')
  }

  /** Downloads that are not known to have ended. */
  get running(): number {
    return this.#permits.running
  }

  /**
   * Returns the result of `open`, the response with `bytes` of a file, and counts it until it was
   * sent. Raises BUSY and the errors of `open`.
   */
  async send<T>(
    { peer, bytes }: { readonly peer: string; readonly bytes: number },
    connection: Partial<DownloadConnection>,
    open: () => Promise<T>,
  ): Promise<T> {
    if (bytes <= SHORT_BYTES || !isConnection(connection)) return open()
    const release = await this.#acquire(peer)
    try {
      const response = await open()
      const startedMillis = this.#system.monotonicMillis()
      this.#downloads.add({ connection, release, startedMillis, hasTime: false, rate: null })
      this.#timer ??= startTimer(() => this.#look(), LOOK_MILLIS)
      this.#ratesTimer ??= startTimer(() => this.#divideRate(), RATES_MILLIS)
      this.#divideRate()
      return response
    } catch (error) {
      release()
      throw error
    }
  }

  async #acquire(peer: string): Promise<Release> {
    try {
      return await this.#permit(peer)
    } catch (error) {
      const now = this.#system.monotonicMillis()
      if (!isFault(error, 'BUSY') || now - this.#lookedAtMillis < SOON_MILLIS) throw error
      this.#look()
      return this.#permit(peer)
    }
  }

  /** Downloads that have ended in another process are known there, within LOOK_MILLIS. */
  async #permit(peer: string): Promise<Release> {
    const release = await this.#permits.acquire(peer)
    const counts = this.#counts
    if (counts === null) return release
    const key = `downloads of the peer ${peer}`
    if (counts.take(key, this.#peerMax)) {
      return () => {
        release()
        counts.release(key)
      }
    }
    release()
    throw new Fault('BUSY', { detail: 'downloads of a peer' })
  }

  /** Bounds each download to its part of the rate beside calls, or to nothing without calls. */
  #divideRate(): void {
    const hasCalls = this.#turns.hasCalls(this.#system.monotonicMillis(), RATES_MILLIS)
    const all = this.#turns.downloads(this.#downloads.size)
    const rate = hasCalls ? BYTES_PER_SECOND_BESIDE_CALLS / Math.max(all, 1) : null
    for (const download of this.#downloads) {
      if (download.rate === rate) continue
      download.rate = rate
      download.connection.setRate(rate)
    }
  }

  /** Releases downloads that have ended. The timers stop when none is left. */
  #look(): void {
    const now = this.#system.monotonicMillis()
    this.#lookedAtMillis = now
    for (const download of this.#downloads) {
      const { connection, release, startedMillis } = download
      if (connection.isAnswered()) {
        this.#downloads.delete(download)
        // The connection may be used for other requests.
        if (download.rate !== null) connection.setRate(null)
        release()
      } else if (!download.hasTime && now - startedMillis >= STARTED_MILLIS) {
        // Only once, since each call restarts the timeout.
        download.hasTime = true
        connection.setTime(DOWNLOAD_IDLE_SECONDS)
      }
    }
    this.#turns.downloads(this.#downloads.size)
    if (this.#downloads.size > 0) return
    for (const timer of [this.#timer, this.#ratesTimer]) if (timer !== null) clearInterval(timer)
    this.#timer = null
    this.#ratesTimer = null
  }
}

function startTimer(task: () => void, millis: number): ReturnType<typeof setInterval> {
  const timer = setInterval(task, millis)
  timer.unref()
  return timer
}

function isConnection(given: Partial<DownloadConnection>): given is DownloadConnection {
  const { isAnswered, setTime, setRate } = given
  return isAnswered !== undefined && setTime !== undefined && setRate !== undefined
}
