/**
 * Decides which calls of a Function are speculative. In a speculative call, operations are
 * pipelined: the code continues before the server has performed its writes, and it receives the
 * documents that its arguments name with the call, so that most calls cross the pipe once each way.
 * The code assumes that every pipelined operation succeeds. Where one fails, the attempt is
 * misspeculated and the call is repeated synchronously: then the code waits for each operation, and
 * a failure is thrown at its place in the author's code.
 */

/** Synchronous calls after a misspeculated one: some Functions catch failures regularly. */
const SYNCHRONOUS_CALLS = 64

/** The policy of one Function. */
export class SpeculationPolicy {
  #synchronousCalls = 0
  #readsNamed = true

  /**
   * Returns whether documents that the arguments name are read from the store to be sent with the
   * call, which saves a round trip to the runner if the code reads them.
   */
  get readsNamed(): boolean {
    return this.#readsNamed
  }

  /** Records whether the last call read a document that its arguments name. */
  noteNamed(wereRead: boolean): void {
    this.#readsNamed = wereRead
  }

  /** Returns whether the next call is speculative, and counts it. */
  decide(): boolean {
    if (this.#synchronousCalls === 0) return true
    this.#synchronousCalls -= 1
    return false
  }

  onMisspeculation(): void {
    this.#synchronousCalls = SYNCHRONOUS_CALLS
  }
}
