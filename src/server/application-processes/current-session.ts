/** The messages of one Realtime connection, each passed on once the process has followed. */
import type { Socket, SocketSession } from '../../http/application/sockets.ts'
import type { MemoryShare } from '../../system/memory/memory-budget.ts'
import { textBytes } from '../../system/memory/memory-bytes.ts'
import type { Follower } from './follower.ts'

/**
 * Messages of one connection that wait, of 64 KiB at most each. A wait lasts as long as a message
 * from the main process, so that only a peer that floods has more.
 */
export const WAITING_MESSAGES_MAX = 16

/**
 * Passes messages on in their order, each once the process is current. A connection is cut if too
 * many of its messages wait, or more than the memory of unfinished requests has room for.
 */
export class CurrentSession implements SocketSession {
  readonly #session: SocketSession
  readonly #follower: Pick<Follower, 'isCurrent' | 'current'>
  readonly #memory: MemoryShare
  /** The last message that waits; null if none does. */
  #waiting: Promise<void> | null = null
  #waitingCount = 0
  #socket: Socket | null = null
  #isClosed = false

  constructor(
    session: SocketSession,
    follower: Pick<Follower, 'isCurrent' | 'current'>,
    memory: MemoryShare,
  ) {
    this.#session = session
    this.#follower = follower
    this.#memory = memory
  }

  opened(socket: Socket): void {
    this.#socket = socket
    this.#session.opened(socket)
  }

  message(text: string | null): void {
    if (this.#waiting === null && this.#follower.isCurrent) {
      this.#session.message(text)
      return
    }
    const hasRoom = this.#waitingCount < WAITING_MESSAGES_MAX
    const memory = hasRoom ? this.#memory.reserve(text === null ? 0 : textBytes(text)) : null
    if (memory === null) {
      this.#socket?.cut()
      return
    }
    this.#waitingCount += 1
    const before = this.#waiting ?? Promise.resolve()
    const waiting = before
      .then(() => this.#follower.current())
      .then(() => {
        memory.release()
        this.#waitingCount -= 1
        if (this.#waiting === waiting) this.#waiting = null
        if (!this.#isClosed) this.#session.message(text)
      })
    this.#waiting = waiting
  }

  heard(): void {
    this.#session.heard()
  }

  drained(): void {
    this.#session.drained()
  }

  closed(code: number): void {
    this.#isClosed = true
    this.#session.closed(code)
  }
}
