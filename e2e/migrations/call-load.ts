/** Calls at a fixed rate whose durations are measured while the server runs. */
import { type Application, int64, mutation, query } from '../application.ts'
import type { Campaign } from './campaign.ts'

const TICK_MS = 5
const RETRY_MS = 100
/** Attempts of a call during a restart of the server. */
const ATTEMPTS_MAX = 3_000

export class CallLoad {
  readonly errors: string[] = []
  answered = 0
  readonly #app: Application
  readonly #campaign: Pick<Campaign, 'callsPerSecond' | 'documents'>
  readonly #calls = new Set<Promise<void>>()
  #timer: ReturnType<typeof setInterval> | null = null
  #durations: number[] = []
  /** Changes with each restart: a call across one is not measured. */
  #period = 0
  #isMeasured = true
  #sent = 0

  constructor(app: Application, campaign: Pick<Campaign, 'callsPerSecond' | 'documents'>) {
    this.#app = app
    this.#campaign = campaign
  }

  /** Sends one Mutation in ten calls, regardless of their results. */
  start(): void {
    const startedAt = performance.now()
    this.#timer = setInterval(() => {
      const due = ((performance.now() - startedAt) * this.#campaign.callsPerSecond) / 1_000
      while (this.#sent < due) this.#send(this.#sent++)
    }, TICK_MS)
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    await Promise.all(this.#calls)
  }

  pauseMeasure(): void {
    this.#isMeasured = false
  }

  resumeMeasure(): void {
    this.#period += 1
    this.#isMeasured = true
  }

  /** Returns the 99th percentile since the last call of this method, in milliseconds. */
  p99(): number {
    const sorted = this.#durations.toSorted((a, b) => a - b)
    this.#durations = []
    return Math.round((sorted[Math.floor(sorted.length * 0.99)] ?? 0) * 10) / 10
  }

  #send(count: number): void {
    const call = this.#call(count).catch((error: unknown) => {
      this.errors.push(String(error))
    })
    this.#calls.add(call)
    void call.finally(() => this.#calls.delete(call))
  }

  async #call(count: number): Promise<void> {
    const number = { number: int64((count * 7_919) % this.#campaign.documents) }
    for (let attempt = 1; ; attempt++) {
      const [period, isMeasured] = [this.#period, this.#isMeasured]
      const begun = performance.now()
      const reply = await (count % 10 === 0
        ? mutation(this.#app, { function: 'tasks.touch', arguments: number })
        : query(this.#app, { function: 'tasks.get', arguments: number })
      ).catch(() => null)
      if (reply?.status === 200) {
        this.answered += 1
        const isWhole = isMeasured && this.#isMeasured && period === this.#period
        if (isWhole && attempt === 1) this.#durations.push(performance.now() - begun)
        return
      }
      if (attempt === ATTEMPTS_MAX || (reply !== null && reply.status < 500)) {
        throw new Error(`call ${count}: ${reply?.status} ${JSON.stringify(reply?.body)}`)
      }
      await Bun.sleep(RETRY_MS)
    }
  }
}
