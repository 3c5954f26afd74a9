/** Turns the outcome of one run into the result of the call or the Fault that its caller gets. */
import type { Code } from '../../errors/codes.ts'
import { Fault } from '../../errors/fault.ts'
import type { FunctionKind, FunctionManifest } from '../../value/manifest.ts'
import { ValidationError } from '../../value/validation-error.ts'
import type { Value } from '../../value/values.ts'
import { responseOf } from '../calls/http-responses.ts'
import { limitText } from '../calls/limit-texts.ts'
import { uncaughtViolation, type Violations } from '../calls/operation-error.ts'
import type { RunnerLimit, RunnerOutcome } from '../calls/outcomes.ts'
import { returnedValue, withinBounds } from '../calls/returned-documents.ts'
import { RESULT_BYTES_MAX } from '../limits.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import { describeAt } from './found-values.ts'
import type { Invocation } from './invocation.ts'
import { type CalledFailures, errorKind } from './nested-calls.ts'

export interface CompletedRun {
  /** Tagged JSON. */
  readonly resultText: string
  readonly usedClock: boolean
  readonly usedRandom: boolean
  /** True if the code read the identity of its caller. */
  readonly usedIdentity: boolean
  readonly usedConfiguration: boolean
  /** Seconds of the shortest download grant in the result; null without one. */
  readonly grantSeconds: number | null
}

/**
 * Returns the checked result; null if the run was misspeculated or lost and has to be repeated.
 * Throws the Fault of every other outcome. `failures` holds the codes that called Functions failed
 * with, `violations` the unique index violations that were thrown inside this run.
 */
export function conclude(
  { prepared, definition }: Pick<Invocation, 'prepared' | 'definition'>,
  outcome: RunnerOutcome,
  failures: CalledFailures | null,
  violations: Violations | null,
): Omit<CompletedRun, 'usedConfiguration' | 'grantSeconds'> | null {
  switch (outcome.kind) {
    case 'returned':
      return {
        resultText: checkedResult(prepared, definition, outcome),
        usedClock: outcome.usedClock,
        usedRandom: outcome.usedRandom,
        usedIdentity: outcome.usedIdentity,
      }
    case 'failed':
      throw declaredFault(definition, outcome.code, failures)
    case 'threw': {
      const { name, message } = outcome.error
      const cause = uncaughtViolation(outcome.error, violations)
      if (cause !== null) throw new Fault('UNIQUE_VIOLATION', { detail: message, cause })
      throw new Fault('FUNCTION_FAILED', { detail: `${name}: ${message}` })
    }
    case 'limit':
      throw limitFault(outcome.limit, definition.kind)
    case 'deadline':
      throw new Fault('DEADLINE_EXCEEDED')
    case 'broken':
      throw new Fault('FUNCTION_FAILED', { detail: outcome.detail })
    case 'cancelled':
      throw cancelledFault()
    case 'lost':
    case 'misspeculated':
      return null
  }
}

/** The failure of a call that was cancelled because its caller disconnected. */
export function cancelledFault(): Fault {
  return new Fault('UNAVAILABLE', { detail: 'the caller disconnected' })
}

/** Returns the failure of a call of a Function of this kind that exceeded the limit. */
function limitFault(limit: RunnerLimit, kind: FunctionKind): Fault {
  return new Fault('LIMIT_EXCEEDED', { detail: limitText(limit, kind) })
}

/** An undeclared code is a mistake of the author, not a new public code. */
function declaredFault(
  definition: FunctionManifest,
  code: string,
  failures: CalledFailures | null,
): Fault {
  const kind = errorKind(definition, code, failures)
  if (kind === null) {
    return new Fault('FUNCTION_FAILED', {
      detail: `${definition.name} fails with an undeclared code`,
    })
  }
  return new Fault(`APP_${code}` as Code, { kind, detail: definition.name })
}

function checkedResult(
  prepared: PreparedRelease,
  definition: FunctionManifest,
  { result, documents }: Extract<RunnerOutcome, { readonly kind: 'returned' }>,
): string {
  const { encodeResult, checkResult, response } = prepared.functions.get(definition.name)!
  const text = withinBounds(() => encodeResult(result, documents))
  if (text === null) {
    const read = () => withinBounds(() => returnedValue(result, documents))
    const detail = violationOf(read, (value) => checkResult(value, 'result'))
    throw new Fault('RESULT_INVALID', { detail: `${definition.name}: ${detail}` })
  }
  if (text.length > RESULT_BYTES_MAX) throw limitFault('result', definition.kind)
  // The caller gets nothing else than a failure, so that nothing may be committed.
  if (response !== null) responseOf(text, response)
  return text
}

/** Returns the rule that the value breaks, and what it is instead. */
function violationOf(read: () => Value, check: (value: Value) => unknown): string {
  let value: Value | undefined
  try {
    value = read()
    check(value)
    return 'the result does not match `returns`'
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    const found = value === undefined ? null : describeAt(value, error.path)
    return found === null ? error.message : `${error.message}, but it is ${found}`
  }
}
