/**
 * The calls of one transaction: the root call and the Functions that it calls. All of them run in
 * one runner over the same documents. A savepoint undoes the writes of a called Function that
 * fails.
 */
import { Fault } from '../../errors/fault.ts'
import type { DownloadOperation } from '../../runner/protocol/file-operations.ts'
import type { Operation } from '../../runner/protocol/operations.ts'
import type { ScheduleOperation } from '../../runner/protocol/schedule-operations.ts'
import { sha256Hex } from '../../system/digests.ts'
import { andThen, type MaybePromise } from '../../system/maybe-promise.ts'
import type { Principal } from '../../value/identities.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import { encodeStored } from '../../value/stored.ts'
import type { ConfigurationSnapshot } from '../calls/function-configuration.ts'
import { limitText } from '../calls/limit-texts.ts'
import { OperationError, uncaughtViolation } from '../calls/operation-error.ts'
import type {
  InvokePart,
  OperationResult,
  RunnerCall,
  RunnerHost,
  RunnerOutcome,
} from '../calls/outcomes.ts'
import { returnedValue, withinBounds } from '../calls/returned-documents.ts'
import type { FunctionStorage } from '../files/function-storage.ts'
import {
  checkDownload,
  DOWNLOAD_METHODS,
  downloadText,
  noFile,
} from '../files/storage-arguments.ts'
import { NESTED_CALLS_MAX } from '../limits.ts'
import { calleeArguments, withOperationError } from '../releases/callee-arguments.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import {
  checkScheduleLimits,
  isScheduleOperation,
  performSchedule,
  requestedWork,
} from '../scheduled-work/function-scheduler.ts'
import type { PendingWork } from '../scheduled-work/pending-work.ts'
import type { ObservedReads } from '../speculation/read-predictions.ts'
import { type OperationContext, performOperation } from './context-operations.ts'
import { type IssueGuest, issueSeededGuest } from './guest-identities.ts'
import {
  type CalledFailures,
  calleePrincipal,
  checkCharacters,
  checkNesting,
  declaredError,
  errorKind,
  findCallee,
} from './nested-calls.ts'

type RunOperation = Extract<Operation, readonly ['run', ...unknown[]]>
const ignore = (): void => undefined

type Returned = Extract<RunnerOutcome, { readonly kind: 'returned' }>
type ConfigOperation = Extract<Operation, readonly ['config', ...unknown[]]>

/** The state that all calls of one transaction share. */
export interface TransactionCalls extends OperationContext {
  readonly prepared: PreparedRelease
  /** The principal of the invocation; a called Function sees it where its auth mode admits it. */
  readonly principal: Principal | null
  readonly issueGuest: IssueGuest
  readonly storage: Pick<FunctionStorage, 'issueDownload' | 'signDownload'>
  readonly configuration: ConfigurationSnapshot
  readonly pendingWork: PendingWork
  /** Logs the outcomes of called Functions. */
  readonly log: { add(definition: FunctionManifest, outcome: RunnerOutcome): void }
  /** Records the reads of the call; null if they are not observed. */
  readonly reads: ObservedReads | null
  /** The codes that the caller fails with unless its code catches them; null without any. */
  failures: CalledFailures | null
  /** Number of called Functions. */
  count: number
  /** Pieces of work that were scheduled, those that were undone included. */
  schedules: number
  /** Total characters of their arguments. */
  characters: number
  usedClock: boolean
  usedRandom: boolean
  usedIdentity: boolean
  usedConfiguration: boolean
  /** Seconds of the shortest download grant that a Query made; null without one. */
  grantSeconds: number | null
}

/** Operations that a Query may not do, not even as part of a transaction that writes. */
const WRITES: ReadonlySet<string> = new Set(['insert', 'patch', 'replace', 'delete'])

function writeInQuery(verb: string): OperationError {
  const message = `ctx.db.${verb} is a write in a Query: make the Function a mutation`
  return new OperationError('TypeError', message)
}

/** Performs the operations of one call of the transaction. */
export class TransactionHost implements RunnerHost {
  grownBytes?: number
  readonly #calls: TransactionCalls
  readonly #call: RunnerCall
  readonly #depth: number
  #guests = 0
  /** Resolves when the last operation has completed; null if none is in progress. */
  #last: Promise<unknown> | null = null

  constructor(calls: TransactionCalls, call: RunnerCall, depth = 0) {
    this.#calls = calls
    this.#call = call
    this.#depth = depth
  }

  /**
   * Performs the operations of a Mutation one after the other, in the order of the code: two
   * patches of one document in a `Promise.all` must not both read the old version. A call of
   * another Function is one such operation; the operations of that call have an order of their own.
   */
  operation(operation: Operation, invokePart: InvokePart): MaybePromise<OperationResult> {
    if (!this.#calls.transaction.isWritable) return this.#perform(operation, invokePart)
    const result =
      this.#last === null
        ? this.#perform(operation, invokePart)
        : this.#performAfter(this.#last, operation, invokePart)
    if (result instanceof Promise) this.#setLast(result)
    return result
  }

  async #performAfter(
    last: Promise<unknown>,
    operation: Operation,
    invokePart: InvokePart,
  ): Promise<OperationResult> {
    await last
    return this.#perform(operation, invokePart)
  }

  #setLast(result: Promise<unknown>): void {
    const last = result.then(ignore, ignore).then(() => {
      if (this.#last === last) this.#last = null
    })
    this.#last = last
  }

  #perform(operation: Operation, invokePart: InvokePart): MaybePromise<OperationResult> {
    const { transaction, count } = this.#calls
    if (operation[0] === 'run') return this.#run(operation, invokePart)
    if (operation[0] === 'issueGuest') return this.#issueGuest(operation[1])
    if (operation[0] === 'grantDownload' || operation[0] === 'signDownload') {
      return this.#grantDownload(operation)
    }
    if (operation[0] === 'config') return this.#readConfiguration(operation)
    if (isScheduleOperation(operation)) return this.#schedule(operation)
    if (operation[0] !== 'usage') {
      if (this.#call.kind === 'query' && WRITES.has(operation[0])) throw writeInQuery(operation[0])
      this.#observe(operation)
      return performOperation(this.#calls, operation)
    }
    const calls = { used: count, limit: NESTED_CALLS_MAX }
    return JSON.stringify({ ...transaction.usage, calls })
  }

  #observe(operation: Operation): void {
    const { reads } = this.#calls
    if (reads === null) return
    if (operation[0] === 'range' && this.#depth === 0) reads.add(operation[1])
    else if (operation[0] !== 'get') reads.close()
  }

  #schedule(operation: ScheduleOperation): MaybePromise<string> {
    const calls = this.#calls
    const { nowMicros, kind } = this.#call
    if (kind === 'query') {
      const rule = 'a Query cannot use it; make it a mutation'
      throw new OperationError('TypeError', `ctx.scheduler: ${rule}`)
    }
    const { prepared, transaction, pendingWork } = calls
    const isNew = operation[0] === 'schedule'
    const work = isNew ? requestedWork({ prepared, nowMicros }, operation) : null
    if (isNew) checkScheduleLimits(++calls.schedules, pendingWork)
    return performSchedule(transaction.asServer(), operation, { work, nowMicros })
  }

  #readConfiguration([, kind, name]: ConfigOperation): string {
    if (kind === 'secret') {
      throw new OperationError('TypeError', 'ctx.config.secret: only an Action reads secrets')
    }
    this.#calls.usedConfiguration = true
    return JSON.stringify(this.#calls.configuration.variable(name))
  }

  /** Makes a grant in a Query: the result of a Mutation is stored, and a grant must not be. */
  #grantDownload(operation: DownloadOperation): MaybePromise<string> {
    const calls = this.#calls
    const [type, fileId, { expiresInSeconds }] = operation
    const method = DOWNLOAD_METHODS[type]
    if (calls.transaction.isWritable) {
      const rule = 'the result of a Mutation is stored; make the grant in a Query or an Action'
      throw new OperationError('TypeError', `ctx.storage.${method}: ${rule}`)
    }
    checkDownload(operation)
    return andThen(calls.transaction.get(fileId), (found) => {
      if (found === null) throw noFile(method, fileId)
      calls.grantSeconds = Math.min(calls.grantSeconds ?? expiresInSeconds, expiresInSeconds)
      return downloadText(calls.storage, operation, this.#call.nowMicros)
    })
  }

  #issueGuest(expiresInSeconds: number): string {
    if (this.#call.kind === 'query') {
      const rule = 'a Query cannot issue guests; make it a mutation'
      throw new OperationError('TypeError', `ctx.auth.issueGuest: ${rule}`)
    }
    const count = ++this.#guests
    return issueSeededGuest(this.#calls.issueGuest, this.#call, { count, expiresInSeconds })
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
    // The identity of the caller decides whether the Function may be called.
    this.#calls.usedIdentity ||= definition.auth !== 'none'
    const principal = calleePrincipal(definition, this.#calls.principal)
    const identityText = principal?.identityText ?? 'null'
    this.#calls.count += 1
    this.#calls.characters += argumentsText.length
    checkCharacters(this.#calls.characters)
    checkNesting(this.#calls.count, this.#depth + 1)
    const seed = sha256Hex(`${this.#call.seed}call/${this.#calls.count}`)
    const input = { function: name, kind, argumentsText, identityText, seed }
    const {
      prefetched: _,
      prefetchedPages: _pages,
      placeholders: _placeholders,
      ...shared
    } = this.#call
    const call: RunnerCall = { ...shared, ...input }
    const host = new TransactionHost(this.#calls, call, this.#depth + 1)
    const endSavepoint = transaction.savepoint()
    let succeeded = false
    try {
      const outcome = await invokePart(call, host)
      const text = this.#conclude(definition, outcome)
      succeeded = true
      return text
    } finally {
      // Operations that the call did not await may still write inside its savepoint.
      await host.#last
      endSavepoint(succeeded)
    }
  }

  #conclude(definition: FunctionManifest, outcome: RunnerOutcome): string {
    const calls = this.#calls
    calls.log.add(definition, outcome)
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
        throw new Fault('LIMIT_EXCEEDED', { detail: limitText(outcome.limit, definition.kind) })
      case 'deadline':
        throw new Fault('DEADLINE_EXCEEDED')
      // The calling Function runs in the same runner and has ended too.
      case 'broken':
      case 'lost':
      case 'misspeculated':
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

function calleeResult(
  prepared: PreparedRelease,
  { name }: FunctionManifest,
  { result, documents }: Returned,
): string {
  const { checkResult } = prepared.functions.get(name)!
  return withOperationError(`result of ${name}`, () =>
    encodeStored(
      checkResult(
        withinBounds(() => returnedValue(result, documents)),
        'result',
      ),
    ),
  )
}
