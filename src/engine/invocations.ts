/** One run of a Function: transaction, runner, and what its outcome means to the caller. */
import type { Code } from '../errors/codes.ts'
import { Fault } from '../errors/fault.ts'
import { sha256 } from '../system/digests.ts'
import type { System } from '../system/system.ts'
import type { LogFields, Logger } from '../telemetry/log.ts'
import { Malformed } from '../value/malformed.ts'
import type { FunctionManifest } from '../value/manifest.ts'
import { fromStoredJson } from '../value/stored.ts'
import { encodeTagged } from '../value/tagged.ts'
import { INVOCATION_MILLIS_MAX, RESULT_BYTES_MAX } from './limits.ts'
import { perform } from './operations.ts'
import type { PreparedRelease } from './prepared-release.ts'
import type { RunnerOutcome, RunnerPool } from './runner-pool.ts'
import { mapStack } from './runners/stack-traces.ts'
import type { Transaction } from './transaction.ts'

/** Whom a call belongs to in the log. */
export interface InvocationContext {
  readonly requestId: string
  readonly invocationId: string
}

export interface Invocation {
  readonly prepared: PreparedRelease
  readonly definition: FunctionManifest
  /** Stored JSON of the checked arguments. */
  readonly argumentsText: string
  readonly nowMicros: bigint
  /** 32 bytes; the same for every attempt of one invocation. */
  readonly seed: Uint8Array
  /** Monotonic milliseconds. */
  readonly deadline: number
  readonly context: InvocationContext
}

export interface Ran {
  /** Tagged JSON. */
  readonly resultText: string
  readonly usedClock: boolean
  readonly usedRandom: boolean
}

export interface InvocationPort {
  readonly pool: RunnerPool
  readonly system: System
  readonly log: Logger
}

/** A fresh invocation: its time, seed and deadline stay for all of its attempts. */
export function beginInvocation(
  { system }: InvocationPort,
  input: Pick<Invocation, 'prepared' | 'definition' | 'argumentsText' | 'context'>,
): Invocation {
  return {
    ...input,
    nowMicros: system.nowMicros(),
    seed: system.randomBytes(32),
    deadline: system.monotonicMillis() + INVOCATION_MILLIS_MAX,
  }
}

/** Random bytes that an attempt draws for document IDs: the same sequence from the same seed. */
export function seededEntropy(seed: Uint8Array): (length: number) => Uint8Array {
  let counter = 0
  return (length) => {
    const block = sha256(seed, `document-id/${counter++}`)
    return new Uint8Array(block.subarray(0, length))
  }
}

/**
 * Runs the Function once. Null where a runner died under it through no fault of its own: the
 * caller runs it again with a fresh transaction. Raises every failure of an invocation.
 */
export async function run(
  port: InvocationPort,
  invocation: Invocation,
  transaction: Transaction,
): Promise<Ran | null> {
  const { prepared, definition, context } = invocation
  const outcome = await port.pool.invoke(
    prepared.release,
    {
      function: definition.name,
      kind: definition.kind,
      argumentsText: invocation.argumentsText,
      nowMicros: invocation.nowMicros,
      seed: invocation.seed,
      deadline: invocation.deadline,
    },
    { operation: (operation) => transaction.inOrder(() => perform(transaction, operation)) },
  )
  const fields: LogFields = {
    ...context,
    stream: 'function',
    releaseId: prepared.release.releaseId,
    function: definition.name,
  }
  if ('logs' in outcome) {
    for (const line of outcome.logs) {
      port.log[line.level]('function.log', { ...fields, message: line.message })
    }
  }
  if (transaction.limit !== null) throw limitFault(transaction.limit)
  return conclude(port, invocation, outcome, fields)
}

function conclude(
  { log }: InvocationPort,
  { prepared, definition }: Invocation,
  outcome: RunnerOutcome,
  fields: LogFields,
): Ran | null {
  switch (outcome.kind) {
    case 'returned':
      return {
        resultText: checkedResult(prepared, definition, outcome.result),
        usedClock: outcome.usedClock,
        usedRandom: outcome.usedRandom,
      }
    case 'failed':
      throw declaredFault(definition, outcome.code)
    case 'threw': {
      const { name, message, stack } = outcome.error
      const trace = mapStack(stack, prepared.release.sourceMap)
      log.warn('function.failed', { ...fields, message: `${name}: ${message}`, trace })
      throw new Fault('FUNCTION_FAILED', { detail: `${name}: ${message}` })
    }
    case 'limit':
      throw limitFault(outcome.limit)
    case 'deadline':
      throw new Fault('DEADLINE_EXCEEDED')
    case 'broken':
      log.warn('function.failed', { ...fields, message: outcome.detail })
      throw new Fault('FUNCTION_FAILED', { detail: outcome.detail })
    case 'lost':
      return null
  }
}

function limitFault(limit: string): Fault {
  return new Fault('LIMIT_EXCEEDED', { detail: limit })
}

/** An undeclared code is the author's mistake, not a new public code. */
function declaredFault(definition: FunctionManifest, code: string): Fault {
  const kind = Object.hasOwn(definition.errors, code) ? definition.errors[code] : undefined
  if (kind === undefined) {
    return new Fault('FUNCTION_FAILED', {
      detail: `${definition.name} fails with an undeclared code`,
    })
  }
  return new Fault(`APP_${code}` as Code, { kind, detail: definition.name })
}

function checkedResult(
  prepared: PreparedRelease,
  definition: FunctionManifest,
  json: unknown,
): string {
  let text: string
  try {
    const { checkResult } = prepared.functions.get(definition.name)!
    text = encodeTagged(checkResult(fromStoredJson(json), 'result'))
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    throw new Fault('RESULT_INVALID', { detail: `${definition.name}: ${error.message}` })
  }
  if (text.length > RESULT_BYTES_MAX) throw limitFault('result bytes')
  return text
}
