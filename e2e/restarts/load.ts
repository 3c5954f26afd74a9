/**
 * Callers that follow the retry policy (contract/application.md, Client retry policy): a Query or a
 * Mutation is sent again, with the same bytes, after a transport failure and after an error that is
 * retryable.
 */
import { type Application, int64, type Json, object, operationId } from '../application.ts'

export interface Report {
  /** Numbers of the Mutations that were acknowledged. */
  readonly added: number[]
  /** Numbers that were acknowledged before the Query that did not find them. */
  readonly missed: number[]
  /** Failures that a caller saw. */
  readonly errors: string[]
  /** Number of attempts that ended without a result, by the way in which they ended. */
  readonly retries: Record<string, number>
  answered: number
  /** Milliseconds of the slowest call with all of its attempts. */
  slowestMs: number
}

/** Time limit for an attempt. */
const ATTEMPT_MS = 30_000
/** Time limit for all attempts of a call, which only a hang exceeds, also beside a fault. */
const DEADLINE_MS = 300_000
const BACKOFF_MS = 200
const BACKOFF_MS_MAX = 1_000
const TICK_MS = 10

export class Load {
  readonly report: Report = {
    added: [],
    missed: [],
    errors: [],
    retries: {},
    answered: 0,
    slowestMs: 0,
  }
  readonly #app: Application
  readonly #calls = new Set<Promise<void>>()
  readonly #timer: ReturnType<typeof setInterval>
  readonly #perSecond: number
  #sent = 0

  /**
   * Sends `perSecond` calls a second, every other one a Mutation, regardless of their results.
   * `first` is an even number: no other load of the application may have it or a greater one.
   */
  constructor(app: Application, perSecond: number, first = 0) {
    this.#app = app
    this.#perSecond = perSecond
    const startedAt = performance.now()
    this.#timer = setInterval(() => {
      const due = ((performance.now() - startedAt) * perSecond) / 1_000
      while (this.#sent < due) this.#send(first + this.#sent++)
    }, TICK_MS)
  }

  /** Sends no more calls and waits for the results of all. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.#calls)
  }

  /**
   * Resolves when `count` more calls have their results and those of at most a second wait: what a
   * restart delayed on a slow machine would otherwise never be served.
   */
  async untilAnswered(count: number): Promise<void> {
    const until = this.report.answered + count
    const isBehind = () => this.report.answered < until || this.#calls.size > this.#perSecond
    while (isBehind() && this.report.errors.length === 0) await Bun.sleep(TICK_MS)
  }

  #send(number: number): void {
    const call = (number % 2 === 0 ? this.#add(number) : this.#find()).catch((error) => {
      this.report.errors.push(String(error))
    })
    this.#calls.add(call)
    void call.finally(() => this.#calls.delete(call))
  }

  async #add(number: number): Promise<void> {
    const values = object({ number: int64(number) })
    const call = { function: 'entries.add', arguments: values, operationId: operationId() }
    await this.#result('mutation', call)
    this.report.added.push(number)
  }

  async #find(): Promise<void> {
    const { added, missed } = this.report
    const number = added[Math.floor(Math.random() * added.length)] ?? -1
    const values = object({ number: int64(number) })
    const found = await this.#result('query', { function: 'entries.count', arguments: values })
    if (number >= 0 && found.value !== '1') missed.push(number)
  }

  async #result(kind: 'query' | 'mutation', call: object): Promise<Json> {
    const { server, key } = this.#app
    const body = JSON.stringify({ version: 1, target: 'channel:production', ...call })
    const headers = { 'content-type': 'application/json', 'x-service-key': key }
    const begun = performance.now()
    for (let attempt = 0; ; attempt++) {
      const signal = AbortSignal.timeout(ATTEMPT_MS)
      const init = { method: 'POST', headers, body, signal }
      const outcome = await attempted(`${server.application}/v1/${kind}`, init)
      const tookMs = performance.now() - begun
      if ('result' in outcome) {
        this.report.answered += 1
        this.report.slowestMs = Math.max(this.report.slowestMs, tookMs)
        return outcome.result
      }
      const { failure, retryable, retryAfterMs } = outcome
      const backoff =
        Math.min(BACKOFF_MS * 2 ** attempt, BACKOFF_MS_MAX) * (0.5 + Math.random() / 2)
      const wait = retryAfterMs ?? backoff
      if (!retryable || tookMs + wait > DEADLINE_MS) throw new Error(`${kind}: ${failure}`)
      this.report.retries[failure] = (this.report.retries[failure] ?? 0) + 1
      await Bun.sleep(wait)
    }
  }
}

type Outcome =
  | { readonly result: Json }
  | {
      readonly failure: string
      readonly retryable: boolean
      readonly retryAfterMs: number | undefined
    }

async function attempted(url: string, init: RequestInit): Promise<Outcome> {
  let response: Response
  let body: Json
  try {
    response = await fetch(url, init)
    body = await response.json()
  } catch (error) {
    const failure = (error as { code?: string }).code ?? String(error)
    return { failure, retryable: true, retryAfterMs: undefined }
  }
  if (response.status === 200) return { result: body.result }
  const { code, retryable } = body.error
  const retryAfter = response.headers.get('retry-after')
  const retryAfterMs = retryAfter === null ? undefined : Number(retryAfter) * 1_000
  return { failure: code, retryable, retryAfterMs }
}
