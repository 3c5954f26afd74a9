/**
 * The snapshots that running attempts read at. The write log keeps only the commits that one of
 * them may still conflict with, since an object that outlives its use costs garbage collection
 * time: a full collection visits every live object.
 */

/** The pin that all attempts share which started at one durable sequence. */
export interface SnapshotPin {
  readonly sequence: number
  users: number
  next: SnapshotPin | null
}

/** A linked list of pins in ascending order of their sequences. */
export class PinnedSnapshots {
  #oldest: SnapshotPin
  #newest: SnapshotPin
  #waiters: { readonly sequence: number; readonly resolve: () => void }[] = []

  constructor(sequence: number) {
    this.#oldest = { sequence, users: 0, next: null }
    this.#newest = this.#oldest
  }

  /** Pins the snapshot of an attempt that reads at `sequence` or later. Sequences ascend. */
  pin(sequence: number): SnapshotPin {
    if (sequence !== this.#newest.sequence) {
      const pin: SnapshotPin = { sequence, users: 0, next: null }
      this.#newest.next = pin
      this.#newest = pin
      this.#dropUnused()
    }
    this.#newest.users += 1
    return this.#newest
  }

  /** Releases a pin. Call it once for each call of `pin`. */
  unpin(pin: SnapshotPin): void {
    pin.users -= 1
    this.#dropUnused()
    if (this.#waiters.length > 0) this.#resolveWaiters()
  }

  /** Resolves when no attempt reads before `sequence`, which is durable. */
  whenReached(sequence: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters.push({ sequence, resolve })
      this.#resolveWaiters()
    })
  }

  #resolveWaiters(): void {
    const { users, sequence: oldest } = this.#oldest
    const waiters = this.#waiters
    this.#waiters = waiters.filter(({ sequence }) => users > 0 && oldest < sequence)
    for (const { sequence, resolve } of waiters) {
      if (users === 0 || oldest >= sequence) resolve()
    }
  }

  /**
   * Returns the sequence at or before the snapshots of all running attempts and of all that start
   * at `durable` or later.
   */
  oldest(durable: number): number {
    return this.#oldest.users > 0 ? this.#oldest.sequence : durable
  }

  #dropUnused(): void {
    while (this.#oldest.users === 0 && this.#oldest.next !== null) {
      const { next } = this.#oldest
      // A dropped pin in the old generation would keep all later pins alive until a full
      // garbage collection.
      this.#oldest.next = null
      this.#oldest = next
    }
  }
}
