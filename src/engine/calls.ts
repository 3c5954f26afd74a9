/** The calls of an engine: each is let in, its Release prepared and its arguments checked. */
import { Fault } from '../errors/fault.ts'
import { type Answer, andThen } from '../system/answers.ts'
import type { ActionOutcome, Actions } from './actions/actions.ts'
import { type Checked, CheckedArguments, checkedArguments } from './checked-arguments.ts'
import type { MutationRequest, QueryRequest } from './engine.ts'
import { INVOCATIONS_MAX } from './limits.ts'
import type { MutationOutcome, Mutations } from './mutations.ts'
import type { Preparations } from './preparations.ts'
import type { PreparedRelease } from './prepared-release.ts'
import { keysOf, type Queries, type QueryOutcome } from './queries.ts'

export interface CallsPort {
  readonly preparations: Preparations
  readonly queries: Queries
  readonly mutations: Mutations
  readonly actions: Actions
}

export class Calls {
  readonly #port: CallsPort
  readonly #checked = new CheckedArguments()
  readonly #idle: (() => void)[] = []
  #inFlight = 0

  constructor(port: CallsPort) {
    this.#port = port
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** Answers at once where the result is kept: it costs no run, so nothing has to be let in. */
  query(request: QueryRequest): Answer<QueryOutcome> {
    const { preparations, queries } = this.#port
    const prepared = preparations.find(request.release.releaseId)
    if (prepared === null) {
      return this.#admitted(request, (input) => queries.invoke(input, keysOf(input, input.callKey)))
    }
    const checked = this.#checked.of(prepared, request)
    const keys = keysOf(request, checked.callKey)
    const kept = queries.find(keys)
    if (kept !== null) return kept
    return this.#run(() => queries.invoke({ ...request, prepared, ...checked }, keys))
  }

  /** One that began is carried out whoever waits: its record answers the repeat. */
  mutation(request: MutationRequest): Promise<MutationOutcome> {
    return this.#admitted(request, (input) => this.#port.mutations.invoke(input))
  }

  action(request: QueryRequest): Promise<ActionOutcome> {
    return this.#admitted(request, (input) => this.#port.actions.invoke(input))
  }

  /** Resolves once no invocation is in flight. */
  idle(): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  #admitted<R extends QueryRequest, T>(
    request: R,
    work: (input: R & Checked & { prepared: PreparedRelease }) => Promise<T>,
  ): Promise<T> {
    const prepare = () => this.#port.preparations.prepare(request.release)
    return this.#run(() =>
      andThen(prepare(), (prepared) =>
        work({ ...request, prepared, ...checkedArguments(prepared, request) }),
      ),
    )
  }

  /** Raises BUSY, and what the work throws. */
  #run<T>(work: () => Answer<T>): Promise<T> {
    if (this.#inFlight >= INVOCATIONS_MAX) return Promise.reject(new Fault('BUSY'))
    this.#inFlight += 1
    const pending = begun(work)
    pending.then(this.#leave, this.#leave)
    return pending
  }

  readonly #leave = (): void => {
    this.#inFlight -= 1
    if (this.#inFlight === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }
}

/** As Promise.try, without a promise around the work's own. */
function begun<T>(work: () => Answer<T>): Promise<T> {
  try {
    return Promise.resolve(work())
  } catch (error) {
    return Promise.reject(error)
  }
}
