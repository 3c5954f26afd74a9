/**
 * The sequence up to which all subscriptions of a connection are current. Its cost does not depend
 * on their number: subscriptions report their changes, so no ping has to iterate over them.
 */

/** The facts about a subscription that the sequence depends on. */
export interface Tracked {
  /** True if the peer has the state of every durable sequence until the next reported change. */
  readonly isCurrent: boolean
  /** The sequence up to which the peer has been sent all states; -1 before the first one. */
  readonly currentAt: number
}

/**
 * Works in rounds. A round starts at a durable sequence with the exact answer, which remains true,
 * and waits for the subscriptions that are behind. Once each of them has passed that sequence, the
 * next round starts. So a round costs no more than the runs that completed the previous one.
 */
export class CurrentSequence {
  readonly #starting = new Set<Tracked>()
  readonly #behind = new Set<Tracked>()
  /** Subscriptions that were behind at the start of the round and have not passed its sequence. */
  readonly #awaited = new Set<Tracked>()
  #roundAt = -1
  #reached = -1

  /** Records a new subscription, or a change that the durable sequence did not cause. */
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

  /** Records that a subscription is current or has ended. */
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
