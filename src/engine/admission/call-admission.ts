/** Admits calls of an engine: bounds their number, prepares the Release, checks the arguments. */
import { Fault, isFault } from '../../errors/fault.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { System } from '../../system/system.ts'
import type { CallEnd, FunctionFigures } from '../../telemetry/metrics/function-figures.ts'
import type { ActionOutcome, Actions } from '../actions/actions.ts'
import {
  ArgumentChecks,
  type CheckedCall,
  callKeyOf,
  checkedArguments,
} from '../invocations/checked-arguments.ts'
import { endWith, startInvocation } from '../invocations/invocation-spans.ts'
import type { MutationOutcome, Mutations } from '../invocations/mutations.ts'
import {
  cacheKeysOf,
  type Queries,
  type QueryExecution,
  type QueryOutcome,
} from '../invocations/queries.ts'
import type { MutationRequest, QueryRequest } from '../invocations/requests.ts'
import {
  BESIDE_CALLS_MILLIS,
  CALL_WAIT_MILLIS_MAX,
  INVOCATION_MILLIS_MAX,
  INVOCATIONS_MAX,
} from '../limits.ts'
import type { ActiveCalls } from '../releases/active-calls.ts'
import type { Preparations } from '../releases/preparations.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import { AwaitedPreparations } from './awaited-preparations.ts'
import { ExpectedWait } from './expected-wait.ts'

export interface AdmissionPort {
  readonly preparations: Preparations
  readonly queries: Queries
  readonly mutations: Pick<Mutations, 'invoke'>
  readonly actions: Pick<Actions, 'invoke'>
  readonly inFlight: ActiveCalls
  readonly system: Pick<System, 'monotonicMillis'>
  readonly metrics: { readonly functions: FunctionFigures }
}

type Input<R> = R & {
  readonly prepared: PreparedRelease
  readonly argumentsText: string
  readonly givenText: string
  /** Present for a Query that was looked up in the cache. */
  readonly callKey: string | undefined
  readonly arrivedMillis?: number | undefined
  readonly startByMillis?: number | undefined
}
type Execute<R, T> = (input: Input<R>) => Promise<T>

export class CallAdmission {
  readonly #port: AdmissionPort
  readonly #argumentChecks = new ArgumentChecks()
  readonly #awaited: AwaitedPreparations
  /** One for each kind: Mutations that wait for the disk hold up no Query, and the reverse. */
  readonly #queryWait: ExpectedWait
  readonly #mutationWait: ExpectedWait
  /** Monotonic milliseconds of the last call that was not a run of scheduled work. */
  #calledMillis = Number.NEGATIVE_INFINITY

  constructor(port: AdmissionPort) {
    this.#port = port
    this.#awaited = new AwaitedPreparations(port)
    this.#queryWait = new ExpectedWait(port.system)
    this.#mutationWait = new ExpectedWait(port.system)
  }

  /** Returns whether an application has called just now. Results from the cache do not count. */
  get hasCalls(): boolean {
    return this.#port.system.monotonicMillis() - this.#calledMillis < BESIDE_CALLS_MILLIS
  }

  /** Returns a cached result synchronously and without admission, since no Function runs. */
  query(request: QueryRequest): MaybePromise<QueryOutcome> {
    const { preparations, queries } = this.#port
    const prepared = preparations.find(request.release.releaseId)
    if (prepared === null) return this.#admitInTime(request, this.#query, this.#queryWait)
    const checked = this.#check(prepared, request)
    const cached = queries.find(cacheKeysOf(request, checked.callKey))
    if (cached === null) return this.#admitInTime(request, this.#query, this.#queryWait, checked)
    const { metrics, system } = this.#port
    metrics.functions.cached(request.release, request.definition, system.monotonicMillis())
    return cached
  }

  #check(prepared: PreparedRelease, request: QueryRequest): CheckedCall {
    try {
      return this.#argumentChecks.check(prepared, request)
    } catch (error) {
      const nowMillis = this.#port.system.monotonicMillis()
      this.#count(request, endOf(error), nowMillis, nowMillis)
      throw error
    }
  }

  #count(
    { release, definition }: QueryRequest,
    as: CallEnd,
    startedMillis: number,
    nowMillis: number,
  ) {
    this.#port.metrics.functions.ended(release, definition, { as, startedMillis, nowMillis })
  }

  /**
   * Runs a watched Query at the newest durable snapshot, whether or not its result is cached. It
   * waits as long as it takes: its clients have a state, and few run at one time.
   */
  execution(request: QueryRequest): Promise<QueryExecution> {
    return this.#admit(request, this.#query, null)
  }

  /** Runs to completion even if the caller disconnects: a repeat gets the recorded result. */
  mutation(request: MutationRequest): Promise<MutationOutcome> {
    // Few pieces of scheduled work run at one time, and they have no caller that waits.
    return request.scheduledId === undefined
      ? this.#admitInTime(request, this.#mutation, this.#mutationWait)
      : this.#admit(request, this.#mutation, null)
  }

  action(request: QueryRequest): Promise<ActionOutcome> {
    return this.#admit(request, this.#action, null)
  }

  readonly #query = (input: Input<QueryRequest>): Promise<QueryExecution> =>
    this.#port.queries.invoke(input, cacheKeysOf(input, input.callKey ?? callKeyOf(input)))

  readonly #mutation = (input: Input<MutationRequest>): Promise<MutationOutcome> =>
    this.#port.mutations.invoke(input)

  readonly #action = (input: Input<QueryRequest>): Promise<ActionOutcome> =>
    this.#port.actions.invoke(input)

  /** Rejects with BUSY where the call would wait for too long, and as `#admit` does. */
  #admitInTime<R extends QueryRequest, T>(
    request: R,
    execute: Execute<R, T>,
    wait: ExpectedWait,
    checked?: CheckedCall,
  ): Promise<T> {
    const millis = wait.millis()
    if (millis <= CALL_WAIT_MILLIS_MAX) return this.#admit(request, execute, wait, checked)
    const retryAfterSeconds = Math.ceil(Math.min(millis, INVOCATION_MILLIS_MAX) / 1_000)
    return Promise.reject(new Fault('BUSY', { retryAfterSeconds, detail: 'the expected wait' }))
  }

  /**
   * Rejects with BUSY beyond the bound, and with the failures of the preparation, of the argument
   * check and of the execution. A call that `wait` counts may only wait for a bounded time.
   */
  #admit<R extends QueryRequest, T>(
    request: R,
    execute: Execute<R, T>,
    wait: ExpectedWait | null,
    checked?: CheckedCall,
  ): Promise<T> {
    const { inFlight, preparations, system } = this.#port
    const startedMillis = system.monotonicMillis()
    if (request.context.scheduledId === undefined) this.#calledMillis = startedMillis
    if (inFlight.count >= INVOCATIONS_MAX) return Promise.reject(new Fault('BUSY'))
    const endActive = inFlight.begin(request.release)
    const arrival = wait?.begin()
    const end = (as: CallEnd) => {
      endActive()
      if (arrival !== undefined) wait?.end(arrival)
      this.#count(request, as, startedMillis, system.monotonicMillis())
    }
    const prepared = preparations.find(request.release.releaseId)
    const span = startInvocation(request, request.release.releaseId)
    const startByMillis = arrival === undefined ? undefined : arrival + CALL_WAIT_MILLIS_MAX
    const input = { ...request, trace: span ?? request.trace, startByMillis }
    const call =
      prepared === null
        ? this.#prepareAndExecute(input, execute)
        : checkAndExecute(prepared, input, execute, checked)
    call.then(
      () => end('succeeded'),
      (error: unknown) => end(endOf(error)),
    )
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

function endOf(error: unknown): CallEnd {
  return isFault(error) && error.status < 500 ? 'rejected' : 'failed'
}

function checkAndExecute<R extends QueryRequest, T>(
  prepared: PreparedRelease,
  request: R,
  execute: Execute<R, T>,
  checked?: CheckedCall,
): Promise<T> {
  try {
    const { argumentsText, givenText } = checked ?? checkedArguments(prepared, request)
    return execute({ ...request, prepared, argumentsText, givenText, callKey: checked?.callKey })
  } catch (error) {
    return Promise.reject(error)
  }
}
