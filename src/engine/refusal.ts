/**
 * An answer to a Function's own mistake, such as an unknown table: it is thrown inside the
 * author's code at the call that made it, so its message names what is wrong and the mend.
 */
export class Refusal extends Error {
  /** What the author's code reads as `error.code`; null where it has none. */
  readonly code: string | null

  constructor(name: string, message: string, code: string | null = null) {
    super(message)
    this.name = name
    this.code = code
  }
}

/** Name of the error of a called Function that failed with a code that it declares. */
export const DECLARED_ERROR = 'FunctionError'

/** Name of the Refusal of a cursor that is damaged, or of another list. */
export const INVALID_CURSOR = 'InvalidCursor'
