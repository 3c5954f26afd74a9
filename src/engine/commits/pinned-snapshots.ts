/**
 * The snapshots that attempts read at now: of what was written since, the write log keeps what one
 * of them may still conflict with, and no more. What outlives its use costs the collector, which
 * has to look at all that is there.
 */

/** Of attempts that began at one durable sequence. */
export interface SnapshotPin {
  readonly sequence: number
  users: number
  next: SnapshotPin | null
}

export class PinnedSnapshots {
  #oldest: SnapshotPin
  #newest: SnapshotPin

  constructor(sequence: number) {
    this.#oldest = { sequence, users: 0, next: null }
    this.#newest = this.#oldest
  }

  /** Of an attempt that reads at `sequence` or later. Sequences ascend. */
  begin(sequence: number): SnapshotPin {
    if (sequence !== this.#newest.sequence) {
      const use: SnapshotPin = { sequence, users: 0, next: null }
      this.#newest.next = use
      this.#newest = use
      this.#forget()
    }
    this.#newest.users += 1
    return this.#newest
  }

  /** Once for each that began. */
  end(use: SnapshotPin): void {
    use.users -= 1
    this.#forget()
  }

  /** Every attempt reads here or later, as will those that begin at `durable` or later. */
  oldest(durable: number): number {
    return this.#oldest.users > 0 ? this.#oldest.sequence : durable
  }

  #forget(): void {
    while (this.#oldest.users === 0 && this.#oldest.next !== null) {
      const { next } = this.#oldest
      // One that the collector takes for old would keep all behind it until it is collected.
      this.#oldest.next = null
      this.#oldest = next
    }
  }
}
