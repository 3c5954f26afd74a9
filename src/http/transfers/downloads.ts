/**
 * Downloads of long files, which hold two descriptors each: how many there are, and how long they
 * wait for their readers. The runtime sends a file by itself and reports neither progress nor end,
 * so its own timeout ends a reader that is too slow, and a look at each request finds those that
 * were answered.
 */

import { isFault } from '../../errors/fault.ts'
import { FairSemaphore, type Release } from '../../system/fair-semaphore.ts'
import type { System } from '../../system/system.ts'

/** @limit Requests: downloads of files over 64 KiB (long files) at one time; one more is `BUSY` */
export const DOWNLOADS_MAX = 1_024
/** @limit Requests: downloads of long files of one address at one time; one more is `BUSY` */
export const PEER_DOWNLOADS_MAX = 128
/**
 * The longest time that the runtime knows. The operating system takes up to 4 MiB for a slow reader
 * in advance, and more only when a third of that was read, which looks like a reader that stopped.
 * @limit Requests: time for which a download may make no progress
 */
export const DOWNLOAD_IDLE_SECONDS = 255

/** The socket buffers take shorter files at once. */
const SHORT_BYTES = 64 * 1024
/** Time after which the runtime has begun to send a file. */
const STARTED_MILLIS = 500
/** Pause between two looks at the downloads. */
const LOOK_MILLIS = 1_000
/** Least pause between two looks, which take up to a millisecond. */
const SOON_MILLIS = 50

/** The connection of a download. */
export interface DownloadConnection {
  isAnswered(): boolean
  setTime(seconds: number): void
}

interface Download {
  readonly connection: DownloadConnection
  readonly release: Release
  /** Monotonic milliseconds. */
  readonly startedMillis: number
  hasTime: boolean
}

export class Downloads {
  readonly #system: Pick<System, 'monotonicMillis'>
  readonly #permits: FairSemaphore
  readonly #downloads = new Set<Download>()
  #timer: ReturnType<typeof setInterval> | null = null
  #lookedAtMillis = Number.NEGATIVE_INFINITY

  constructor(system: Pick<System, 'monotonicMillis'>, permitsPerKey = PEER_DOWNLOADS_MAX) {
    this.#system = system
    const permits = { permits: DOWNLOADS_MAX, permitsPerKey }
    const queue = { waiting: 0, waitingPerKey: 0, waitMillis: 0 }
    this.#permits = new FairSemaphore(system, { ...permits, ...queue }, 'downloads')
  }

  /** Downloads that are not known to have ended. */
  get running(): number {
    return this.#permits.running
  }

  /**
   * Returns what `open` returns: the response with `bytes` of a file, which is counted until it was
   * sent. Raises BUSY, and as `open` does.
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
      this.#downloads.add({ connection, release, startedMillis, hasTime: false })
      this.#timer ??= this.#start()
      return response
    } catch (error) {
      release()
      throw error
    }
  }

  async #acquire(peer: string): Promise<Release> {
    try {
      return await this.#permits.acquire(peer)
    } catch (error) {
      const now = this.#system.monotonicMillis()
      if (!isFault(error, 'BUSY') || now - this.#lookedAtMillis < SOON_MILLIS) throw error
      this.#look()
      return this.#permits.acquire(peer)
    }
  }

  #start(): ReturnType<typeof setInterval> {
    const timer = setInterval(() => this.#look(), LOOK_MILLIS)
    timer.unref()
    return timer
  }

  /** The timer stops when no download is left; the next one restarts it. */
  #look(): void {
    const now = this.#system.monotonicMillis()
    this.#lookedAtMillis = now
    for (const download of this.#downloads) {
      const { connection, release, startedMillis } = download
      if (connection.isAnswered()) {
        this.#downloads.delete(download)
        release()
      } else if (!download.hasTime && now - startedMillis >= STARTED_MILLIS) {
        // Once: each call would begin the time anew.
        download.hasTime = true
        connection.setTime(DOWNLOAD_IDLE_SECONDS)
      }
    }
    if (this.#downloads.size > 0 || this.#timer === null) return
    clearInterval(this.#timer)
    this.#timer = null
  }
}

function isConnection(given: Partial<DownloadConnection>): given is DownloadConnection {
  return given.isAnswered !== undefined && given.setTime !== undefined
}
