/** The calls of an engine: each is let in, its Release prepared and its arguments checked. */
import { Fault } from '../../errors/fault.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { System } from '../../system/system.ts'
import type { ActionOutcome, Actions } from '../actions/actions.ts'
import type { MutationRequest, QueryRequest } from '../engine.ts'
import { INVOCATION_MILLIS_MAX, INVOCATIONS_MAX } from '../limits.ts'
import { AwaitedPreparations } from '../releases/awaited-preparations.ts'
import type { Preparations } from '../releases/preparations.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import type { ActiveCalls } from './active-calls.ts'
import { type Checked, CheckedArguments, callKeyOf, checkedArguments } from './checked-arguments.ts'
import type { MutationOutcome, Mutations } from './mutations.ts'
import { keysOf, type Queries, type QueryOutcome } from './queries.ts'

export interface CallsPort {
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
  /** Of a Query whose arguments were checked to look for its result. */
  readonly callKey: string | undefined
  readonly arrivedMillis?: number | undefined
}
type Work<R, T> = (input: Input<R>) => Promise<T>

export class CallAdmission {
  readonly #port: CallsPort
  readonly #checked = new CheckedArguments()
  readonly #awaited: AwaitedPreparations

  constructor(port: CallsPort) {
    this.#port = port
    this.#awaited = new AwaitedPreparations(port)
  }

  /** Answers at once where the result is kept: it costs no run, so nothing has to be let in. */
  query(request: QueryRequest): MaybePromise<QueryOutcome> {
    const { preparations, queries } = this.#port
    const prepared = preparations.find(request.release.releaseId)
    if (prepared === null) return this.#run(request, this.#query)
    const checked = this.#checked.of(prepared, request)
    return (
      queries.find(keysOf(request, checked.callKey)) ?? this.#run(request, this.#query, checked)
    )
  }

  /** One that began is carried out whoever waits: its record answers the repeat. */
  mutation(request: MutationRequest): Promise<MutationOutcome> {
    return this.#run(request, this.#mutation)
  }

  action(request: QueryRequest): Promise<ActionOutcome> {
    return this.#run(request, this.#action)
  }

  readonly #query = (input: Input<QueryRequest>): Promise<QueryOutcome> =>
    this.#port.queries.invoke(input, keysOf(input, input.callKey ?? callKeyOf(input)))

  readonly #mutation = (input: Input<MutationRequest>): Promise<MutationOutcome> =>
    this.#port.mutations.invoke(input)

  readonly #action = (input: Input<QueryRequest>): Promise<ActionOutcome> =>
    this.#port.actions.invoke(input)

  /** Raises BUSY, and what the preparation, the check of the arguments and the work throw. */
  #run<R extends QueryRequest, T>(request: R, work: Work<R, T>, checked?: Checked): Promise<T> {
    const { inFlight, preparations } = this.#port
    if (inFlight.count >= INVOCATIONS_MAX) return Promise.reject(new Fault('BUSY'))
    const end = inFlight.begin(request.release)
    const prepared = preparations.find(request.release.releaseId)
    const pending =
      prepared === null ? this.#runPrepared(request, work) : run(prepared, request, work, checked)
    pending.then(end, end)
    return pending
  }

  /** An Action waits no longer for it than others do: it has not acted, so it may be repeated. */
  async #runPrepared<R extends QueryRequest, T>(request: R, work: Work<R, T>): Promise<T> {
    const arrivedMillis = this.#port.system.monotonicMillis()
    const deadline = arrivedMillis + INVOCATION_MILLIS_MAX
    const signal = request.definition.kind === 'mutation' ? undefined : request.signal
    const prepared = await this.#awaited.prepare(request.release, { deadline, signal })
    return run(prepared, { ...request, arrivedMillis }, work)
  }
}

function run<R extends QueryRequest, T>(
  prepared: PreparedRelease,
  request: R,
  work: Work<R, T>,
  checked?: Checked,
): Promise<T> {
  try {
    const argumentsText = checked?.argumentsText ?? checkedArguments(prepared, request)
    return work({ ...request, prepared, argumentsText, callKey: checked?.callKey })
  } catch (error) {
    return Promise.reject(error)
  }
}
