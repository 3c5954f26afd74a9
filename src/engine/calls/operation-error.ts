/** Errors that a rejected `ctx` operation throws inside the author's code. */
import type { ErrorReport, ViolatedIndex } from '../../runner/protocol/messages.ts'

/**
 * The rejection of one operation, such as a read of an unknown table. It is thrown in the author's
 * code at the operation, so its message names the mistake and the fix.
 */
export class OperationError extends Error {
  /** The `error.code` in the author's code; null if there is none. */
  readonly code: string | null
  /** The unique index that a write violates; null for any other error. */
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

/** Name of the error for a violated unique index; the module `svc` exports a class for it. */
const UNIQUE_VIOLATION = 'UniqueViolation'

/** Returns the error of a write whose key another document has in a unique index. */
export function uniqueViolation(
  violated: ViolatedIndex,
  fields: readonly string[],
): OperationError {
  const { table, index } = violated
  const message = `${table}: another document has the same ${fields.join()} (index ${index})`
  return new OperationError(UNIQUE_VIOLATION, message, null, violated)
}

/** Unique index violations that operations of one call threw, by message. */
export type Violations = Map<string, OperationError>

/**
 * Returns the violation that the code rethrew or did not catch; null for any other error. The
 * runner's report is not trusted, so the server must have thrown the violation inside this call.
 */
export function uncaughtViolation(
  error: ErrorReport,
  violations: Violations | null,
): OperationError | null {
  return error.name === UNIQUE_VIOLATION ? (violations?.get(error.message) ?? null) : null
}

/** Name of the error for an insert whose ID another document has. */
export const DOCUMENT_EXISTS = 'DocumentExists'

/** Name of the error for a called Function that failed with a code that it declares. */
export const DECLARED_ERROR = 'FunctionError'

/** Name of the error for a cursor that is damaged or belongs to another list. */
export const INVALID_CURSOR = 'InvalidCursor'
