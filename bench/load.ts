/**
 * A closed-loop load over raw keep-alive connections: each connection sends its next request when
 * the previous response is complete. A general HTTP client would use more CPU than the server.
 */
import { assert } from '../src/errors/assert.ts'
import { ResponseReader } from './responses.ts'

export interface LoadOptions {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  /** Default: POST. */
  readonly method?: 'GET' | 'POST'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Creates the body of the next request. Without it, requests have no body. */
  readonly body?: (() => string) | undefined
  /** Returns a header line of the request with this body, such as its signature. */
  readonly signature?: (body: string) => string
}

export interface LoadResult {
  readonly perSecond: number
  readonly p50Micros: number
  readonly p99Micros: number
  /** Number of responses whose status is neither 200 nor 202. */
  readonly failures: number
  readonly firstFailure: string | null
}

/** Share of a load at its beginning whose latencies are discarded as warm-up. */
export const WARM_UP_SHARE = 0.2

/** Runs the load. Latencies of its first fifth are discarded. */
export async function load(options: LoadOptions): Promise<LoadResult> {
  const run = new Run(options)
  await Promise.all(Array.from({ length: options.connections }, () => run.connect()))
  return run.result()
}

/** Repeats a task of several requests on each of the connections. Its first fifth is discarded. */
export async function repeatedly(
  { connections, seconds }: Pick<LoadOptions, 'connections' | 'seconds'>,
  task: () => Promise<unknown>,
): Promise<LoadResult> {
  const latencies: number[] = []
  const countFrom = performance.now() + seconds * 1000 * WARM_UP_SHARE
  const stopAt = performance.now() + seconds * 1000
  const connection = async (): Promise<void> => {
    for (let before = performance.now(); before < stopAt; ) {
      await task()
      const after = performance.now()
      if (after >= countFrom) latencies.push(after - before)
      before = after
    }
  }
  await Promise.all(Array.from({ length: connections }, connection))
  return toLoadResult(latencies, (stopAt - countFrom) / 1000)
}

/** `latencies` are milliseconds of the requests that ended within `seconds`. */
export function toLoadResult(
  latencies: number[],
  seconds: number,
  failures: Pick<LoadResult, 'failures' | 'firstFailure'> = { failures: 0, firstFailure: null },
): LoadResult {
  assert(latencies.length > 0, 'nothing was answered')
  const sorted = latencies.sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]! * 1000
  return {
    perSecond: sorted.length / seconds,
    p50Micros: at(0.5),
    p99Micros: at(0.99),
    ...failures,
  }
}

class Run {
  readonly #options: LoadOptions
  readonly #head: string
  readonly #latencies: number[] = []
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
    const startAt = performance.now()
    this.#countFrom = startAt + options.seconds * 1000 * WARM_UP_SHARE
    this.#stopAt = startAt + options.seconds * 1000
  }

  connect(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const response = new ResponseReader()
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
          if (!response.take(chunk)) return
          this.#record(response, performance.now() - sentAt)
          response.clear()
          send(socket)
        },
        close: () => reject(new Error('the server closed a connection')),
        error: (_, error) => reject(error),
      },
    }).catch(reject)
    return promise
  }

  /** The part of the next request after the headers that all requests share. */
  #rest(): string {
    const body = this.#options.body?.()
    if (body === undefined) return '\r\n'
    const { signature } = this.#options
    const signed = signature === undefined ? '' : `${signature(body)}\r\n`
    return `${signed}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  }

  result(): LoadResult {
    return toLoadResult(this.#latencies, (this.#stopAt - this.#countFrom) / 1000, {
      failures: this.#failures,
      firstFailure: this.#firstFailure,
    })
  }

  #record(response: ResponseReader, millis: number): void {
    if (!/^HTTP\/1\.1 20[02] /.test(response.head)) {
      this.#failures += 1
      this.#firstFailure ??= response.beginning
    }
    if (performance.now() >= this.#countFrom) this.#latencies.push(millis)
  }
}
