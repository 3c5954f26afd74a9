/** The cost of a comparison, which is bounded because a publisher chooses what is compared. */

/** Ends a comparison that took more steps than it may. */
export class TooComplex extends Error {}

export class StepBudget {
  readonly #max: number
  #spent = 0

  constructor(max: number) {
    this.#max = max
  }

  get spent(): number {
    return this.#spent
  }

  /** Throws TooComplex once more than the maximum is spent. */
  spend(steps: number): void {
    this.#spent += steps
    if (this.#spent > this.#max) throw new TooComplex()
  }
}
