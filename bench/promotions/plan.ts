/** The input and the output of the process that measures promotions. */
import type { LoadResult } from '../load.ts'

export interface Plan {
  readonly application: Origin
  readonly management: Origin
  /** Path of the Environment on the management origin. */
  readonly base: string
  /** The Functions of the Release at index n return n. */
  readonly releases: readonly string[]
  readonly perSecond: number
  /** Seconds of load before the first promotion. */
  readonly quietSeconds: number
  readonly promotions: number
  /** Interval between promotions. A promotion that takes longer delays the next. */
  readonly everyMillis: number
}

export interface Origin {
  readonly port: number
  readonly headers: Readonly<Record<string, string>>
}

/** Failures are failed requests and responses from a Release that was not served. */
export interface Report {
  readonly quiet: LoadResult
  readonly promoted: LoadResult
  /** The longest time until a promotion had taken effect, in milliseconds. */
  readonly slowestMillis: number
  /** Number of responses from each Release during the promotions. */
  readonly answers: readonly number[]
}
