/** One run of a Function: transaction, runner, and what its outcome means to the caller. */
import type { StoredDocument } from '../../documents/store.ts'
import type { Code } from '../../errors/codes.ts'
import { Fault } from '../../errors/fault.ts'
import type { LogLine } from '../../runner/messages.ts'
import type { System } from '../../system/system.ts'
import type { LogFields, Logger } from '../../telemetry/log.ts'
import type { Principal } from '../../value/identities.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { INVOCATION_MILLIS_MAX, LOST_RUNS_MAX, RESULT_BYTES_MAX } from '../limits.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import type { CancellationToken } from '../runners/outcomes.ts'
import type { RunnerCall, RunnerOutcome, RunnerPool } from '../runners/runner-pool.ts'
import { mapStack } from '../runners/stack-traces.ts'
import { namedDocuments } from '../speculation/prefetched-documents.ts'
import type { Transaction } from '../transactions/transaction.ts'
import type { FunctionUsage } from '../usage/function-usage.ts'
import type { ConfigurationSource, ConfigurationState } from './configuration.ts'
import type { Cursors } from './context-operations.ts'
import type { IssueGuest } from './guests.ts'
import {
  type CalledFailures,
  errorKind,
  type TransactionCalls,
  TransactionHost,
} from './nested-calls.ts'
import { uncaughtViolation, type Violations } from './operation-error.ts'
import { returnedValue, withinBounds } from './returned-documents.ts'

/** Whom a call belongs to in the log. */
export interface InvocationContext {
  readonly requestId: string
  readonly invocationId: string
  /** Of the Application Key that it came with. */
  readonly clientId?: string
  readonly credentialId?: string
}

export interface Invocation {
  readonly prepared: PreparedRelease
  readonly definition: FunctionManifest
  /** Stored JSON of the checked arguments. */
  readonly argumentsText: string
  /** Whom the Function sees; null for nobody. */
  readonly principal: Principal | null
  readonly nowMicros: bigint
  /** 32 bytes, hexadecimal; the same for every attempt of one invocation. */
  readonly seed: string
  /** Monotonic milliseconds; absent where it begins as it arrives. */
  readonly arrivedMillis?: number | undefined
  /** The same. */
  readonly deadline: number
  /** As it was when the invocation began. */
  readonly configuration: ConfigurationState
  readonly context: InvocationContext
  readonly signal?: CancellationToken | undefined
  /** Whether the next attempt runs ahead (pace.ts). */
  isSpeculative: boolean
}

export interface CompletedRun {
  /** Tagged JSON. */
  readonly resultText: string
  readonly usedClock: boolean
  readonly usedRandom: boolean
  /** Whether it looked at who calls. */
  readonly usedIdentity: boolean
  readonly usedConfiguration: boolean
}

export interface InvocationPort {
  readonly cursors: Cursors
  readonly issueGuest: IssueGuest
  readonly configuration: ConfigurationSource
  readonly pool: RunnerPool
  readonly system: System
  readonly log: Logger
  readonly usage: FunctionUsage
}

export type InvocationInput = Omit<
  Invocation,
  'nowMicros' | 'seed' | 'deadline' | 'configuration' | 'isSpeculative'
>

/**
 * A fresh invocation: its time, seed, deadline and configuration stay for all its attempts. It
 * stops once `signal` is aborted.
 */
export function beginInvocation(
  { system, configuration }: InvocationPort,
  input: Omit<InvocationInput, 'signal'>,
  signal: CancellationToken | undefined,
  millisMax = INVOCATION_MILLIS_MAX,
): Invocation {
  return {
    ...input,
    signal,
    nowMicros: system.nowMicros(),
    seed: system.randomBytes(32).toHex(),
    deadline: (input.arrivedMillis ?? system.monotonicMillis()) + millisMax,
    configuration: configuration.current,
    isSpeculative: input.prepared.functions.get(input.definition.name)!.pace.next(),
  }
}

/** Runs that left nothing, through no fault that was seen: one that always does must have one. */
export class LostRunCounter {
  #count = 0

  /** Raises FUNCTION_FAILED for the one that is too many. */
  add(): void {
    this.#count += 1
    if (this.#count <= LOST_RUNS_MAX) return
    throw new Fault('FUNCTION_FAILED', { detail: `it had to be run ${this.#count} times` })
  }
}

/** The call that a runner is given for an invocation. */
export function runnerCall(
  { definition, argumentsText, principal, nowMicros, seed, deadline, signal }: Invocation,
  ahead?: readonly StoredDocument[],
): RunnerCall {
  const { name, kind } = definition
  return {
    function: name,
    kind,
    argumentsText,
    identityText: principal?.identityText ?? 'null',
    nowMicros,
    seed,
    deadline,
    signal,
    ahead,
  }
}

/**
 * Runs the Function once. Null where the caller runs it again with a fresh transaction: a runner
 * died under it through no fault of its own, or what it did ahead did not succeed. Raises every
 * failure of an invocation.
 */
export async function run(
  port: InvocationPort,
  invocation: Invocation,
  transaction: Transaction,
): Promise<CompletedRun | null> {
  const { prepared, definition, argumentsText } = invocation
  const call = invocation.isSpeculative
    ? runnerCall(invocation, transaction.remembered(namedDocuments(argumentsText)))
    : runnerCall(invocation)
  const reports = new Reports(port, invocation)
  const calls: TransactionCalls = {
    prepared,
    transaction,
    cursors: port.cursors,
    principal: invocation.principal,
    issueGuest: port.issueGuest,
    configuration: invocation.configuration,
    reports,
    failures: null,
    count: 0,
    characters: 0,
    usedClock: false,
    usedRandom: false,
    usedIdentity: false,
    usedConfiguration: false,
  }
  const host = new TransactionHost(calls, call)
  const startedMillis = port.system.monotonicMillis()
  const outcome = await port.pool.invoke(prepared.release, call, host)
  if (outcome.kind === 'void') {
    invocation.isSpeculative = false
    prepared.functions.get(definition.name)!.pace.onVoid()
  }
  port.usage.record(invocation, outcome, { startedMillis, grownBytes: host.grownBytes })
  reports.end(outcome)
  if (transaction.limit !== null) throw limitFault(transaction.limit)
  if (outcome.kind === 'threw' && transaction.refusedCursor) {
    throw new Fault('ARGUMENTS_INVALID', { detail: outcome.error.message })
  }
  const ran = conclude(invocation, outcome, calls.failures, transaction.violations)
  if (ran === null) return null
  return {
    ...ran,
    usedClock: ran.usedClock || calls.usedClock,
    usedRandom: ran.usedRandom || calls.usedRandom,
    usedIdentity: ran.usedIdentity || calls.usedIdentity,
    usedConfiguration: calls.usedConfiguration,
  }
}

/** Log lines of called Functions that an attempt ahead holds back. */
const HELD_LINES_MAX = 1_024

/** What one attempt reports: nothing where it is void, since all of it comes again. */
class Reports {
  readonly #port: InvocationPort
  readonly #invocation: Invocation
  readonly #holds: boolean
  #held: (() => void)[] | null = null
  #lines = 0

  constructor(port: InvocationPort, invocation: Invocation) {
    this.#port = port
    this.#invocation = invocation
    this.#holds = invocation.isSpeculative
  }

  add(callee: FunctionManifest, outcome: RunnerOutcome): void {
    const reported = outcome.kind === 'returned' ? { ...outcome, result: null } : outcome
    this.#held ??= []
    this.#held.push(() => report(this.#port, this.#invocation, callee, reported))
    this.#lines += 'logs' in outcome ? (outcome.logs?.length ?? 0) : 0
    if (!this.#holds || this.#lines > HELD_LINES_MAX) this.#write()
  }

  end(outcome: RunnerOutcome): void {
    if (outcome.kind === 'void') return
    this.#write()
    report(this.#port, this.#invocation, this.#invocation.definition, outcome)
  }

  #write(): void {
    for (const write of this.#held ?? []) write()
    this.#held = null
  }
}

/** Writes the log lines of a call, and why it failed, under the name of its Function. */
export function report(
  { log }: Pick<InvocationPort, 'log'>,
  { prepared: { release }, context }: Pick<Invocation, 'prepared' | 'context'>,
  definition: FunctionManifest,
  outcome: RunnerOutcome,
): void {
  const fields: LogFields = {
    ...context,
    stream: 'function',
    releaseId: release.releaseId,
    function: definition.name,
  }
  if ('logs' in outcome) {
    for (const line of outcome.logs ?? []) writeLine(log, fields, line)
  }
  if (outcome.kind === 'threw') {
    const { name, message, stack } = outcome.error
    const trace = mapStack(stack, release.sourceMap)
    log.warn('function.failed', { ...fields, message: `${name}: ${message}`, trace })
  } else if (outcome.kind === 'broken') {
    log.warn('function.failed', { ...fields, message: outcome.detail })
  }
}

/** The level of the log keeps the server's own detail out, not what an author wants to see. */
function writeLine(log: Logger, fields: LogFields, { level, message, data }: LogLine): void {
  const shown = data === null ? {} : { data: plainData(data) }
  if (level !== 'debug') log[level]('function.log', { ...fields, message, ...shown })
  else log.info('function.log', { ...fields, lineLevel: level, message, ...shown })
}

/** Whatever code a runner has, its text may be no JSON. */
function plainData(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}

/**
 * What the outcome means to the caller; null where the call runs again. `failures` are the codes of
 * the Functions that it called, `violations` those that it was thrown.
 */
export function conclude(
  { prepared, definition }: Pick<Invocation, 'prepared' | 'definition'>,
  outcome: RunnerOutcome,
  failures: CalledFailures | null,
  violations: Violations | null,
): Omit<CompletedRun, 'usedConfiguration'> | null {
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
      throw limitFault(outcome.limit)
    case 'deadline':
      throw new Fault('DEADLINE_EXCEEDED')
    case 'broken':
      throw new Fault('FUNCTION_FAILED', { detail: outcome.detail })
    case 'cancelled':
      throw cancelledFault()
    case 'lost':
    case 'void':
      return null
  }
}

/** Of a call that ended since its caller is gone. */
export function cancelledFault(): Fault {
  return new Fault('UNAVAILABLE', { detail: 'nobody waits for the result any more' })
}

function limitFault(limit: string): Fault {
  return new Fault('LIMIT_EXCEEDED', { detail: limit })
}

/** An undeclared code is the author's mistake, not a new public code. */
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
  const { encodeResult, checkResult } = prepared.functions.get(definition.name)!
  const text = withinBounds(() => encodeResult(result, documents))
  if (text === null) {
    const value = () => withinBounds(() => returnedValue(result, documents))
    const detail = whyRefused(() => checkResult(value(), 'result'))
    throw new Fault('RESULT_INVALID', { detail: `${definition.name}: ${detail}` })
  }
  if (text.length > RESULT_BYTES_MAX) throw limitFault('result bytes')
  return text
}

function whyRefused(check: () => unknown): string {
  try {
    check()
    return 'the result is refused'
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return error.message
  }
}
