/** Which Releases a target may have served at a time, from when it was asked to serve others. */

/** Times are milliseconds of one clock. */
export interface Move {
  readonly releaseId: string
  /** It takes effect from here on, */
  readonly asked: number
  /** and at the latest by here: what was served before is not served any more. */
  readonly effective: number
}

export interface Answered {
  readonly releaseId: string
  readonly sent: number
  readonly received: number
}

/**
 * Whether the Release of the answer was served at some time between its request and itself. Each
 * move follows the one before it.
 */
export function isOfServed(
  moves: readonly Move[],
  { releaseId, sent, received }: Answered,
): boolean {
  return moves.some((move, place) => {
    const end = moves[place + 1]?.effective ?? Number.POSITIVE_INFINITY
    return move.releaseId === releaseId && move.asked <= received && sent <= end
  })
}
