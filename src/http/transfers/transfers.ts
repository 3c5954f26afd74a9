/** Limits of both origins on transfers: memory, rate, and the parsing of long bodies. */
import { FairSemaphore } from '../../system/fair-semaphore.ts'
import { MemoryBudget } from '../../system/memory/memory-budget.ts'
import type { Counts } from '../../system/memory/shared-counts.ts'
import type { System } from '../../system/system.ts'
import { Downloads } from './downloads.ts'
import { TransferPace, UPLOAD_PACE } from './transfer-pace.ts'
import { type TransferState, TransferTurns } from './transfer-turns.ts'

export interface TransferLimits {
  /** Bytes of request bodies that are incomplete or not yet parsed. */
  readonly unfinishedBodyBytesMax: number
  /** Bytes of responses that the peer has not received. */
  readonly unsentAnswerBytesMax: number
  /** Downloads of long files of one address; default: PEER_DOWNLOADS_MAX. */
  readonly peerDownloadsMax?: number
  /** Downloads of all processes; default: of this one. */
  readonly counts?: Counts | undefined
  /** Default: that of one process. */
  readonly state?: TransferState | undefined
}

const MIB = 1024 * 1024
const DEFAULT_LIMITS: TransferLimits = {
  unfinishedBodyBytesMax: 256 * MIB,
  unsentAnswerBytesMax: 256 * MIB,
}

/**
 * Limits on the parsing of long bodies, which blocks the event loop: one at a time, credentials in
 * turn. The memory budget also bounds the number of waiting bodies.
 */
const PARSING = {
  permits: 1,
  permitsPerKey: 1,
  waiting: 4_096,
  waitingPerKey: 2_048,
  waitMillis: 10_000,
}

/** @limit Requests: uploads of files at one time; one more is `BUSY` */
export const UPLOADS_MAX = 256
/** @limit Requests: uploads of files of one address at one time; one more is `BUSY` */
export const PEER_UPLOADS_MAX = 64
/** Permits of uploads, which hold a file and a connection each. A further upload fails at once. */
const UPLOADS = {
  permits: UPLOADS_MAX,
  permitsPerKey: PEER_UPLOADS_MAX,
  waiting: 0,
  waitingPerKey: 0,
  waitMillis: 0,
}

/** Pause for other requests after a long body, as a multiple of its parse time. */
const PAUSE_FACTOR = 4

/**
 * Compressions in threads at one time. The threads are those of file accesses too, and there are
 * few cores.
 */
const COMPRESSIONS_MAX = 2

/** The compressions that run in threads. */
class Compressions {
  #running = 0

  /** Returns the function that ends a compression; null if too many run. */
  begin(): (() => void) | null {
    if (this.#running >= COMPRESSIONS_MAX) return null
    this.#running += 1
    return () => {
      this.#running -= 1
    }
  }
}

export class Transfers {
  readonly bodies: MemoryBudget
  readonly answers: MemoryBudget
  readonly pace = new TransferPace()
  readonly uploadPace = new TransferPace(UPLOAD_PACE)
  /** Permits of uploads, per peer. */
  readonly uploads: FairSemaphore
  readonly downloads: Downloads
  /** Compressions of long responses. */
  readonly compressions = new Compressions()
  /** The order of calls and transfers of files on the event loop. */
  readonly turns: TransferTurns
  readonly #system: Pick<System, 'monotonicMillis'>
  readonly #parsing: FairSemaphore

  constructor(system: Pick<System, 'monotonicMillis'>, limits: TransferLimits = DEFAULT_LIMITS) {
    this.bodies = new MemoryBudget(limits.unfinishedBodyBytesMax)
    this.answers = new MemoryBudget(limits.unsentAnswerBytesMax)
    this.#system = system
    this.turns = new TransferTurns(system, limits.state)
    this.downloads = new Downloads(system, this.turns, {
      permitsPerKey: limits.peerDownloadsMax,
      counts: limits.counts,
    })
    this.uploads = new FairSemaphore(system, UPLOADS, 'uploads')
    this.#parsing = new FairSemaphore(system, PARSING, 'the parsing of long bodies')
  }

  /**
   * Runs `parse` in the turn of `credential`, since its synchronous part blocks all other requests.
   * Throws BUSY after 10 s without a turn, and UNAVAILABLE if the caller disconnects first.
   */
  async parseInTurn<T>(
    credential: string,
    caller: { readonly aborted: boolean },
    parse: () => T,
  ): Promise<Awaited<T>> {
    const release = await this.#parsing.acquire(credential, caller)
    const startedAt = this.#system.monotonicMillis()
    let result: T
    try {
      result = parse()
    } finally {
      setTimeout(release, (this.#system.monotonicMillis() - startedAt) * PAUSE_FACTOR)
    }
    return await result
  }
}
