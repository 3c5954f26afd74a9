/**
 * Sends responses of a known length on connections that the runtime has accepted, beside the
 * runtime: it sends a body that is a stream in chunks and removes its Content-Length. The
 * connection ends with the response.
 */
import { FFIType } from 'bun:ffi'
import type { Socket } from 'bun'
import { openLibc } from './libc.ts'

const { i32 } = FFIType
const SYMBOLS = {
  fcntl: { args: [i32, i32, i32], returns: i32 },
  shutdown: { args: [i32, i32], returns: i32 },
  close: { args: [i32], returns: i32 },
} as const
const F_DUPFD_CLOEXEC = 1030
/** Sends what was written, and the end of the connection. */
const SHUT_RDWR = 2
/** Time after which the runtime has closed a connection that was shut down. */
const CLOSED_MILLIS_MAX = 1_000

export interface StreamedResponse {
  /** Status line and headers, with the empty line. */
  readonly head: string
  readonly body: ReadableStream<Uint8Array>
  /** Aborted when the runtime closes the connection. */
  readonly signal: AbortSignal
  /** Time for which the peer may take nothing. */
  readonly idleMillis: number
}

type Functions = NonNullable<ReturnType<typeof openLibc<typeof SYMBOLS>>>

export class ConnectionStreams {
  readonly #libc: Functions

  private constructor(libc: Functions) {
    this.#libc = libc
  }

  /** Null on a system without the functions for it. */
  static open(): ConnectionStreams | null {
    const libc = openLibc(SYMBOLS)
    return libc === null ? null : new ConnectionStreams(libc)
  }

  /**
   * Sends the response on the connection with this descriptor, on which the runtime waits for a
   * response, and ends the connection. A peer that gets less than the announced length knows that
   * the stream has failed. Resolves with false if nothing was sent, and never rejects.
   */
  async send(descriptor: number, response: StreamedResponse): Promise<boolean> {
    // The runtime keeps its descriptor, which it also waits for.
    const copy = this.#libc.fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    if (copy < 0) return false
    const { signal, body, head, idleMillis } = response
    const connection = await Connection.open(copy, signal, idleMillis)
    if (connection === null) {
      this.#libc.close(copy)
      return false
    }
    const reader = body.getReader()
    const cancel = () => void reader.cancel().catch(() => undefined)
    connection.onEnd(cancel)
    try {
      let bytes: Uint8Array | undefined = Buffer.from(head, 'latin1')
      while (bytes !== undefined && (await connection.write(bytes))) {
        bytes = (await reader.read()).value
      }
    } catch {
      // The source of the bytes reports its failure itself.
    }
    // Does nothing if everything was sent.
    cancel()
    if (!connection.isClosed) this.#libc.shutdown(copy, SHUT_RDWR)
    connection.close()
    await aborted(signal)
    return true
  }
}

/** The writing end of a copied descriptor. */
class Connection {
  readonly #idleMillis: number
  #socket: Socket | null = null
  /** Continues a write that waits. */
  #wake = () => {}
  #end = () => {}
  #isEnded = false
  #isClosed = false

  private constructor(idleMillis: number) {
    this.#idleMillis = idleMillis
  }

  /** Null if the descriptor cannot be used. Otherwise it is closed with the connection. */
  static async open(
    descriptor: number,
    signal: AbortSignal,
    idleMillis: number,
  ): Promise<Connection | null> {
    const connection = new Connection(idleMillis)
    try {
      const options: Bun.FdSocketOptions = {
        fd: descriptor,
        socket: {
          // A further request on the connection is not answered.
          data: () => undefined,
          drain: () => connection.#wake(),
          error: () => connection.#ended(),
          close: () => {
            connection.#isClosed = true
            connection.#ended()
          },
        },
      }
      // The types of the function lack this form, which they describe.
      connection.#socket = await Bun.connect(options as unknown as Bun.UnixSocketOptions)
    } catch {
      return null
    }
    if (signal.aborted) connection.#ended()
    else signal.addEventListener('abort', () => connection.#ended(), { once: true })
    return connection
  }

  /** True once the descriptor is closed: its number may name another file. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /** `end` is called when the peer or the runtime has ended the connection. */
  onEnd(end: () => void): void {
    this.#end = end
    if (this.#isEnded) end()
  }

  /** Resolves with false once the connection has ended, or its peer is too slow. */
  async write(bytes: Uint8Array): Promise<boolean> {
    let rest = bytes
    while (!this.#isEnded) {
      const written = this.#socket!.write(rest)
      if (written < 0) return false
      rest = rest.subarray(written)
      if (rest.length === 0) return true
      if (!(await this.#drained())) return false
    }
    return false
  }

  close(): void {
    if (!this.#isClosed) this.#socket?.end()
  }

  /** Resolves with false if the peer has taken nothing in time. */
  async #drained(): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => resolve(false), this.#idleMillis)
    this.#wake = () => resolve(true)
    const isDrained = await promise
    clearTimeout(timer)
    return isDrained
  }

  #ended(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#wake()
    this.#end()
  }
}

/** Resolves once the runtime has closed the connection. */
async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, CLOSED_MILLIS_MAX)
  signal.addEventListener('abort', () => resolve(), { once: true })
  await promise
  clearTimeout(timer)
}
