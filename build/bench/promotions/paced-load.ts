/**
 * An open-loop load over raw keep-alive connections: each request has its time, whatever became of
 * those before it, and its latency counts from there. What waits for a connection waits in that.
 */
import { Answer } from '../answers.ts'

export interface PacedOptions {
  readonly port: number
  readonly perSecond: number
  readonly headers: Readonly<Record<string, string>>
  /** Of each request, by its number. */
  request(number: number): PacedRequest
}

export interface PacedRequest {
  readonly path: string
  readonly body: string
}

/** Times are milliseconds of this process's monotonic clock. */
export interface PacedAnswer {
  readonly number: number
  readonly planned: number
  readonly sent: number
  readonly received: number
  /** Head and body; what of them a lost connection brought. */
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
  readonly answer: Answer
  socket: Bun.Socket | null
  /** What it waits for; null where it is idle. */
  current: InFlight | null
}

export class PacedLoad {
  readonly #options: PacedOptions
  readonly #headers: string
  readonly #startedAt = performance.now()
  readonly #waiting: Pending[] = []
  readonly #idle: Connection[] = []
  readonly #answers: PacedAnswer[] = []
  readonly #ended = Promise.withResolvers<void>()
  #connections = 0
  #connecting = 0
  #planned = 0
  #isEnding = false

  /** Begins at once. */
  constructor(options: PacedOptions) {
    this.#options = options
    const headers = Object.entries({ host: `127.0.0.1:${options.port}`, ...options.headers })
    this.#headers = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    this.#tick()
  }

  /** Plans nothing from here on; resolves with every answer once the last one is there. */
  async end(): Promise<readonly PacedAnswer[]> {
    this.#isEnding = true
    this.#endIfAnswered()
    await this.#ended.promise
    for (const { socket } of this.#idle.splice(0)) socket?.end()
    return this.#answers
  }

  /** One that comes late makes up for it. */
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
    // Those that are being opened come for what waits.
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
    const connection: Connection = { answer: new Answer(), socket: null, current: null }
    this.#connections += 1
    this.#connecting += 1
    const lost = (): void => {
      if (connection.socket === null) this.#connecting -= 1
      this.#connections -= 1
      if (connection.current !== null) this.#receive(connection)
      const place = this.#idle.indexOf(connection)
      if (place !== -1) this.#idle.splice(place, 1)
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
          if (!connection.answer.take(chunk)) return
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
    this.#endIfAnswered()
  }

  #receive(connection: Connection): void {
    const { answer, current } = connection
    connection.current = null
    this.#answers.push({ ...current!, received: performance.now(), text: answer.beginning })
    answer.clear()
    this.#endIfAnswered()
  }

  #endIfAnswered(): void {
    if (this.#isEnding && this.#answers.length === this.#planned) this.#ended.resolve()
  }
}
