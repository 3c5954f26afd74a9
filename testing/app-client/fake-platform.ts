/** A runtime of the application client without time or network: tests move its clock. */
import type { Platform, Socket } from '../../src/app-client/platform.ts'

// biome-ignore lint/suspicious/noExplicitAny: messages of many shapes.
type Loose = any

export interface SentRequest {
  readonly url: string
  readonly init: RequestInit
  readonly body: Loose
}

/** A connection that the client has opened. */
export class FakeSocket implements Socket {
  onopen: Socket['onopen'] = null
  onmessage: Socket['onmessage'] = null
  onclose: Socket['onclose'] = null
  onerror: Socket['onerror'] = null
  isClosed = false
  readonly protocol: string | undefined
  readonly sent: Loose[] = []

  constructor(protocol: string | undefined) {
    this.protocol = protocol
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text))
  }

  close(): void {
    this.isClosed = true
  }

  receive(message: object): void {
    const version = Number(this.protocol?.at(-1) ?? 1)
    this.onmessage?.({ data: JSON.stringify({ version, ...message }) })
  }

  /** Opens the connection and accepts the first authentication. */
  accept(): void {
    this.onopen?.()
    this.receive({
      type: 'authenticated',
      sessionId: 'req_1',
      expiresAtMicros: null,
      maximumSubscriptions: 1_000,
    })
  }

  /** Returns the messages of a type. */
  ofType(type: string): Loose[] {
    return this.sent.filter((message) => message.type === type)
  }
}

export class FakePlatform implements Platform {
  nowMillisValue = 1_700_000_000_000
  randomValue = 0.5
  respond: (request: SentRequest) => Response | Promise<Response> = () => {
    throw new TypeError('no network')
  }
  readonly requests: SentRequest[] = []
  readonly sockets: FakeSocket[] = []
  /** The requested delays, in order. */
  readonly delays: number[] = []
  readonly #timers = new Set<{ at: number; task: () => void }>()
  readonly #wakes = new Set<() => void>()
  readonly #losses = new Set<() => void>()

  nowMillis = (): number => this.nowMillisValue
  random = (): number => this.randomValue
  randomBytes = (length: number): Uint8Array => new Uint8Array(length).fill(7)

  after = (millis: number, task: () => void): (() => void) => {
    const timer = { at: this.nowMillisValue + millis, task }
    this.delays.push(millis)
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const body = typeof init.body === 'string' ? JSON.parse(init.body) : init.body
    const request = { url, init, body }
    this.requests.push(request)
    const aborted = new Promise<never>((_, reject) => {
      init.signal?.addEventListener('abort', () => reject(new DOMException('', 'AbortError')))
    })
    return Promise.race([this.respond(request), aborted])
  }

  /** The subprotocol that the server selects; undefined for a socket that does not say it. */
  protocol: string | undefined = 'service.realtime.v2'
  /** The subprotocols that the client has offered, for each connection. */
  readonly offers: (string | string[])[] = []

  openSocket = async (_url: string, protocols: string | string[]): Promise<Socket> => {
    this.offers.push(protocols)
    const socket = new FakeSocket(this.protocol)
    this.sockets.push(socket)
    return socket
  }

  onWake = (task: () => void): (() => void) => {
    this.#wakes.add(task)
    return () => this.#wakes.delete(task)
  }

  wake(): void {
    for (const task of this.#wakes) task()
  }

  onOffline = (task: () => void): (() => void) => {
    this.#losses.add(task)
    return () => this.#losses.delete(task)
  }

  loseNetwork(): void {
    for (const task of this.#losses) task()
  }

  get socket(): FakeSocket {
    return this.sockets.at(-1)!
  }

  /** Advances the clock and runs the due timers, and those that they start. */
  async pass(millis: number): Promise<void> {
    const end = this.nowMillisValue + millis
    await runReactions()
    for (;;) {
      const due = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
      if (due === undefined) break
      this.#timers.delete(due)
      this.nowMillisValue = Math.max(this.nowMillisValue, due.at)
      due.task()
      await runReactions()
    }
    this.nowMillisValue = end
  }
}

/** Runs the reactions of all promises that are settled. */
export async function runReactions(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
}

const REQUEST = `req_${'0'.repeat(26)}`
const RELEASE = `rel_${'0'.repeat(26)}`
export const IDS = { request: REQUEST, release: RELEASE }

/** Returns the response to a call, changed where a test wants it wrong. */
export function answer(
  metadata: object,
  result: object = { type: 'null' },
  change: { readonly body?: object; readonly headers?: Record<string, string> } = {},
): Response {
  const ids = { requestId: REQUEST, releaseId: RELEASE }
  const body = { version: 1, status: 'ok', ...ids, result, metadata, ...change.body }
  return new Response(JSON.stringify(body), {
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'x-service-request-id': REQUEST,
      'x-service-release-id': RELEASE,
      ...change.headers,
    },
  })
}

export function failure(
  status: number,
  code: string,
  retryable: boolean,
  headers: Record<string, string> = {},
): Response {
  const error = { code, message: 'Failed.', retryable }
  const body = { version: 1, status: 'error', requestId: REQUEST, error }
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json', 'x-service-request-id': REQUEST, ...headers },
  })
}
