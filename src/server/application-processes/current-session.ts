/** The messages of one Realtime connection, each passed on once the process has followed. */
import { IncomingMessages } from '../../http/application/realtime/incoming-messages.ts'
import type { Socket, SocketSession } from '../../http/application/sockets.ts'
import type { MemoryShare } from '../../system/memory/memory-budget.ts'
import type { Follower } from './follower.ts'

/**
 * Passes messages on in their order, each once the process is current. Messages that wait have the
 * bounds of those that the session itself lets wait; a connection beyond them is cut.
 */
export class CurrentSession implements SocketSession {
  readonly #session: SocketSession
  readonly #follower: Pick<Follower, 'isCurrent' | 'current'>
  readonly #waiting: IncomingMessages
  #socket: Socket | null = null
  #isClosed = false

  constructor(
    session: SocketSession,
    follower: Pick<Follower, 'isCurrent' | 'current'>,
    memory: MemoryShare,
  ) {
    this.#session = session
    this.#follower = follower
    this.#waiting = new IncomingMessages(memory, async (text) => {
      await follower.current()
      if (!this.#isClosed) session.message(text)
    })
  }

  opened(socket: Socket): void {
    this.#socket = socket
    this.#session.opened(socket)
  }

  message(text: string | null): void {
    if (this.#waiting.isIdle && this.#follower.isCurrent) this.#session.message(text)
    else if (this.#waiting.add(text) !== null) this.#socket?.cut()
  }

  heard(): void {
    this.#session.heard()
  }

  drained(): void {
    this.#session.drained()
  }

  closed(code: number): void {
    this.#isClosed = true
    this.#waiting.clear()
    this.#session.closed(code)
  }
}
