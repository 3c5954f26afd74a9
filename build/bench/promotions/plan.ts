/** What the process that measures promotions is told, and what it tells. */
import type { LoadResult } from '../load.ts'

export interface Plan {
  readonly application: Origin
  readonly management: Origin
  /** Path of the Environment on the management origin. */
  readonly base: string
  /** At n the Release whose Functions answer the number n. */
  readonly releases: readonly string[]
  readonly perSecond: number
  /** Under load, before anything is promoted. */
  readonly quietSeconds: number
  readonly promotions: number
  /** From one promotion to the next, unless it takes longer to take effect. */
  readonly everyMillis: number
}

export interface Origin {
  readonly port: number
  readonly headers: Readonly<Record<string, string>>
}

/** Failures are requests that failed and answers of a Release that was not served. */
export interface Report {
  readonly quiet: LoadResult
  readonly promoted: LoadResult
  /** Milliseconds until a promotion had taken effect, the slowest. */
  readonly slowestMillis: number
  /** Answers of each Release while they were promoted. */
  readonly answers: readonly number[]
}
