/** The counts of a campaign, and its findings. */

export interface Figures {
  rounds: number
  calls: number
  sessions: number
  files: number
  /** Kills of the server that kept its disk, and of the target. */
  serverKills: number
  targetKills: number
  /** Age of the oldest lost call, for each loss of the disk while the target was reachable. */
  readonly lostMillis: number[]
  /** The age where the target was not reachable, or the history had no whole backup yet. */
  readonly otherLostMillis: number[]
  /** Files whose bytes were lost because the target did not have them yet. */
  lostFiles: number
  times: number
  readonly violations: string[]
}

export function noFigures(): Figures {
  return {
    rounds: 0,
    calls: 0,
    sessions: 0,
    files: 0,
    serverKills: 0,
    targetKills: 0,
    lostMillis: [],
    otherLostMillis: [],
    lostFiles: 0,
    times: 0,
    violations: [],
  }
}
