/**
 * Whether a call of a Function runs ahead: its code goes on before the server has worked what it
 * writes, and has at hand the documents that its arguments name, so that most calls cross the pipe
 * once each way. All of that is taken to succeed. Where it does not, the attempt is void and the
 * call runs again in step, where each operation is waited for and fails in the author's code.
 */

/** Calls in step behind one whose attempt was void: some Functions catch failures all the time. */
const CALLS_IN_STEP = 64

/** Of one Function. */
export class SpeculationPolicy {
  #callsInStep = 0

  /** Whether the next call runs ahead. */
  next(): boolean {
    if (this.#callsInStep === 0) return true
    this.#callsInStep -= 1
    return false
  }

  onVoid(): void {
    this.#callsInStep = CALLS_IN_STEP
  }
}
