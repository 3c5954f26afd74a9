/** Implements the module "svc/test", which testing.d.ts declares and describes. */
import { decodeResult } from '../app-client/results.ts'
import { encodeArguments, type Shapes } from '../app-client/shapes.ts'
import {
  DURATION_UNITS,
  type Duration,
  durationMillis,
} from '../value/scheduling/scheduled-work.ts'
import type {
  Caller,
  DescribedFunction,
  MigratedDocuments,
  OpenedEnvironment,
  ScheduledEntry,
  StoredDelivery,
  StubbedRequest,
  StubbedResponse,
  TestLogLine,
} from '../wire/test-kit.ts'
import { type HostedEnvironment, HostProcess, kitError } from './host-process.ts'
import { ownWorkspace, seedOfRun } from './process-settings.ts'

export { CallError, isCallError } from '../app-client/errors.ts'

interface Options {
  readonly seed?: number
  readonly now?: Date
  readonly fetch?: FetchHandler | null
  readonly variables?: Readonly<Record<string, string>>
  readonly secrets?: Readonly<Record<string, string>>
  readonly log?: (line: TestLogLine) => void
  readonly workspace?: string
}

interface DeliveredEvent {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly path?: string
}

interface AdvanceOptions {
  readonly crons?: false | readonly string[]
}

type FetchHandler = (request: Request) => Response | Promise<Response>
type Kind = 'query' | 'mutation' | 'action'
type Reference = string | { readonly kind: Kind; readonly name: string }
type Send = (reference: Reference | undefined, args?: unknown) => Promise<unknown>

interface Claims {
  readonly issuer?: string
  readonly roles?: readonly string[]
  readonly email?: string
}

type TestCaller = Readonly<Record<Kind, Send>>

const START = new Date('2026-01-01T00:00:00Z')
const ISSUER = 'https://identity.test'

/** The host that all environments share: its start takes longer than that of an environment. */
let host: HostProcess | null = null

export async function testEnvironment(options: Options = {}): Promise<TestEnvironment> {
  if (host === null || host.hasEnded) host = new HostProcess()
  const environment = new TestEnvironment(host, options)
  await environment.open(options)
  return environment
}

class TestEnvironment implements HostedEnvironment {
  readonly #host: HostProcess
  readonly #log: (line: TestLogLine) => void
  #number = 0
  #functions: ReadonlyMap<string, DescribedFunction> = new Map()
  #nowMicros = 0n
  #guests = 0
  #closing: Promise<void> | null = null
  fetch: FetchHandler | null
  readonly query: Send
  readonly mutation: Send
  readonly action: Send

  constructor(host: HostProcess, { fetch = null, log = print }: Options) {
    this.#host = host
    this.#log = log
    this.fetch = fetch
    const anonymous = this.#as(null)
    this.query = anonymous.query
    this.mutation = anonymous.mutation
    this.action = anonymous.action
  }

  /** @internal */
  async open({ now = START, variables = {}, secrets = {}, ...options }: Options): Promise<void> {
    const { seed = seedOfRun(), workspace = ownWorkspace() } = options
    if (!Number.isSafeInteger(seed) || seed < 0) throw kitError('The seed is a whole number.')
    this.#nowMicros = BigInt(now.getTime()) * 1_000n
    const { value } = await this.#host.request(this, {
      kind: 'open',
      workspace,
      seed,
      nowMicros: String(this.#nowMicros),
      variables,
      secrets,
    })
    const { environment, functions } = value as OpenedEnvironment
    this.#number = environment
    this.#functions = new Map(Object.entries(functions))
    this.#host.add(environment, this)
  }

  get now(): bigint {
    return this.#nowMicros
  }

  asUser(subject: string, claims: Claims = {}): TestCaller {
    return this.#as({ kind: 'user', subject, ...withDefaults(claims) })
  }

  asService(subject: string, claims: Claims = {}): TestCaller {
    return this.#as({ kind: 'service', subject, ...withDefaults(claims) })
  }

  asGuest(token?: string): TestCaller {
    const caller = token === undefined ? { number: ++this.#guests } : { token }
    return this.#as({ kind: 'guest', ...caller })
  }

  async deliver(hook: string, event: DeliveredEvent = {}): Promise<StoredDelivery> {
    const { stack: origin } = new Error()
    const { body, path = null } = event
    const type = body instanceof Uint8Array ? 'application/octet-stream' : 'application/json'
    const headers = new Headers(event.headers)
    if (!headers.has('content-type')) headers.set('content-type', type)
    const given = { headers: [...headers], body: bytesOf(body).toString('base64'), path }
    try {
      return (await this.#request({ kind: 'deliver', hook, ...given })) as StoredDelivery
    } catch (error) {
      if (error instanceof Error) error.stack = stackAt(error, origin)
      throw error
    }
  }

  async advance(duration?: Duration, options: AdvanceOptions = {}): Promise<void> {
    const millis = duration === undefined ? 0 : millisOf(duration)
    await this.#request({ kind: 'advance', millis, crons: cronsOf(options.crons) })
  }

  async scheduled(): Promise<readonly object[]> {
    const entries = (await this.#request({ kind: 'scheduled' })) as readonly ScheduledEntry[]
    return entries.map(({ dueAtMicros, ...entry }) => ({ ...entry, dueAt: BigInt(dueAtMicros) }))
  }

  async documents(table: string): Promise<unknown> {
    return decodeResult(await this.#request({ kind: 'documents', table }))
  }

  async migrate(name: string): Promise<{ readonly processed: bigint; readonly changed: bigint }> {
    const value = await this.#request({ kind: 'migrate', name })
    const { processed, changed } = value as MigratedDocuments
    return { processed: BigInt(processed), changed: BigInt(changed) }
  }

  close(): Promise<void> {
    this.#closing ??= this.#host.request(this, this.#message({ kind: 'close' })).then(
      () => this.#host.remove(this.#number),
      (error: unknown) => {
        // The host has ended, and the environment with it.
        if (!this.#host.hasEnded) throw error
      },
    )
    return this.#closing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** @internal */
  async fetched({ url, method, headers, body }: StubbedRequest): Promise<StubbedResponse> {
    const handler = this.fetch
    if (handler === null) {
      const rule = 'give testEnvironment a `fetch` that answers it'
      return { failure: `the test has no answer to ${method} ${url}: ${rule}` }
    }
    try {
      const sent = body === null ? null : Buffer.from(body, 'base64')
      const init = { method, headers: headers as [string, string][], body: sent }
      const response = await handler(new Request(url, init))
      return {
        status: response.status,
        statusText: response.statusText,
        headers: [...response.headers],
        body: Buffer.from(await response.arrayBuffer()).toString('base64'),
      }
    } catch (error) {
      return { failure: error instanceof Error ? error.message : String(error) }
    }
  }

  /** @internal */
  logged(line: TestLogLine): void {
    this.#log(line)
  }

  #as(caller: Caller): TestCaller {
    const send = (kind: Kind): Send => {
      const call: Send = async (reference, args = {}) => {
        const { stack: origin } = new Error()
        try {
          return await this.#call(kind, reference, { args, caller })
        } catch (error) {
          // Shows the line of the test instead of the line that read the reply.
          if (error instanceof Error) error.stack = stackAt(error, origin)
          throw error
        }
      }
      return call
    }
    return { query: send('query'), mutation: send('mutation'), action: send('action') }
  }

  async #call(
    kind: Kind,
    reference: Reference | undefined,
    { args, caller }: { readonly args: unknown; readonly caller: Caller },
  ): Promise<unknown> {
    if (reference === undefined) {
      const reason = 'The reference to the Function is undefined. Where the Function is new,'
      throw kitError(`${reason} _generated is current now: run the test again.`)
    }
    const name = typeof reference === 'string' ? reference : reference.name
    const described = this.#functions.get(name)
    // The host reports a Function that is missing or of another kind.
    const shapes = (described?.arguments ?? {}) as Shapes
    const text =
      described === undefined ? '{"type":"object","value":[]}' : encodeArguments(shapes, args)
    const call = { kind: 'call', function: name, functionKind: kind, caller }
    return decodeResult(await this.#request({ ...call, arguments: JSON.parse(text) }))
  }

  async #request(request: object): Promise<unknown> {
    if (this.#closing !== null) throw kitError('The test environment is closed.')
    const { nowMicros, value } = await this.#host.request(this, this.#message(request))
    // Replies of concurrent calls may arrive in another order.
    if (nowMicros > this.#nowMicros) this.#nowMicros = nowMicros
    return value
  }

  #message(request: object): object {
    return { ...request, environment: this.#number }
  }
}

function stackAt({ name, message, stack = '' }: Error, origin = ''): string {
  // The first frame belongs to the kit.
  const frames = origin.split('\n').slice(2)
  return frames.length > 0 ? [`${name}: ${message}`, ...frames].join('\n') : stack
}

/** Returns the bytes of a body: a text and bytes as they are, every other value as JSON. */
function bytesOf(body: unknown): Buffer {
  if (body instanceof Uint8Array) return Buffer.from(body)
  if (typeof body === 'string') return Buffer.from(body)
  return Buffer.from(body === undefined ? '' : JSON.stringify(body))
}

function withDefaults({ issuer = ISSUER, roles = [], email }: Claims) {
  return { issuer, roles: [...roles], ...(email !== undefined && { email }) }
}

function millisOf(duration: Duration): number {
  const millis = durationMillis(duration)
  if (millis !== null) return millis
  const units = Object.keys(DURATION_UNITS).join(', ')
  throw kitError(`A duration has at least one of ${units}, each from 0, and at most 10 years.`)
}

/** Returns the names of the enabled Crons; null for all. */
function cronsOf(crons: AdvanceOptions['crons']): readonly string[] | null {
  if (crons === undefined) return null
  if (crons === false) return []
  if (Array.isArray(crons) && crons.every((name) => typeof name === 'string')) return crons
  throw kitError('The option `crons` is false, or a list of names of Crons.')
}

function print({ level, function: name, message, data }: TestLogLine): void {
  const text = name === '' ? message : `[${name}] ${message}`
  if (data === null) console[level](text)
  else console[level](text, data)
}
