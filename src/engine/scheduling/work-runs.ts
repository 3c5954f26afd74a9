/** Runs pieces of scheduled work and records how they ended. */
import { Fault, isFault, reasonText } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Span, Traces } from '../../telemetry/traces/spans.ts'
import { withJson } from '../../value/http/delivery-json.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { decodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import type { CallAdmission } from '../admission/call-admission.ts'
import type { SystemDocuments } from '../files/system-documents.ts'
import { startRun } from '../invocations/invocation-spans.ts'
import type { QueryRequest } from '../invocations/requests.ts'
import type { Release } from '../releases/executable-release.ts'
import { NotPendingError } from '../scheduled-work/completion.ts'
import {
  finishWork,
  KEPT_RESULT_CHARACTERS_MAX,
  keepResult,
  postponeWork,
  readWork,
  type ScheduledWork,
  startWork,
} from '../scheduled-work/scheduled-documents.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { retryDelayMillis } from './retries.ts'

/** Loads the Release that work is pinned to. Rejects with a Fault where it cannot run. */
export type LoadRelease = (releaseId: ReleaseId) => Promise<Release>

export interface WorkRunsOptions {
  readonly calls: Pick<CallAdmission, 'mutation' | 'action'>
  readonly documents: SystemDocuments
  readonly system: System
  readonly log: Logger
  readonly isStopped: () => boolean
  /** Null or absent where nothing is traced. */
  readonly traces?: Traces | null | undefined
}

/**
 * The end of a run: `transient` left the work pending and is repeated later, `skipped` found it no
 * longer pending.
 */
export type RunEnd = 'succeeded' | 'failed' | 'postponed' | 'transient' | 'skipped'

/** The end of a run, with the code and the error of its failure. */
interface Ended {
  readonly end: RunEnd
  readonly errorCode: string | null
  readonly error?: unknown
}

/** Codes of failures that say nothing about the work: a later run of it may succeed. */
const TRANSIENT: ReadonlySet<string> = new Set([
  'BUSY',
  'UNAVAILABLE',
  'WRITE_CONFLICT',
  'RESULT_UNCERTAIN',
  'PRODUCT_UNAVAILABLE',
])
/** Longest pause between two attempts to store how an Action ended. */
const STORE_DELAY_MILLIS_MAX = 5_000
/** @limit HTTP mounts: characters of the message that is stored with a failed delivery */
export const MESSAGE_CHARACTERS_MAX = 1_024
/** The code of an Action whose server ended while it ran: it may have had effects. */
const INTERRUPTED = 'RESULT_UNCERTAIN'

export class WorkRuns {
  readonly #options: WorkRunsOptions

  constructor(options: WorkRunsOptions) {
    this.#options = options
  }

  /** Runs pending work whose time has come. Never rejects. */
  async run(work: ScheduledWork, load: LoadRelease): Promise<RunEnd> {
    const { system, traces } = this.#options
    const span = startRun(traces, {
      name: `scheduled ${work.function}`,
      attributes: {
        'svc.function.name': work.function,
        'svc.function.kind': work.kind,
        'svc.release.id': work.releaseId,
        'svc.scheduled.id': work.scheduledId,
      },
    })
    const startedMillis = system.monotonicMillis()
    const ended = await this.#perform(work, load, span)
    const durationMicros = Math.round((system.monotonicMillis() - startedMillis) * 1_000)
    if (ended.end !== 'skipped') this.#log(work, ended, durationMicros)
    const attributes = { 'svc.scheduled.outcome': ended.end }
    span?.end(ended.end === 'failed' ? { attributes, error: ended.end } : { attributes })
    return ended.end
  }

  async #perform(work: ScheduledWork, load: LoadRelease, span: Span | null): Promise<Ended> {
    try {
      const request = { ...(await this.#request(work, load)), trace: span }
      return await (work.kind === 'mutation'
        ? this.#runMutation(work, request)
        : this.#runAction(work, request))
    } catch (error) {
      return this.#fail(work, error)
    }
  }

  /**
   * Settles an Action that ran when the last server ended: it fails, unless its Function declares
   * that it may run again. Rejects where that could not be stored.
   */
  async recover(work: ScheduledWork, load: LoadRelease): Promise<void> {
    const delay = await this.#retryDelay(work, load)
    await this.#end(work, 'running', { code: INTERRUPTED, attempts: work.attempts, delay })
    this.#log(work, { end: delay === null ? 'failed' : 'postponed', errorCode: INTERRUPTED })
  }

  async #request(work: ScheduledWork, load: LoadRelease): Promise<QueryRequest> {
    const release = await load(work.releaseId as ReleaseId)
    const definition = release.functions.get(work.function)
    if (definition === undefined) throw new Fault('FUNCTION_NOT_FOUND', { detail: work.function })
    const { ids } = this.#options.system
    return {
      release,
      definition,
      principal: null,
      arguments: argumentsOf(work),
      context: {
        requestId: ids.make('req'),
        invocationId: ids.make('ivc'),
        scheduledId: work.scheduledId,
      },
    }
  }

  async #runMutation(work: ScheduledWork, request: QueryRequest): Promise<Ended> {
    const { scheduledId } = work
    // The ID keeps two runs in this process apart; the state of the work decides across restarts.
    const operation = { operationId: scheduledId, target: 'scheduled', caller: 'scheduled' }
    const { keepsResult = false } = work
    const run = { ...request, ...operation, scheduledId, keepsResult }
    const { resultText } = await this.#options.calls.mutation(run)
    this.#logDropped(work, resultText)
    return SUCCEEDED
  }

  async #runAction(work: ScheduledWork, request: QueryRequest): Promise<Ended> {
    const { documents, calls, system } = this.#options
    const { scheduledId } = work
    const isStarted = await documents.change(async (transaction) => {
      const current = await readWork(transaction, scheduledId)
      if (current?.state !== 'pending') return false
      await startWork(transaction, current)
      return true
    })
    if (!isStarted) return SKIPPED
    const attempts = work.attempts + 1
    let resultText: string
    try {
      resultText = (await calls.action(request)).resultText
    } catch (error) {
      return this.#endAction({ ...work, attempts }, request, error)
    }
    const finish = { attempts, errorCode: null, atMicros: system.nowMicros() }
    await this.#repeat(() =>
      this.#store(work, 'running', async (transaction) => {
        await finishWork(transaction, scheduledId, { state: 'succeeded', ...finish })
        if (work.keepsResult) await keepResult(transaction, scheduledId, resultText)
      }),
    )
    this.#logDropped(work, resultText)
    return SUCCEEDED
  }

  /** Logs that a result was too long to be kept. */
  #logDropped(work: ScheduledWork, { length: characters }: string): void {
    if (!work.keepsResult || characters <= KEPT_RESULT_CHARACTERS_MAX) return
    const { scheduledId, function: name, releaseId, http = {} } = work
    const message =
      `The result of ${name} has ${characters} characters, and at most ` +
      `${KEPT_RESULT_CHARACTERS_MAX} are kept: its delivery is answered with 202.`
    const fields = { scheduledId, function: name, releaseId, ...http, characters }
    this.#options.log.warn('schedule.result_dropped', { message, ...fields })
  }

  /** Ends an attempt of an Action that failed. */
  async #endAction(work: ScheduledWork, request: QueryRequest, error: unknown): Promise<Ended> {
    const { attempts } = work
    const code = codeOf(error)
    // It was rejected while it waited, so it did not start.
    const isUnstarted = code === 'BUSY'
    const delay = isUnstarted ? 1_000 : retryDelayMillis(request.definition.retry, attempts)
    const end = { code, error, delay, attempts: isUnstarted ? attempts - 1 : attempts }
    await this.#repeat(() => this.#end(work, 'running', end))
    return { end: delay === null ? 'failed' : 'postponed', errorCode: code, error }
  }

  /** Records that pending work failed, unless the failure is transient. */
  async #fail(work: ScheduledWork, error: unknown): Promise<Ended> {
    if (error instanceof NotPendingError) return SKIPPED
    const code = codeOf(error)
    if (!isFault(error) || TRANSIENT.has(code)) {
      return { end: 'transient', errorCode: code, error }
    }
    try {
      await this.#end(work, 'pending', { code, error, attempts: work.attempts + 1, delay: null })
    } catch (failure) {
      return { end: 'transient', errorCode: codeOf(failure), error: failure }
    }
    return { end: 'failed', errorCode: code, error }
  }

  /** Stores the failure; with a delay the work is pending again. */
  async #end(
    work: ScheduledWork,
    state: 'pending' | 'running',
    end: {
      readonly code: string
      readonly error?: unknown
      readonly attempts: number
      readonly delay: number | null
    },
  ): Promise<void> {
    const { code: errorCode, error, attempts, delay } = end
    const errorMessage = this.#messageOf(error)
    const atMicros = this.#options.system.nowMicros()
    const { scheduledId } = work
    await this.#store(work, state, (transaction) => {
      if (delay === null) {
        const finish = { attempts, errorCode, errorMessage, atMicros }
        return finishWork(transaction, scheduledId, { state: 'failed', ...finish })
      }
      const dueAtMicros = atMicros + BigInt(Math.round(delay)) * 1000n
      const next = { attempts, errorCode, errorMessage, dueAtMicros }
      return postponeWork(transaction, scheduledId, next)
    })
  }

  /** Returns the failure as the log has it, without the values of secrets; null without a text. */
  #messageOf(error: unknown): string | null {
    const reason = isFault(error) ? reasonText(error) : null
    if (reason === null) return null
    const message = this.#options.log.clean(reason)
    if (message.length <= MESSAGE_CHARACTERS_MAX) return message
    return `${message.slice(0, MESSAGE_CHARACTERS_MAX - 1).toWellFormed()}…`
  }

  /**
   * Repeats a change until it is stored: work must not stay in the state `running`. Rejects as the
   * change does once the scheduler stops; the next start of the server settles the work then.
   */
  async #repeat(change: () => Promise<void>): Promise<void> {
    const { isStopped } = this.#options
    for (let millis = 100; ; millis = Math.min(millis * 2, STORE_DELAY_MILLIS_MAX)) {
      try {
        return await change()
      } catch (error) {
        if (isStopped()) throw error
      }
      await new Promise((resolve) => setTimeout(resolve, millis))
    }
  }

  /** Changes the work while it is in this state; it is left alone in any other. */
  async #store(
    { scheduledId }: ScheduledWork,
    state: 'pending' | 'running',
    change: (transaction: Transaction) => unknown,
  ): Promise<void> {
    await this.#options.documents.change(async (transaction) => {
      const current = await readWork(transaction, scheduledId)
      if (current?.state === state) await change(transaction)
    })
  }

  async #retryDelay(work: ScheduledWork, load: LoadRelease): Promise<number | null> {
    try {
      const { functions } = await load(work.releaseId as ReleaseId)
      return retryDelayMillis(functions.get(work.function)?.retry, work.attempts)
    } catch (error) {
      if (TRANSIENT.has(codeOf(error))) throw error
      return null
    }
  }

  /** `durationMicros` is absent for a run of the last server. */
  #log(work: ScheduledWork, { end, errorCode, error }: Ended, durationMicros?: number): void {
    const { log, system } = this.#options
    const { scheduledId, function: name, releaseId, dueAtMicros, cron, http } = work
    const lateMicros = system.nowMicros() - dueAtMicros
    const ofCron = cron === null ? {} : { cron }
    const source = http === undefined ? ofCron : { mount: http.mount, route: http.route }
    const fields = { scheduledId, function: name, releaseId, ...source, outcome: end, lateMicros }
    const failure = errorCode === null ? {} : { errorCode }
    if (end === 'succeeded') log.debug('schedule.ran', { ...fields, durationMicros })
    else log.warn('schedule.failed', { ...fields, durationMicros, ...failure, error })
  }
}

function argumentsOf({ source, argumentsText }: ScheduledWork): ValueObject {
  const stored = decodeStored(argumentsText) as ValueObject
  return source === 'http' ? withJson(stored) : stored
}

const SUCCEEDED: Ended = { end: 'succeeded', errorCode: null }
const SKIPPED: Ended = { end: 'skipped', errorCode: null }

function codeOf(error: unknown): string {
  return isFault(error) ? error.code : 'INTERNAL'
}
