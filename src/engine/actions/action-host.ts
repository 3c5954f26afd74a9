/** Performs the operations of one Action: calls of other Functions, requests and timers. */
import { Fault, isFault } from '../../errors/fault.ts'
import type { FileOperation } from '../../runner/protocol/file-operations.ts'
import { TIMERS_MAX } from '../../runner/protocol/messages.ts'
import type { Operation } from '../../runner/protocol/operations.ts'
import type { ScheduleOperation } from '../../runner/protocol/schedule-operations.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { DeclaredErrorKind, FunctionManifest } from '../../value/manifest.ts'
import { encodeStored } from '../../value/stored.ts'
import { decodeTagged } from '../../value/tagged.ts'
import { OperationError, type Violations } from '../calls/operation-error.ts'
import type { OperationResult, RunnerHost } from '../calls/outcomes.ts'
import { issueSeededGuest } from '../invocations/guest-identities.ts'
import { type Invocation, type InvocationInput, runnerCall } from '../invocations/invocation.ts'
import {
  calleePrincipal,
  checkCharacters,
  checkNesting,
  declaredError,
  findCallee,
} from '../invocations/nested-calls.ts'
import {
  ACTION_CALLS_MAX,
  ACTION_MILLIS_MAX,
  ACTION_REQUESTS_MAX,
  NESTED_CALLS_MAX,
  REQUESTS_MAX,
} from '../limits.ts'
import { calleeArguments } from '../releases/callee-arguments.ts'
import {
  checkScheduleLimits,
  performSchedule,
  requestedWork,
} from '../scheduled-work/function-scheduler.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { ActionFiles, concernsFiles, isWrite, type MetadataOperation } from './action-files.ts'
import { charactersOf } from './outgoing-requests.ts'
import type { ActionPort } from './ports.ts'
import { Semaphore } from './semaphore.ts'

type RunOperation = Extract<Operation, readonly ['run', ...unknown[]]>
type ConfigOperation = Extract<Operation, readonly ['config', ...unknown[]]>
type FetchOperation = Extract<Operation, readonly ['fetch', ...unknown[]]>

/** Runs another Function as an invocation of its own and returns tagged JSON. */
export type RunCallee = (
  input: InvocationInput,
  depth: number,
  schedules: ScheduleCounter,
) => Promise<string>

/** Counts the pieces of work that one Action and the Functions that it called have scheduled. */
export interface ScheduleCounter {
  created: number
}

export class ActionHost implements RunnerHost {
  grownBytes?: number
  readonly #port: ActionPort
  readonly #invocation: Invocation
  readonly #runCallee: RunCallee
  readonly #depth: number
  readonly #schedules: ScheduleCounter
  readonly files: ActionFiles
  /** The codes of failed calls. The Action fails with one of them unless its code catches it. */
  readonly failures = new Map<string, DeclaredErrorKind>()
  /** The unique index violations that called Functions failed with, by message. */
  readonly violations: Violations = new Map()
  readonly #calls = new Semaphore(ACTION_CALLS_MAX)
  readonly #requests = new Semaphore(ACTION_REQUESTS_MAX)
  /** The requests in progress, by handle. */
  readonly #open = new Map<number, AbortController>()
  readonly #sleeps = new Set<ReturnType<typeof setTimeout>>()
  readonly #ended = new AbortController()
  /** Characters of the arguments and bodies of calls and requests in progress. */
  #characters = 0
  #callCount = 0
  #requestCount = 0
  #hasSent = false
  #hasStored = false
  #guests = 0
  #scheduled = 0

  constructor(
    port: ActionPort,
    invocation: Invocation,
    runCallee: RunCallee,
    { depth, schedules }: { readonly depth: number; readonly schedules: ScheduleCounter },
  ) {
    this.#port = port
    this.#schedules = schedules
    this.#invocation = invocation
    this.#runCallee = runCallee
    this.#depth = depth
    this.files = new ActionFiles(port, invocation)
  }

  /** Returns whether the Action may have had an effect, so that it must not run again. */
  get hasActed(): boolean {
    return this.#callCount > 0 || this.#hasSent || this.#hasStored
  }

  /** Cancels the requests and timers that are left. A Mutation that it called still completes. */
  end(): void {
    this.#ended.abort()
    for (const request of this.#open.values()) request.abort()
    for (const sleep of this.#sleeps) clearTimeout(sleep)
  }

  operation(operation: Operation): OperationResult | Promise<OperationResult> {
    switch (operation[0]) {
      case 'run':
        return this.#run(operation)
      case 'fetch':
        return this.#fetch(operation)
      case 'abort':
        this.#open.get(operation[1])?.abort()
        return 'null'
      case 'sleep':
        return this.#sleep(operation[1])
      case 'usage':
        return this.#usage()
      case 'config':
        return this.#readConfiguration(operation)
      case 'issueGuest': {
        const input = { count: ++this.#guests, expiresInSeconds: operation[1] }
        return issueSeededGuest(this.#port.issueGuest, runnerCall(this.#invocation), input)
      }
      case 'grantDownload':
      case 'signDownload':
      case 'grantUpload':
      case 'putFile':
      case 'readFile':
        return this.#performOnFiles(operation)
      case 'schedule':
      case 'cancelScheduled':
      case 'getScheduled':
        return this.#schedule(operation)
      case 'get':
      case 'range':
      case 'delete':
        if (concernsFiles(operation)) return this.#performOnFiles(operation)
        throw noDocuments()
      case 'insert':
      case 'patch':
      case 'replace':
        throw noDocuments()
    }
  }

  /** Operations on files count as requests: they wait for others in the same way. */
  async #performOnFiles(operation: FileOperation | MetadataOperation): Promise<OperationResult> {
    this.#countRequest('ctx.storage')
    if (isWrite(operation)) this.#hasStored = true
    const { signal } = this.#ended
    const perform = () => this.#requests.use(signal, () => this.files.perform(operation))
    return this.#counting(operation[0] === 'putFile' ? operation[2].length : 0, perform)
  }

  /** Each operation is a transaction of its own, and counts as a request. */
  async #schedule(operation: ScheduleOperation): Promise<string> {
    this.#countRequest('ctx.scheduler')
    const { pendingWork, documents, system } = this.#port
    const nowMicros = system.nowMicros()
    const { prepared } = this.#invocation
    const isNew = operation[0] === 'schedule'
    const work = isNew ? requestedWork({ prepared, nowMicros }, operation) : null
    if (isNew) checkScheduleLimits(++this.#scheduled, pendingWork)
    const perform = (transaction: Transaction) =>
      performSchedule(transaction, operation, { work, nowMicros })
    const { signal } = this.#ended
    return this.#counting(work?.argumentsText.length ?? 0, () =>
      this.#requests.use(signal, async () => {
        if (operation[0] === 'getScheduled') return documents.read(perform)
        this.#hasStored = true
        const text = await changedWork(documents, perform)
        if (isNew) this.#schedules.created += 1
        return text
      }),
    )
  }

  #countRequest(method: string): void {
    this.#requestCount += 1
    if (this.#requestCount <= REQUESTS_MAX) return
    const rule = `an Action makes at most ${REQUESTS_MAX} requests`
    throw new OperationError('RangeError', `${method}: ${rule}`)
  }

  async #run([, kind, name, json]: RunOperation): Promise<string> {
    const { prepared, principal, context, trace } = this.#invocation
    const definition = findCallee(prepared, kind, name)
    const argumentsText = calleeArguments(prepared, definition, json)
    const admitted = calleePrincipal(definition, principal)
    this.#callCount += 1
    checkNesting(this.#callCount, this.#depth + 1)
    const { signal } = this.#ended
    const call = { prepared, definition, argumentsText, principal: admitted, context }
    const input = { ...call, trace, signal }
    try {
      const run = () => this.#runCallee(input, this.#depth + 1, this.#schedules)
      const text = await this.#counting(argumentsText.length, () => this.#calls.use(signal, run))
      return encodeStored(decodeTagged(JSON.parse(text)))
    } catch (error) {
      throw this.#operationErrorOf(definition, error)
    }
  }

  /** Runs the task and counts its characters meanwhile. Throws OperationError beyond the bound. */
  async #counting<T>(characters: number, task: () => Promise<T>): Promise<T> {
    checkCharacters(this.#characters + characters)
    this.#characters += characters
    try {
      return await task()
    } finally {
      this.#characters -= characters
    }
  }

  /** Converts a failure of a call, which is an invocation of its own: the Action may catch any. */
  #operationErrorOf({ name }: FunctionManifest, error: unknown): unknown {
    if (!isFault(error)) return error
    const { code, kind, detail, cause } = error
    if (code === 'UNIQUE_VIOLATION' && cause instanceof OperationError) {
      this.violations.set(cause.message, cause)
      return cause
    }
    if (code.startsWith('APP_')) {
      this.failures.set(code.slice(4), kind as DeclaredErrorKind)
      return declaredError(name, code.slice(4))
    }
    if (code === 'FUNCTION_FAILED')
      return new OperationError('Error', `${name} failed: ${detail}`, code)
    const message = `${name}: ${error.message}${detail === undefined ? '' : ` (${detail})`}`
    return new OperationError('ServiceError', message, code)
  }

  async #fetch([, handle, request]: FetchOperation): Promise<string> {
    this.#countRequest('fetch')
    this.#hasSent = true
    if (this.#open.has(handle))
      throw new Fault('FUNCTION_FAILED', { detail: 'a request handle was used twice' })
    const abort = new AbortController()
    this.#open.set(handle, abort)
    const { signal } = abort
    const { definition, trace } = this.#invocation
    const hosts = definition.uses?.network ?? []
    try {
      const terms = { hosts, semaphore: this.#requests, signal, trace }
      const perform = () => this.#port.requests.perform(request, terms)
      return await this.#counting(charactersOf(request), perform)
    } catch (error) {
      if (signal.aborted) throw new OperationError('AbortError', 'fetch: it was aborted')
      throw error
    } finally {
      this.#open.delete(handle)
    }
  }

  #readConfiguration([, kind, name]: ConfigOperation): string {
    const { configuration, definition } = this.#invocation
    if (kind === 'variable') return JSON.stringify(configuration.variable(name))
    const call = `ctx.config.secret("${name}")`
    if (!definition.uses?.secrets.includes(name)) {
      throw new OperationError('TypeError', `${call}: add it to uses.secrets of this Action`)
    }
    const secret = configuration.secret(name)
    if (secret !== null) return JSON.stringify(secret.reveal())
    throw new OperationError(
      'Error',
      `${call}: it is not set: svc config set ${name} --secret, for svc dev in .env.local`,
    )
  }

  #sleep(millis: number): Promise<string> {
    if (this.#sleeps.size >= TIMERS_MAX) {
      throw new OperationError('RangeError', `at most ${TIMERS_MAX} timers`)
    }
    return new Promise((resolve) => {
      const timer = setTimeout(
        () => {
          this.#sleeps.delete(timer)
          resolve('null')
        },
        Math.min(millis, ACTION_MILLIS_MAX),
      )
      this.#sleeps.add(timer)
    })
  }

  #usage(): string {
    const left = this.#invocation.deadline - this.#port.system.monotonicMillis()
    const milliseconds = Math.max(0, Math.round(ACTION_MILLIS_MAX - left))
    return JSON.stringify({
      calls: { used: this.#callCount, limit: NESTED_CALLS_MAX },
      requests: { used: this.#requestCount, limit: REQUESTS_MAX },
      milliseconds: { used: milliseconds, limit: ACTION_MILLIS_MAX },
    })
  }
}

/** Rejects with OperationError, which the Action may catch, where nothing may have been stored. */
async function changedWork(
  documents: ActionPort['documents'],
  perform: (transaction: Transaction) => MaybePromise<string>,
): Promise<string> {
  try {
    return await documents.change(perform)
  } catch (error) {
    if (!isFault(error)) throw error
    throw new OperationError('ServiceError', `ctx.scheduler: ${error.message}`, error.code)
  }
}

function noDocuments(): OperationError {
  return new OperationError(
    'TypeError',
    'ctx.db in an Action: use ctx.runQuery and ctx.runMutation',
  )
}
