/**
 * A closed-loop load over raw keep-alive connections: each connection sends its next request when
 * the answer to the last one is whole. A general HTTP client would cost more than the server.
 */
import { assert } from '../../src/errors/assert.ts'

export interface LoadOptions {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  /** POST unless given. */
  readonly method?: 'GET' | 'POST'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** The body of the next request; requests without one have none. */
  readonly body?: (() => string) | undefined
}

export interface LoadResult {
  readonly perSecond: number
  readonly p50Micros: number
  readonly p99Micros: number
  /** Answers that were not 200. */
  readonly failures: number
  readonly firstFailure: string | null
}

const HEADER_END = '\r\n\r\n'

/** Runs the load and throws away what came in its first fifth. */
export async function load(options: LoadOptions): Promise<LoadResult> {
  const run = new Run(options)
  await Promise.all(Array.from({ length: options.connections }, () => run.connect()))
  return run.result()
}

class Run {
  readonly #options: LoadOptions
  readonly #head: string
  readonly #latencies: number[] = []
  readonly #startAt = performance.now()
  readonly #countFrom: number
  readonly #stopAt: number
  #failures = 0
  #firstFailure: string | null = null

  constructor(options: LoadOptions) {
    this.#options = options
    const { method = 'POST', path } = options
    const headers = Object.entries({ host: `127.0.0.1:${options.port}`, ...options.headers })
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`)
    this.#head = `${method} ${path} HTTP/1.1\r\n${lines.join('')}`
    this.#countFrom = this.#startAt + options.seconds * 200
    this.#stopAt = this.#startAt + options.seconds * 1000
  }

  connect(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    let pending = ''
    let sentAt = 0
    const send = (socket: Bun.Socket): void => {
      sentAt = performance.now()
      if (sentAt >= this.#stopAt) {
        resolve()
        socket.end()
        return
      }
      socket.write(`${this.#head}${this.#rest()}`)
    }
    void Bun.connect({
      hostname: '127.0.0.1',
      port: this.#options.port,
      socket: {
        open: send,
        data: (socket, chunk) => {
          pending += chunk.toString('latin1')
          const length = answerLength(pending)
          if (length === null || pending.length < length) return
          this.#record(pending, performance.now() - sentAt)
          pending = pending.slice(length)
          send(socket)
        },
        close: () => reject(new Error('the server closed a connection')),
        error: (_, error) => reject(error),
      },
    })
    return promise
  }

  /** Of the next request, from behind the headers that all have. */
  #rest(): string {
    const body = this.#options.body?.()
    if (body === undefined) return '\r\n'
    return `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  }

  result(): LoadResult {
    const sorted = this.#latencies.sort((a, b) => a - b)
    assert(sorted.length > 0, 'no request was answered')
    const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]! * 1000
    return {
      perSecond: sorted.length / ((this.#stopAt - this.#countFrom) / 1000),
      p50Micros: at(0.5),
      p99Micros: at(0.99),
      failures: this.#failures,
      firstFailure: this.#firstFailure,
    }
  }

  #record(answer: string, millis: number): void {
    if (!answer.startsWith('HTTP/1.1 200')) {
      this.#failures += 1
      this.#firstFailure ??= answer.slice(0, 2_000)
    }
    if (performance.now() >= this.#countFrom) this.#latencies.push(millis)
  }
}

/** Bytes of the whole answer; null while its head is incomplete. */
function answerLength(text: string): number | null {
  const end = text.indexOf(HEADER_END)
  if (end === -1) return null
  const match = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end + 2))
  assert(match !== null, 'an answer without Content-Length')
  return end + HEADER_END.length + Number(match[1])
}
