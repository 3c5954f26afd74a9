/**
 * An open-loop load over raw keep-alive connections: each request has a planned time, independent
 * of the requests before it, and its latency counts from there. It includes the time that the
 * request waits for a connection.
 */
import { ResponseReader } from '../responses.ts'

export interface PacedOptions {
  readonly port: number
  readonly perSecond: number
  readonly headers: Readonly<Record<string, string>>
  /** Creates the request with this number. */
  request(number: number): PacedRequest
}

export interface PacedRequest {
  readonly path: string
  readonly body: string
}

/** A response. Times are milliseconds of this process's monotonic clock. */
export interface PacedResponse {
  readonly number: number
  readonly planned: number
  readonly sent: number
  readonly received: number
  /** The beginning of the response, or the part that a lost connection delivered. */
  readonly text: string
}

const CONNECTIONS_MAX = 512
const TICK_MILLIS = 1

interface Pending {
  readonly number: number
  readonly planned: number
}

interface InFlight extends Pending {
  readonly sent: number
}

interface Connection {
  readonly response: ResponseReader
  socket: Bun.Socket | null
  /** The request whose response is pending; null if the connection is idle. */
  current: InFlight | null
}

export class PacedLoad {
  readonly #options: PacedOptions
  readonly #headers: string
  readonly #startedAt = performance.now()
  readonly #waiting: Pending[] = []
  readonly #idle: Connection[] = []
  readonly #responses: PacedResponse[] = []
  readonly #ended = Promise.withResolvers<void>()
  #connections = 0
  #connecting = 0
  #planned = 0
  #isEnding = false

  /** Starts the load at once. */
  constructor(options: PacedOptions) {
    this.#options = options
    const headers = Object.entries({ host: `127.0.0.1:${options.port}`, ...options.headers })
    this.#headers = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    this.#tick()
  }

  /** Stops planning requests. Resolves with all responses once the last one has arrived. */
  async end(): Promise<readonly PacedResponse[]> {
    this.#isEnding = true
    this.#endIfDone()
    await this.#ended.promise
    for (const { socket } of this.#idle.splice(0)) socket?.end()
    return this.#responses
  }

  /** Sends the due requests. A late tick also sends those of the missed ticks. */
  #tick(): void {
    if (this.#isEnding) return
    const { perSecond } = this.#options
    const millisEach = 1_000 / perSecond
    const due = (performance.now() - this.#startedAt) / millisEach
    while (this.#planned < due) {
      const number = this.#planned++
      this.#waiting.push({ number, planned: this.#startedAt + number * millisEach })
    }
    this.#sendWaiting()
    setTimeout(() => this.#tick(), TICK_MILLIS)
  }

  #sendWaiting(): void {
    while (this.#waiting.length > 0 && this.#idle.length > 0) {
      this.#send(this.#idle.pop()!, this.#waiting.shift()!)
    }
    // Connections that are being opened take requests that wait.
    while (this.#connecting < this.#waiting.length && this.#connections < CONNECTIONS_MAX) {
      this.#connect()
    }
  }

  #send(connection: Connection, pending: Pending): void {
    const { path, body } = this.#options.request(pending.number)
    connection.current = { ...pending, sent: performance.now() }
    const length = `content-length: ${Buffer.byteLength(body)}\r\n`
    connection.socket!.write(`POST ${path} HTTP/1.1\r\n${this.#headers}${length}\r\n${body}`)
  }

  #connect(): void {
    const connection: Connection = { response: new ResponseReader(), socket: null, current: null }
    this.#connections += 1
    this.#connecting += 1
    const lost = (): void => {
      if (connection.socket === null) this.#connecting -= 1
      this.#connections -= 1
      if (connection.current !== null) this.#receive(connection)
      const index = this.#idle.indexOf(connection)
      if (index !== -1) this.#idle.splice(index, 1)
    }
    void Bun.connect({
      hostname: '127.0.0.1',
      port: this.#options.port,
      socket: {
        open: (socket) => {
          connection.socket = socket
          this.#connecting -= 1
          this.#release(connection)
        },
        data: (_, chunk) => {
          if (!connection.response.take(chunk)) return
          this.#receive(connection)
          this.#release(connection)
        },
        close: lost,
      },
    }).catch(lost)
  }

  #release(connection: Connection): void {
    this.#idle.push(connection)
    this.#sendWaiting()
    this.#endIfDone()
  }

  #receive(connection: Connection): void {
    const { response, current } = connection
    connection.current = null
    this.#responses.push({
      ...current!,
      received: performance.now(),
      text: response.beginning,
    })
    response.clear()
    this.#endIfDone()
  }

  #endIfDone(): void {
    if (this.#isEnding && this.#responses.length === this.#planned) this.#ended.resolve()
  }
}
