/** The newest failure of each part of a continuous backup. */
import { QueryFailure } from '../../database/errors.ts'
import type { Code } from '../../errors/codes.ts'
import { Fault } from '../../errors/fault.ts'

type Part = 'increments' | 'identity' | 'files' | 'base'

export class PartFailures {
  readonly #failures = new Map<Part, unknown>()

  /** The code of a failure; null if the newest attempts of all parts succeeded. */
  get code(): Code | null {
    const [failure = null] = this.#failures.values()
    if (failure === null) return null
    const fault = failure instanceof QueryFailure ? failure.toFault() : failure
    return fault instanceof Fault ? fault.code : 'INTERNAL'
  }

  /** Runs an attempt of a part, and rejects as it does. What the signal stops has not failed. */
  async attempt<T>(part: Part, run: () => Promise<T>, stopping?: AbortSignal): Promise<T> {
    try {
      const result = await run()
      this.note(part, null)
      return result
    } catch (error) {
      if (stopping?.aborted !== true) this.note(part, error)
      throw error
    }
  }

  clear(): void {
    this.#failures.clear()
  }

  note(part: Part, failure: unknown): void {
    if (failure === null) this.#failures.delete(part)
    else this.#failures.set(part, failure)
  }
}

/** The fault of an access that the end of the server prevents. */
export function serverStops(): Fault {
  return new Fault('UNAVAILABLE', { detail: 'the server stops' })
}
