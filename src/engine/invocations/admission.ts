/** Admits calls of an engine: bounds their number, prepares the Release, checks the arguments. */
import { Fault } from '../../errors/fault.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { System } from '../../system/system.ts'
import type { ActionOutcome, Actions } from '../actions/actions.ts'

import { BESIDE_CALLS_MILLIS, INVOCATION_MILLIS_MAX, INVOCATIONS_MAX } from '../limits.ts'
import { AwaitedPreparations } from '../releases/awaited-preparations.ts'
import type { Preparations } from '../releases/preparations.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import type { ActiveCalls } from './active-calls.ts'
import {
  ArgumentChecks,
  type CheckedCall,
  callKeyOf,
  checkedArguments,
} from './checked-arguments.ts'
import { endWith, startInvocation } from './invocation-spans.ts'
import type { MutationOutcome, Mutations } from './mutations.ts'
import { cacheKeysOf, type Queries, type QueryExecution, type QueryOutcome } from './queries.ts'
import type { MutationRequest, QueryRequest } from './requests.ts'

export interface AdmissionPort {
  readonly preparations: Preparations
  readonly queries: Queries
  readonly mutations: Mutations
  readonly actions: Actions
  readonly inFlight: ActiveCalls
  readonly system: Pick<System, 'monotonicMillis'>
}

type Input<R> = R & {
  readonly prepared: PreparedRelease
  readonly argumentsText: string
  /** Present for a Query that was looked up in the cache. */
  readonly callKey: string | undefined
  readonly arrivedMillis?: number | undefined
}
type Execute<R, T> = (input: Input<R>) => Promise<T>

export class CallAdmission {
  readonly #port: AdmissionPort
  readonly #argumentChecks = new ArgumentChecks()
  readonly #awaited: AwaitedPreparations
  /** Monotonic milliseconds of the last call that was not a run of scheduled work. */
  #calledMillis = Number.NEGATIVE_INFINITY

  constructor(port: AdmissionPort) {
    this.#port = port
    this.#awaited = new AwaitedPreparations(port)
  }

  /** Whether an application has called just now. Results from the cache do not count. */
  get hasCalls(): boolean {
    return this.#port.system.monotonicMillis() - this.#calledMillis < BESIDE_CALLS_MILLIS
  }

  /** Returns a cached result synchronously and without admission, since no Function runs. */
  query(request: QueryRequest): MaybePromise<QueryOutcome> {
    const { preparations, queries } = this.#port
    const prepared = preparations.find(request.release.releaseId)
    if (prepared === null) return this.#admit(request, this.#query)
    const checked = this.#argumentChecks.check(prepared, request)
    const cached = queries.find(cacheKeysOf(request, checked.callKey))
    return cached ?? this.#admit(request, this.#query, checked)
  }

  /** Runs a Query at the newest durable snapshot, whether or not its result is cached. */
  execution(request: QueryRequest): Promise<QueryExecution> {
    return this.#admit(request, this.#query)
  }

  /** Runs to completion even if the caller disconnects: a repeat gets the recorded result. */
  mutation(request: MutationRequest): Promise<MutationOutcome> {
    return this.#admit(request, this.#mutation)
  }

  action(request: QueryRequest): Promise<ActionOutcome> {
    return this.#admit(request, this.#action)
  }

  readonly #query = (input: Input<QueryRequest>): Promise<QueryExecution> =>
    this.#port.queries.invoke(input, cacheKeysOf(input, input.callKey ?? callKeyOf(input)))

  readonly #mutation = (input: Input<MutationRequest>): Promise<MutationOutcome> =>
    this.#port.mutations.invoke(input)

  readonly #action = (input: Input<QueryRequest>): Promise<ActionOutcome> =>
    this.#port.actions.invoke(input)

  /**
   * Rejects with BUSY beyond the bound, and with the failures of the preparation, of the argument
   * check and of the execution.
   */
  #admit<R extends QueryRequest, T>(
    request: R,
    execute: Execute<R, T>,
    checked?: CheckedCall,
  ): Promise<T> {
    const { inFlight, preparations, system } = this.#port
    if (request.context.scheduledId === undefined) this.#calledMillis = system.monotonicMillis()
    if (inFlight.count >= INVOCATIONS_MAX) return Promise.reject(new Fault('BUSY'))
    const end = inFlight.begin(request.release)
    const prepared = preparations.find(request.release.releaseId)
    const span = startInvocation(request, request.release.releaseId)
    const input = span === null ? request : { ...request, trace: span }
    const call =
      prepared === null
        ? this.#prepareAndExecute(input, execute)
        : checkAndExecute(prepared, input, execute, checked)
    call.then(end, end)
    return span === null ? call : endWith(span, call)
  }

  /** An Action waits as briefly as other calls: it had no effect yet, so its caller may retry. */
  async #prepareAndExecute<R extends QueryRequest, T>(
    request: R,
    execute: Execute<R, T>,
  ): Promise<T> {
    const arrivedMillis = this.#port.system.monotonicMillis()
    const deadline = arrivedMillis + INVOCATION_MILLIS_MAX
    const signal = request.definition.kind === 'mutation' ? undefined : request.signal
    const prepared = await this.#awaited.prepare(request.release, { deadline, signal })
    return checkAndExecute(prepared, { ...request, arrivedMillis }, execute)
  }
}

function checkAndExecute<R extends QueryRequest, T>(
  prepared: PreparedRelease,
  request: R,
  execute: Execute<R, T>,
  checked?: CheckedCall,
): Promise<T> {
  try {
    const argumentsText = checked?.argumentsText ?? checkedArguments(prepared, request)
    return execute({ ...request, prepared, argumentsText, callKey: checked?.callKey })
  } catch (error) {
    return Promise.reject(error)
  }
}
