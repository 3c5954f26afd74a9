/**
 * The calls of one transaction: the one that it begins with, and those that it makes of others.
 * All of them see the same documents in the same runner; what a called Mutation wrote is undone
 * where it fails.
 */
import { Fault } from '../../errors/fault.ts'
import type { Operation } from '../../runner/operations.ts'
import { sha256Hex } from '../../system/digests.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import { admit, type Principal } from '../../value/identities.ts'
import type { DeclaredErrorKind, FunctionKind, FunctionManifest } from '../../value/manifest.ts'
import { encodeStored, fromStoredJson } from '../../value/stored.ts'
import { ValidationError } from '../../value/validation-error.ts'
import {
  ARGUMENT_BYTES_MAX,
  NESTED_CALLS_MAX,
  NESTED_CHARACTERS_MAX,
  NESTED_DEPTH_MAX,
} from '../limits.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import type { OperationAnswer } from '../runners/outcomes.ts'
import type { InvokePart, RunnerCall, RunnerHost, RunnerOutcome } from '../runners/runner-pool.ts'
import type { ConfigurationState } from './configuration.ts'
import { type Performing, perform } from './context-operations.ts'
import { guestOf, type IssueGuest } from './guests.ts'
import { DECLARED_ERROR, OperationError, uncaughtViolation } from './operation-error.ts'
import { returnedValue, withinBounds } from './returned-documents.ts'

type RunOperation = Extract<Operation, readonly ['run', ...unknown[]]>
const ignore = (): void => undefined

type Returned = Extract<RunnerOutcome, { readonly kind: 'returned' }>
type ConfigOperation = Extract<Operation, readonly ['config', ...unknown[]]>

/** Codes that called Functions failed with. */
export type CalledFailures = Map<string, DeclaredErrorKind>

/** What all calls of one transaction share. */
export interface TransactionCalls extends Performing {
  /** Of the invocation; each call sees of it what its Function's mode admits. */
  readonly principal: Principal | null
  readonly issueGuest: IssueGuest
  readonly configuration: ConfigurationState
  /** Takes what a call said of itself to the log. */
  readonly reports: { add(definition: FunctionManifest, outcome: RunnerOutcome): void }
  /** Where nobody caught one, it is the caller's; null while there is none. */
  failures: CalledFailures | null
  /** Calls that were made of others, and the characters of their arguments. */
  count: number
  characters: number
  usedClock: boolean
  usedRandom: boolean
  usedIdentity: boolean
  usedConfiguration: boolean
}

/** Serves one call of the transaction. */
export class TransactionHost implements RunnerHost {
  grownBytes?: number
  readonly #calls: TransactionCalls
  readonly #call: RunnerCall
  readonly #depth: number
  #guests = 0
  /** Settles with the operations that were begun; null where all have been answered. */
  #last: Promise<unknown> | null = null

  constructor(calls: TransactionCalls, call: RunnerCall, depth = 0) {
    this.#calls = calls
    this.#call = call
    this.#depth = depth
  }

  /**
   * Operations of a Mutation run one after the other, in the order in which the code made them: two
   * patches of one document in a `Promise.all` must not both read the version before. A call that
   * it makes is one of them, and has an order of its own.
   */
  operation(operation: Operation, invokePart: InvokePart): MaybePromise<OperationAnswer> {
    if (!this.#calls.transaction.isWritable) return this.#perform(operation, invokePart)
    const result =
      this.#last === null
        ? this.#perform(operation, invokePart)
        : this.#performBehind(this.#last, operation, invokePart)
    if (result instanceof Promise) this.#follow(result)
    return result
  }

  async #performBehind(
    last: Promise<unknown>,
    operation: Operation,
    invokePart: InvokePart,
  ): Promise<OperationAnswer> {
    await last
    return this.#perform(operation, invokePart)
  }

  #follow(result: Promise<unknown>): void {
    const last = result.then(ignore, ignore).then(() => {
      if (this.#last === last) this.#last = null
    })
    this.#last = last
  }

  #perform(operation: Operation, invokePart: InvokePart): MaybePromise<OperationAnswer> {
    const { transaction, count } = this.#calls
    if (operation[0] === 'run') return this.#run(operation, invokePart)
    if (operation[0] === 'issueGuest') return this.#issueGuest(operation[1])
    if (operation[0] === 'config') return this.#configured(operation)
    if (operation[0] !== 'usage') return perform(this.#calls, operation)
    const calls = { used: count, limit: NESTED_CALLS_MAX }
    return JSON.stringify({ ...transaction.usage, calls })
  }

  #configured([, kind, name]: ConfigOperation): string {
    if (kind === 'secret') {
      throw new OperationError('TypeError', 'ctx.config.secret: only an Action reads secrets')
    }
    this.#calls.usedConfiguration = true
    return JSON.stringify(this.#calls.configuration.variable(name))
  }

  #issueGuest(expiresInSeconds: number): string {
    if (this.#call.kind === 'query') {
      throw new OperationError('TypeError', 'ctx.auth.issueGuest: a Query lets nobody in')
    }
    const count = ++this.#guests
    return guestOf(this.#calls.issueGuest, this.#call, { count, expiresInSeconds })
  }

  async #run([, kind, name, json]: RunOperation, invokePart: InvokePart): Promise<string> {
    const { prepared, transaction } = this.#calls
    if (kind === 'action') {
      throw new OperationError('TypeError', 'ctx.runAction: only an Action calls an Action')
    }
    if (kind === 'mutation' && this.#call.kind !== 'mutation') {
      throw new OperationError(
        'TypeError',
        'ctx.runMutation: a Query cannot write; make it a mutation',
      )
    }
    const definition = findCallee(prepared, kind, name)
    const argumentsText = calleeArguments(prepared, definition, json)
    // Whether it may be called depends on who calls.
    this.#calls.usedIdentity ||= definition.auth !== 'none'
    const seen = calleePrincipal(definition, this.#calls.principal)
    const identityText = seen?.identityText ?? 'null'
    this.#calls.count += 1
    this.#calls.characters += argumentsText.length
    checkHeld(this.#calls.characters)
    checkNesting(this.#calls.count, this.#depth + 1)
    const seed = sha256Hex(`${this.#call.seed}call/${this.#calls.count}`)
    const input = { function: name, kind, argumentsText, identityText, seed }
    const { ahead: _, ...shared } = this.#call
    const call: RunnerCall = { ...shared, ...input }
    const host = new TransactionHost(this.#calls, call, this.#depth + 1)
    const endSavepoint = transaction.savepoint()
    let keeps = false
    try {
      const outcome = await invokePart(call, host)
      const text = this.#conclude(definition, outcome)
      keeps = true
      return text
    } finally {
      // What it left running may still write: that belongs to it too.
      await host.#last
      endSavepoint(keeps)
    }
  }

  #conclude(definition: FunctionManifest, outcome: RunnerOutcome): string {
    const calls = this.#calls
    calls.reports.add(definition, outcome)
    if ('usedClock' in outcome) {
      calls.usedClock ||= outcome.usedClock === true
      calls.usedRandom ||= outcome.usedRandom === true
      calls.usedIdentity ||= outcome.usedIdentity === true
    }
    switch (outcome.kind) {
      case 'returned':
        return calleeResult(calls.prepared, definition, outcome)
      case 'failed':
        throw this.#failure(definition, outcome.code)
      case 'threw': {
        const { error } = outcome
        const violation = uncaughtViolation(error, calls.transaction.violations)
        throw violation ?? new OperationError(error.name, error.message)
      }
      case 'limit':
        throw new Fault('LIMIT_EXCEEDED', { detail: outcome.limit })
      case 'deadline':
        throw new Fault('DEADLINE_EXCEEDED')
      // The runner is gone, and the caller with it.
      case 'broken':
      case 'lost':
      case 'void':
      case 'cancelled':
        throw new Fault('UNAVAILABLE', { detail: outcome.kind })
    }
  }

  #failure(definition: FunctionManifest, code: string): OperationError {
    const kind = errorKind(definition, code, this.#calls.failures)
    if (kind === null) {
      return new OperationError('TypeError', `${definition.name} fails with an undeclared code`)
    }
    this.#calls.failures ??= new Map()
    this.#calls.failures.set(code, kind)
    return declaredError(definition.name, code)
  }
}

/** What the code means to a caller of the Function; null where nobody declares it. */
export function errorKind(
  { errors }: FunctionManifest,
  code: string,
  failures: CalledFailures | null,
): DeclaredErrorKind | null {
  return (Object.hasOwn(errors, code) ? errors[code] : failures?.get(code)) ?? null
}

export function declaredError(name: string, code: string): OperationError {
  return new OperationError(DECLARED_ERROR, `${name} failed with ${code}`, code)
}

/** Throws a Refusal for what is no such Function of the Release. */
export function findCallee(
  { release }: PreparedRelease,
  kind: FunctionKind,
  name: string,
): FunctionManifest {
  const definition = release.functions.get(name)
  const shown = name.slice(0, 100)
  if (definition === undefined) {
    throw new OperationError('TypeError', `there is no Function "${shown}" in this Release`)
  }
  if (definition.kind === kind) return definition
  const verb = (of: FunctionKind) => `ctx.run${of[0]!.toUpperCase()}${of.slice(1)}`
  const mend = `call it with ${verb(definition.kind)}`
  throw new OperationError('TypeError', `${verb(kind)}: "${shown}" is no ${kind}; ${mend}`)
}

/** Whom the called Function sees. Throws a Refusal where its mode refuses the caller. */
export function calleePrincipal(
  { name, auth }: FunctionManifest,
  caller: Principal | null,
): Principal | null {
  const admitted = admit(auth, caller)
  if (admitted === 'missing' || admitted === 'denied') {
    const found = caller === null ? 'nobody' : `a ${caller.kind}`
    throw new OperationError('TypeError', `${name} is for a ${auth}, and this call has ${found}`)
  }
  return admitted
}

/** Stored JSON of the checked arguments. Throws a Refusal for those that do not fit. */
export function calleeArguments(
  prepared: PreparedRelease,
  { name }: FunctionManifest,
  json: unknown,
): string {
  const { coerceArguments } = prepared.functions.get(name)!
  const text = checked(`arguments of ${name}`, () =>
    encodeStored(coerceArguments(fromStoredJson(json), 'arguments')),
  )
  if (text.length <= ARGUMENT_BYTES_MAX) return text
  throw new OperationError(
    'RangeError',
    `arguments of ${name}: at most ${ARGUMENT_BYTES_MAX} bytes`,
  )
}

function calleeResult(
  prepared: PreparedRelease,
  { name }: FunctionManifest,
  { result, documents }: Returned,
): string {
  const { checkResult } = prepared.functions.get(name)!
  return checked(`result of ${name}`, () =>
    encodeStored(
      checkResult(
        withinBounds(() => returnedValue(result, documents)),
        'result',
      ),
    ),
  )
}

function checked(where: string, work: () => string): string {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new OperationError('TypeError', `${where}: ${error.path} must be ${error.rule}`)
  }
}

/** Code that asks without end must not fill the memory of the server. Throws a Refusal. */
export function checkHeld(characters: number): void {
  if (characters <= NESTED_CHARACTERS_MAX) return
  throw new OperationError(
    'RangeError',
    `over ${NESTED_CHARACTERS_MAX} characters of arguments or bodies`,
  )
}

/** Throws a Refusal for the call that is one too many. */
export function checkNesting(count: number, depth: number): void {
  if (depth > NESTED_DEPTH_MAX) {
    throw new OperationError(
      'RangeError',
      `calls of Functions nest over ${NESTED_DEPTH_MAX} levels`,
    )
  }
  if (count > NESTED_CALLS_MAX) {
    throw new OperationError('RangeError', `more than ${NESTED_CALLS_MAX} calls of other Functions`)
  }
}
