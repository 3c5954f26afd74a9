/** Promotes Releases through the management origin and records when each was served. */
import { assert } from '../../src/errors/assert.ts'
import { ids, type Json } from '../calls.ts'
import type { Plan } from './plan.ts'
import type { Promotion } from './served.ts'
import type { Target } from './versions.ts'

const POLL_MILLIS = 5

export class Promoter {
  readonly promotions: Readonly<Record<Target, Promotion[]>> = {
    'channel:production': [],
    'environment:default': [],
  }
  readonly #plan: Pick<Plan, 'management' | 'base'>

  constructor(plan: Pick<Plan, 'management' | 'base'>) {
    this.#plan = plan
  }

  /** Binds the Channel to the Release. Resolves once the Channel serves it. */
  async promote(releaseId: string): Promise<void> {
    const requestedAt = performance.now()
    const { serving } = await this.#send('PUT', '/channels/production', { releaseId })
    if (serving !== 'converged') {
      await this.#until(async () => (await this.#send('GET', '')).observed.serving === 'serving')
    }
    this.#record('channel:production', releaseId, requestedAt)
  }

  /** Lets environment:default serve this Release alone. Resolves once it does. */
  async serve(releaseId: string): Promise<void> {
    const requestedAt = performance.now()
    const before = await this.#send('GET', '/serving-policy')
    const { desired } = await this.#send('PUT', '/serving-policy', {
      expectedRevision: Number(before.desired.revision),
      mode: 'atomic',
      releases: [{ releaseId, weight: 10_000 }],
      changedAtMicros: `${Date.now()}000`,
    })
    await this.#until(async () => {
      const { observed } = await this.#send('GET', '/serving-policy')
      return observed.revision === desired.revision
    })
    this.#record('environment:default', releaseId, requestedAt)
  }

  #record(target: Target, releaseId: string, requestedAt: number): void {
    this.promotions[target].push({ releaseId, requestedAt, effectiveAt: performance.now() })
  }

  async #until(isSo: () => Promise<boolean>): Promise<void> {
    while (!(await isSo())) await Bun.sleep(POLL_MILLIS)
  }

  async #send(method: string, path: string, body?: object): Promise<Json> {
    const { management, base } = this.#plan
    const reply = await fetch(`http://127.0.0.1:${management.port}${base}${path}`, {
      method,
      headers: {
        ...management.headers,
        'content-type': 'application/json',
        'idempotency-key': ids.make('opn'),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await reply.text()
    assert(reply.ok, `${method} ${path}: ${text}`)
    return JSON.parse(text)
  }
}
