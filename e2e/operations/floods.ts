/** Clients with loopback addresses of their own, connected to a proxy, and a flood of requests. */
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import type { Json } from '../application.ts'

export interface ClientRequest {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export interface ClientResponse {
  readonly status: number
  readonly body: Json
}

/** One client machine: it sends from `address`, over keep-alive connections. */
export class Client {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 })
  readonly #port: number
  readonly #host: string
  readonly #address: string

  /** Creates a client of the proxy at `port`, whose requests name `host`. */
  constructor(port: number, host: string, address: string) {
    this.#port = port
    this.#host = host
    this.#address = address
  }

  send({ method = 'GET', path, headers = {}, body }: ClientRequest): Promise<ClientResponse> {
    const text = body === undefined ? '' : JSON.stringify(body)
    return new Promise((resolve, reject) => {
      const sent = request({
        host: '127.0.0.1',
        port: this.#port,
        localAddress: this.#address,
        servername: this.#host,
        // The port belongs to this machine's own proxy, with a certificate of this run.
        rejectUnauthorized: false,
        agent: this.#agent,
        method,
        path,
        headers: {
          host: this.#host,
          accept: 'application/json',
          ...(text !== '' && {
            'content-type': 'application/json',
            'content-length': String(Buffer.byteLength(text)),
          }),
          ...headers,
        },
      })
      sent.once('error', reject)
      sent.once('response', (response) => resolve(readResponse(response)))
      sent.end(text)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

async function readResponse(response: IncomingMessage): Promise<ClientResponse> {
  let text = ''
  response.setEncoding('utf8')
  for await (const chunk of response) text += chunk
  // A proxy without its server responds with a page.
  const body: unknown = text.startsWith('{') ? JSON.parse(text) : null
  return { status: response.statusCode ?? 0, body }
}

/** Sends `perSecond` requests a second from its creation on, regardless of the responses. */
export class Flood {
  /** Number of responses by status; 0 counts connections that failed. */
  readonly statuses: Record<number, number> = {}
  readonly #startedAt = performance.now()
  readonly #timer: NodeJS.Timeout
  readonly #pending = new Set<Promise<void>>()
  readonly #client: Client
  #sent = 0

  constructor(client: Client, perSecond: number, next: () => ClientRequest) {
    this.#client = client
    this.#timer = setInterval(() => {
      const due = Math.floor(((performance.now() - this.#startedAt) * perSecond) / 1000)
      // After a pause of the machine the requests that were due are not sent all at once.
      const count = Math.min(due - this.#sent, perSecond / 4)
      for (let i = 0; i < count; i++) this.#send(next())
      this.#sent = due
    }, 10)
  }

  /** Stops, waits for the responses and returns their number per second. */
  async stop(): Promise<number> {
    clearInterval(this.#timer)
    const seconds = (performance.now() - this.#startedAt) / 1000
    await Promise.all(this.#pending)
    this.#client.close()
    const responses = Object.values(this.statuses).reduce((sum, each) => sum + each, 0)
    return Math.round(responses / seconds)
  }

  #send(sent: ClientRequest): void {
    const pending = this.#client
      .send(sent)
      .then(({ status }) => this.#count(status))
      .catch(() => this.#count(0))
      .finally(() => this.#pending.delete(pending))
    this.#pending.add(pending)
  }

  #count(status: number): void {
    this.statuses[status] = (this.statuses[status] ?? 0) + 1
  }
}

/** Sends a request `count` times in a row. Returns the statuses and the slowest duration. */
export async function repeated(
  count: number,
  send: () => Promise<ClientResponse>,
): Promise<{ readonly statuses: Record<number, number>; readonly slowestMillis: number }> {
  const statuses: Record<number, number> = {}
  let slowestMillis = 0
  for (let i = 0; i < count; i++) {
    const startedAt = performance.now()
    const { status } = await send()
    slowestMillis = Math.max(slowestMillis, Math.round(performance.now() - startedAt))
    statuses[status] = (statuses[status] ?? 0) + 1
  }
  return { statuses, slowestMillis }
}
