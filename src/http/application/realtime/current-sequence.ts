/**
 * The sequence up to which all subscriptions of a connection are current. It costs the same however
 * many there are: subscriptions report their changes, and nothing walks them for a ping.
 */

/** A subscription as the sequence depends on it. */
export interface Tracked {
  /** Whether the peer has its state at the newest durable sequence, and at later ones by itself. */
  readonly isCurrent: boolean
  /** The sequence up to which the peer has been sent all states; -1 before the first one. */
  readonly currentAt: number
}

/**
 * Works in rounds. A round begins at a durable sequence with the exact answer, which stays true. It
 * awaits the subscriptions that are behind; once each of them has passed that sequence, the next
 * round begins. So a round costs as much as the runs that ended the one before.
 */
export class CurrentSequence {
  readonly #starting = new Set<Tracked>()
  readonly #behind = new Set<Tracked>()
  /** Those that were behind when the round began and have not passed its sequence. */
  readonly #awaited = new Set<Tracked>()
  #roundAt = -1
  #reached = -1

  /** A subscription is new, or has changed in any other way than by the durable sequence. */
  update(subscription: Tracked): void {
    if (subscription.isCurrent) {
      this.remove(subscription)
      return
    }
    const { currentAt } = subscription
    this.#behind.add(subscription)
    if (currentAt < 0) this.#starting.add(subscription)
    else this.#starting.delete(subscription)
    if (currentAt >= this.#roundAt) this.#awaited.delete(subscription)
  }

  /** A subscription is current, or has ended. */
  remove(subscription: Tracked): void {
    this.#starting.delete(subscription)
    this.#behind.delete(subscription)
    this.#awaited.delete(subscription)
  }

  /** Returns the sequence; -1 while a subscription has no state. `durable` is the newest one. */
  at(durable: number): number {
    if (this.#starting.size > 0) return -1
    if (this.#awaited.size === 0) this.#beginRound(durable)
    return this.#reached
  }

  #beginRound(durable: number): void {
    this.#roundAt = durable
    this.#reached = durable
    for (const each of this.#behind) {
      const { currentAt } = each
      if (currentAt >= durable) continue
      this.#awaited.add(each)
      this.#reached = Math.min(this.#reached, currentAt)
    }
  }
}
