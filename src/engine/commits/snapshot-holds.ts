/**
 * Snapshots that are read for minutes, such as by a backup. A pin would keep the commits since it
 * in memory, for conflicts that such a reader cannot have; a hold keeps versions in the store
 * alone.
 */

export interface SnapshotHold {
  readonly sequence: number
  /** Idempotent. */
  release(): void
}

/**
 * Versions that were replaced after it are kept no longer than this, so a reader that never ends
 * does not fill the disk. Its reads raise UNAVAILABLE then.
 * @limit Backups: time for which a backup may read its snapshot
 */
export const HOLD_MILLIS_MAX = 2 * 3_600 * 1_000

export class SnapshotHolds {
  readonly #system: { monotonicMillis(): number }
  readonly #holds = new Map<SnapshotHold, number>()

  constructor(system: { monotonicMillis(): number }) {
    this.#system = system
  }

  /** Keeps the versions that a durable snapshot sees until the release, or for 2 hours. */
  hold(sequence: number): SnapshotHold {
    const hold = { sequence, release: () => void this.#holds.delete(hold) }
    this.#holds.set(hold, this.#system.monotonicMillis() + HOLD_MILLIS_MAX)
    return hold
  }

  /** Returns the oldest snapshot that is held; infinity if none is. */
  oldest(): number {
    const now = this.#system.monotonicMillis()
    let oldest = Number.POSITIVE_INFINITY
    for (const [hold, until] of this.#holds) {
      if (until <= now) this.#holds.delete(hold)
      else oldest = Math.min(oldest, hold.sequence)
    }
    return oldest
  }
}
