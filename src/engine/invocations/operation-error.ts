/**
 * An answer to a Function's own mistake, such as an unknown table: it is thrown inside the
 * author's code at the call that made it, so its message names what is wrong and the mend.
 */
import type { ErrorReport, ViolatedIndex } from '../../runner/messages.ts'

export class OperationError extends Error {
  /** What the author's code reads as `error.code`; null where it has none. */
  readonly code: string | null
  /** The unique index that a write violates; null where it is another mistake. */
  readonly violated: ViolatedIndex | null

  constructor(
    name: string,
    message: string,
    code: string | null = null,
    violated: ViolatedIndex | null = null,
  ) {
    super(message)
    this.name = name
    this.code = code
    this.violated = violated
  }
}

/** Name of the error of a violated unique index, which the module `svc` has a class for. */
const UNIQUE_VIOLATION = 'UniqueViolation'

/** The error that a write throws where another document has its key in a unique index. */
export function uniqueViolation(
  violated: ViolatedIndex,
  fields: readonly string[],
): OperationError {
  const { table, index } = violated
  const message = `${table}: another document has the same ${fields.join()} (index ${index})`
  return new OperationError(UNIQUE_VIOLATION, message, null, violated)
}

/** Violations of unique indexes that were thrown inside one call, by message. */
export type Violations = Map<string, OperationError>

/**
 * The violation that the code threw again or did not catch; null for any other error. The runner's
 * report alone proves nothing, so it has to be one that was thrown inside this call.
 */
export function uncaughtViolation(
  error: ErrorReport,
  violations: Violations | null,
): OperationError | null {
  return error.name === UNIQUE_VIOLATION ? (violations?.get(error.message) ?? null) : null
}

/** Name of the error of a called Function that failed with a code that it declares. */
export const DECLARED_ERROR = 'FunctionError'

/** Name of the Refusal of a cursor that is damaged, or of another list. */
export const INVALID_CURSOR = 'InvalidCursor'
