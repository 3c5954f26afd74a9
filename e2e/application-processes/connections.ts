/**
 * Connections of their own to the application origin. A client library shares its connections, so
 * that a test could not tell which process answers a call.
 */
import { connect, type Socket } from 'node:net'
import { type Json, object, operationId } from '../application.ts'

export interface Answer {
  readonly status: number
  readonly body: Json
}

export interface Call {
  readonly kind: 'query' | 'mutation'
  readonly function: string
  readonly arguments?: Record<string, Json>
  /** Default: the Channel `production`. */
  readonly target?: string
  readonly key: string
}

/** Sends one request after the other over one connection. */
export class Connection {
  readonly #socket: Socket
  readonly #host: string
  #received: Buffer = Buffer.alloc(0)
  #waiting: PromiseWithResolvers<Answer> | null = null

  private constructor(socket: Socket, host: string) {
    this.#socket = socket
    this.#host = host
    socket.setNoDelay(true)
    socket.on('data', (bytes: Buffer) => {
      this.#received = Buffer.concat([this.#received, bytes])
      this.#take()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => this.#waiting?.reject(new Error('the connection was closed')))
  }

  static async open(origin: string): Promise<Connection> {
    const { hostname, port, host } = new URL(origin)
    const socket = connect(Number(port), hostname)
    await new Promise((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('error', reject)
    })
    return new Connection(socket, host)
  }

  get localPort(): number {
    return this.#socket.localPort!
  }

  call({ kind, key, ...called }: Call): Promise<Answer> {
    const envelope = {
      version: 1,
      target: called.target ?? 'channel:production',
      function: called.function,
      arguments: object(called.arguments ?? {}),
      ...(kind === 'mutation' && { operationId: operationId() }),
    }
    return this.send('POST', `/v1/${kind}`, key, JSON.stringify(envelope))
  }

  /** Rejects if the connection ends before the answer. */
  send(method: string, path: string, key: string, body: string): Promise<Answer> {
    this.#waiting = Promise.withResolvers()
    const head = [
      `${method} ${path} HTTP/1.1`,
      `host: ${this.#host}`,
      `x-service-key: ${key}`,
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
    ]
    this.#socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
    return this.#waiting.promise
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(): void {
    const end = this.#received.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.#received.toString('latin1', 0, end)
    const length = /^content-length: (\d+)$/im.exec(head)?.[1]
    if (length === undefined) throw new Error(`an answer has no length: ${head}`)
    const last = end + 4 + Number(length)
    if (this.#received.length < last) return
    const text = this.#received.toString('utf8', end + 4, last)
    this.#received = this.#received.subarray(last)
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1])
    const waiting = this.#waiting
    this.#waiting = null
    waiting?.resolve({ status, body: text === '' ? null : JSON.parse(text) })
  }
}
