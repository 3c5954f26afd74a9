/** Decides which Releases a target may have served at a time, from its promotions. */

/** A promotion. Times are milliseconds of one clock. */
export interface Promotion {
  readonly releaseId: string
  /** The promotion takes effect at this time at the earliest. */
  readonly requestedAt: number
  /** The promotion takes effect, and the Release before it ends, at this time at the latest. */
  readonly effectiveAt: number
}

export interface Served {
  readonly releaseId: string
  readonly sent: number
  readonly received: number
}

/**
 * Returns whether the target served the Release of a response at some time between its request and
 * its arrival. Each promotion ends the one before it.
 */
export function wasServed(
  promotions: readonly Promotion[],
  { releaseId, sent, received }: Served,
): boolean {
  return promotions.some((promotion, i) => {
    const end = promotions[i + 1]?.effectiveAt ?? Number.POSITIVE_INFINITY
    const { requestedAt } = promotion
    return promotion.releaseId === releaseId && requestedAt <= received && sent <= end
  })
}
