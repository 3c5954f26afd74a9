/** Messages between a test and the server that it kills (dying-server.ts). */

/** The named points of the commit path. The outcome of an interrupted write is open. */
export const POINTS = [
  'before the write',
  'during the write',
  'after the write',
  'before the answer',
] as const

export interface Death {
  readonly point: (typeof POINTS)[number]
  /** Number of times that the server passes the point before it kills itself there. */
  readonly passes: number
  /** Longest time from the beginning of the write to the kill, for `during the write`. */
  readonly delayMillis: number
}

export interface Started {
  readonly port: number
  /** A confidential Application Key. Each start creates a new one for the same credential. */
  readonly key: string
}

/** The line that the server prints before it kills itself. */
export interface LastWords {
  /** Operations whose commit, or whose response, was pending. */
  readonly operations: readonly string[]
}
