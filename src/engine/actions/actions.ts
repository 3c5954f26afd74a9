/**
 * Actions. The server runs an Action once and never retries it after an effect. An Action changes
 * documents through Mutations, which are separate invocations: they stay committed if it fails.
 */
import { Fault, isFault } from '../../errors/fault.ts'
import { FairSemaphore } from '../../system/fair-semaphore.ts'
import type { RunnerOutcome } from '../calls/outcomes.ts'
import { callKeyOf } from '../invocations/checked-arguments.ts'
import { logOutcome } from '../invocations/function-logs.ts'
import {
  beginInvocation,
  type InvocationInput,
  LostRunCounter,
  runnerCall,
} from '../invocations/invocation.ts'
import { endWith, startInvocation } from '../invocations/invocation-spans.ts'
import { cacheKeysOf } from '../invocations/queries.ts'
import { conclude } from '../invocations/run-outcomes.ts'
import {
  ACTION_MILLIS_MAX,
  ACTION_WAIT_MILLIS,
  ACTIONS_MAX,
  ACTIONS_WAITING_MAX,
  NESTED_ACTIONS_MAX,
} from '../limits.ts'
import { ActionHost, type RunCallee, type ScheduleCounter } from './action-host.ts'
import type { ActionPort } from './ports.ts'

export interface ActionOutcome {
  /** Tagged JSON. */
  readonly resultText: string
  /** Pieces of work that it and the Functions that it called have scheduled. */
  readonly schedulesCreated: number
}

export interface ActionStatistics {
  /** Running Actions, including nested ones. */
  readonly running: number
  /** Actions that wait for a permit. */
  readonly waiting: number
}

export class Actions {
  readonly #port: ActionPort
  /** Permits of Actions that clients call. */
  readonly #permits: FairSemaphore
  /** Permits of Actions that Actions call. */
  readonly #nestedPermits: FairSemaphore

  constructor(port: ActionPort) {
    this.#port = port
    this.#permits = new FairSemaphore(
      port.system,
      {
        permits: ACTIONS_MAX,
        permitsPerKey: ACTIONS_MAX / 2,
        waiting: ACTIONS_WAITING_MAX,
        waitingPerKey: ACTIONS_WAITING_MAX / 2,
        waitMillis: ACTION_WAIT_MILLIS,
      },
      'Actions',
    )
    this.#nestedPermits = new FairSemaphore(
      port.system,
      {
        permits: NESTED_ACTIONS_MAX,
        permitsPerKey: NESTED_ACTIONS_MAX / 2,
        waiting: 0,
        waitingPerKey: 0,
        waitMillis: 0,
      },
      'Actions',
    )
  }

  get statistics(): ActionStatistics {
    const nested = this.#nestedPermits.running
    return { running: this.#permits.running + nested, waiting: this.#permits.waiting }
  }

  /** Throws BUSY where no permit is available in time, and the errors of an invocation. */
  async invoke(input: InvocationInput): Promise<ActionOutcome> {
    const schedules = { created: 0 }
    const resultText = await this.#run(input, 0, schedules)
    return { resultText, schedulesCreated: schedules.created }
  }

  async #run(input: InvocationInput, depth: number, schedules: ScheduleCounter): Promise<string> {
    const permits = depth === 0 ? this.#permits : this.#nestedPermits
    const release = await permits.acquire(input.context.credentialId ?? '', input.signal)
    try {
      return await this.#execute(input, depth, schedules)
    } finally {
      release()
    }
  }

  async #execute(
    input: InvocationInput,
    depth: number,
    schedules: ScheduleCounter,
  ): Promise<string> {
    const { pool, system, usage } = this.#port
    const invocation = beginInvocation(this.#port, input, input.signal, ACTION_MILLIS_MAX)
    const host = new ActionHost(this.#port, invocation, this.#callee, { depth, schedules })
    const lostRuns = new LostRunCounter()
    try {
      while (system.monotonicMillis() < invocation.deadline) {
        const call = runnerCall(invocation)
        const startedMillis = system.monotonicMillis()
        const outcome = await pool.invoke(input.prepared.release, call, host)
        usage.record(invocation, outcome, { startedMillis, grownBytes: host.grownBytes })
        logOutcome(this.#port.log, invocation, input.definition, outcome)
        requireStorage(outcome, host)
        const ran = conclude(invocation, outcome, host.failures, host.violations)
        if (ran !== null) return ran.resultText
        if (host.hasActed) {
          throw new Fault('UNAVAILABLE', {
            detail: 'the runner of the Action was lost',
            retryable: false,
          })
        }
        lostRuns.add()
      }
      throw new Fault('DEADLINE_EXCEEDED')
    } catch (error) {
      throw isFault(error, 'DEADLINE_EXCEEDED')
        ? new Fault('DEADLINE_EXCEEDED', { retryable: false, cause: error })
        : error
    } finally {
      host.end()
    }
  }

  readonly #callee: RunCallee = (input, depth, schedules) => {
    const span = startInvocation(input, input.prepared.release.releaseId)
    return span === null
      ? this.#call(input, depth, schedules)
      : endWith(span, this.#call({ ...input, trace: span }, depth, schedules))
  }

  readonly #call: RunCallee = async (input, depth, schedules) => {
    const { queries } = this.#port
    switch (input.definition.kind) {
      case 'query': {
        const keys = cacheKeysOf(input, callKeyOf(input))
        return (queries.find(keys) ?? (await queries.invoke(input, keys))).resultText
      }
      case 'mutation':
        return this.#mutate(input, schedules)
      case 'action':
        return this.#run(input, depth, schedules)
    }
  }

  /** Runs a Mutation. It continues if the Action ends first, so it counts as a call in flight. */
  async #mutate(input: InvocationInput, schedules: ScheduleCounter): Promise<string> {
    const { mutations, inFlight, system } = this.#port
    const end = inFlight.begin(input.prepared.release)
    try {
      // The record of this private ID resolves a commit whose confirmation was lost.
      const operationId = system.ids.make('opn')
      const caller = input.context.invocationId
      const outcome = await mutations.invoke({ ...input, operationId, target: 'action', caller })
      schedules.created += outcome.schedulesCreated
      return outcome.resultText
    } finally {
      end()
    }
  }
}

/** Throws UNAVAILABLE for an Action that failed because the storage did. */
function requireStorage(outcome: RunnerOutcome, { files }: ActionHost): void {
  if (outcome.kind !== 'threw' || !files.isUnavailable(outcome.error)) return
  throw new Fault('UNAVAILABLE', { detail: outcome.error.message, retryable: false })
}
