/**
 * Waits until this process has followed as far as the main process had answered. Each waits for its
 * own position: while commits arrive all the time, a process may never be at the newest one.
 */

export interface Position {
  /** The newest durable sequence. */
  readonly durable: number
  /** The number of control changes. */
  readonly control: number
  /** The number of changes of the served Releases. */
  readonly served: number
}

interface Waiter extends Position {
  readonly resolve: () => void
}

export class PositionWaiters {
  readonly #answered: () => Position
  readonly #followed: () => Position
  /** Sorted by position. */
  #waiting: Waiter[] = []

  /** `answered` is the position of the main process, `followed` that of this one. */
  constructor(answered: () => Position, followed: () => Position) {
    this.#answered = answered
    this.#followed = followed
  }

  /** True if everything that the main process has answered is visible here. */
  get isCurrent(): boolean {
    return hasReached(this.#followed(), this.#answered())
  }

  /** Resolves when everything that the main process has answered until now is visible here. */
  async whenCurrent(): Promise<void> {
    const { durable, control, served } = this.#answered()
    if (hasReached(this.#followed(), { durable, control, served })) return
    await new Promise<void>((resolve) => this.#waiting.push({ durable, control, served, resolve }))
  }

  /** Lets those continue whose position this process has reached. */
  advance(): void {
    const { length } = this.#waiting
    if (length === 0) return
    const followed = this.#followed()
    let reached = 0
    while (reached < length && hasReached(followed, this.#waiting[reached]!)) reached += 1
    for (const { resolve } of this.#waiting.splice(0, reached)) resolve()
  }
}

function hasReached(followed: Position, position: Position): boolean {
  return (
    position.durable <= followed.durable &&
    position.control <= followed.control &&
    position.served <= followed.served
  )
}
