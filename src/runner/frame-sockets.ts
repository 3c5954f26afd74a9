/**
 * The server's end of the socket of a runner. A socket of the runtime reads and writes with one
 * system call each, where its pipes of a child take ten for one message in each direction.
 */
import { ValidationError } from '../value/validation-error.ts'
import { FrameReader, FrameWriter } from './protocol/frames.ts'

export interface FrameEvents {
  onFrame(text: string): void
  /** The other end violates the protocol. Nothing more is read. */
  onMalformed(reason: string): void
}

export class FrameSocket {
  /** Resolves when the other end is closed and all its frames were read. */
  readonly closed: Promise<void>
  readonly #output = new FrameWriter()
  #socket: Bun.Socket | null = null
  /** The rest of a write that the system has not accepted yet. */
  #unsent: Buffer | null = null
  #sentBytes = 0

  /** Owns the descriptor of a connected socket. */
  constructor(fd: number, events: FrameEvents) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.closed = promise
    const frames = new FrameReader()
    let isMalformed = false
    const options: Bun.FdSocketOptions = {
      fd,
      socket: {
        open: (socket) => {
          this.#socket = socket
          this.flush()
        },
        data: (_, bytes) => {
          if (isMalformed) return
          try {
            frames.push(bytes, events.onFrame)
          } catch (error) {
            if (!(error instanceof ValidationError)) throw error
            isMalformed = true
            events.onMalformed(error.message)
          }
        },
        drain: () => this.#sendRest(),
        // An exception of `data` is a programming error, and handled as an uncaught one.
        error: (_, error) => void Promise.reject(error),
        close: () => {
          this.#socket = null
          resolve()
        },
      },
    }
    // The types have these options, but no overload that takes them.
    void Bun.connect(options as unknown as Bun.UnixSocketOptions)
  }

  /** Bytes that are not written yet. */
  get backlogBytes(): number {
    return (this.#unsent?.length ?? 0) + this.#output.length
  }

  /** Bytes that were given to the socket in total. */
  get sentBytes(): number {
    return this.#sentBytes
  }

  /** Frames that were appended in total. */
  get sentFrames(): number {
    return this.#output.frames
  }

  append(text: string): void {
    this.#output.append(text)
  }

  /** Writes the frames that were appended. */
  flush(): void {
    if (this.#socket === null || this.#unsent !== null || this.#output.length === 0) return
    const bytes = this.#output.take()
    this.#sentBytes += bytes.length
    this.#unsent = this.#send(this.#socket, bytes)
  }

  #sendRest(): void {
    if (this.#socket === null || this.#unsent === null) return
    this.#unsent = this.#send(this.#socket, this.#unsent)
    this.flush()
  }

  /** Returns what the system did not accept; null for nothing. */
  #send(socket: Bun.Socket, bytes: Buffer): Buffer | null {
    const written = Math.max(0, socket.write(bytes))
    // Copied: the bytes are valid only until the next frame is appended.
    return written === bytes.length ? null : Buffer.from(bytes.subarray(written))
  }
}
