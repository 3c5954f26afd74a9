/** What a test and the server that it lets die (dying-server.ts) tell each other. */

/** The named points of the commit path. What becomes of a write that is cut off is open. */
export const POINTS = [
  'before the write',
  'during the write',
  'after the write',
  'before the answer',
] as const

export interface Death {
  readonly point: (typeof POINTS)[number]
  /** How often it passes the point before it dies there. */
  readonly passes: number
  /** Between the beginning of the write and the death, at most: for `during the write`. */
  readonly delayMillis: number
}

export interface Started {
  readonly port: number
  /** Confidential; another one after each start, of the same credential. */
  readonly key: string
}

/** Its last words. */
export interface Struck {
  /** Operations whose commit, or whose answer, it had in hand. */
  readonly operations: readonly string[]
}
