/** Observes a served application as its callers and its operator see it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Application,
  int64,
  type Json,
  mutation,
  operationId,
  query,
  type Reply,
} from '../application.ts'
import { call } from '../harness.ts'

export interface Observation {
  /** `OK`, or the code of the error. */
  readonly query: string
  readonly mutation: string
  readonly live: number
  readonly ready: number
  /** Readiness of the management origin: whether the identity database answers. */
  readonly operators: number
  /** `OK`, or the code of the error, of an operator's change: a new Application Client. */
  readonly change: string
  /** The status of each component, or `all` with the code of the error. */
  readonly health: Readonly<Record<string, string>>
}

/** Numbers of the probes, which differ from those of other load. */
const FIRST_NUMBER = 1_000_000_000

export class Probes {
  /** Numbers of Mutations that were acknowledged. */
  readonly added: number[] = []
  /** Numbers of Mutations whose error says that they have no effect. */
  readonly rejected: number[] = []
  /** Responses 429 and 503 without Retry-After. */
  readonly withoutRetryAfter: string[] = []
  readonly #app: Application
  readonly #base: string
  #next = FIRST_NUMBER

  constructor(app: Application) {
    this.#app = app
    const text = readFileSync(join(app.installation.productRoot, 'service.json'), 'utf8')
    const { projectId, environmentId } = JSON.parse(text)
    this.#base = `/v1/projects/${projectId}/environments/${environmentId}`
  }

  async observe(): Promise<Observation> {
    const { application, management } = this.#app.server
    const [found, added, live, ready, operators, change, health] = await Promise.all([
      this.#query(),
      this.#mutation(),
      call(application!, 'GET', '/healthz'),
      call(application!, 'GET', '/readyz'),
      call(management, 'GET', '/health/ready'),
      this.#change(),
      this.health(),
    ])
    for (const [name, reply] of Object.entries({ ready, operators })) this.#check(name, reply)
    return {
      query: found,
      mutation: added,
      live: live.status,
      ready: ready.status,
      operators: operators.status,
      change,
      health,
    }
  }

  /** The status of each component, as an operator reads it. */
  async health(): Promise<Readonly<Record<string, string>>> {
    const path = `${this.#base}/instances/healthz`
    const { management } = this.#app.server
    const reply = await call(management, 'GET', path, { token: this.#token() })
    const body: Json = reply.body
    if (reply.status !== 200) return { all: this.#check('health', reply) }
    return Object.fromEntries(body.components.map(({ name, status }: Json) => [name, status]))
  }

  #token(): string {
    const file = join(this.#app.installation.directory, 'config/credentials-v1.json')
    return JSON.parse(readFileSync(file, 'utf8')).accessToken
  }

  async #change(): Promise<string> {
    const path = `${this.#base}/application-clients`
    const reply = await call(this.#app.server.management, 'POST', path, {
      token: this.#token(),
      body: {
        clientId: operationId().replace('opn', 'app'),
        name: 'probe',
        kind: 'confidential',
        maximumScopes: ['query'],
        createdAtMicros: String(Date.now() * 1000),
      },
    })
    return this.#check('change', reply)
  }

  async #query(): Promise<string> {
    const values = { number: int64(this.#next++) }
    const reply = await query(this.#app, { function: 'entries.count', arguments: values })
    return this.#check('query', reply)
  }

  async #mutation(): Promise<string> {
    const number = this.#next++
    const values = { number: int64(number) }
    const reply = await mutation(this.#app, { function: 'entries.add', arguments: values })
    if (reply.status === 200) this.added.push(number)
    else if (reply.body.error.code !== 'RESULT_UNCERTAIN') this.rejected.push(number)
    return this.#check('mutation', reply)
  }

  /** Returns `OK` or the code of the error, and records a missing Retry-After. */
  #check(name: string, { status, headers, body }: Reply): string {
    const code = status === 200 || status === 201 ? 'OK' : (body.error?.code ?? body.status)
    if ((status === 429 || status === 503) && headers.get('retry-after') === null) {
      this.withoutRetryAfter.push(`${name}: ${code}`)
    }
    return code
  }
}
