/**
 * The application origin of an application process: a request and a Realtime message are answered
 * once the process has followed as far as the main process has answered.
 */
import type { ApplicationBinding } from '../../http/application/incoming.ts'
import type { ApplicationOrigin } from '../../http/application/mount.ts'
import type { Socket, SocketSession } from '../../http/application/sockets.ts'
import type { ListenerApp } from '../listeners.ts'
import type { Follower } from './follower.ts'
import { forward, isForwarded } from './forwarded-requests.ts'
import type { StartMessage } from './messages.ts'

export function currentApp(
  origin: ApplicationOrigin,
  follower: Follower,
  { originPath, s3Host }: StartMessage,
): ListenerApp {
  const answer = (request: Request, binding: ApplicationBinding) => {
    if (isForwarded(request.url, s3Host)) return forward(request, binding, originPath)
    const isUpgrade = request.headers.has('upgrade')
    return origin.fetch(request, isUpgrade ? currentSockets(binding, follower) : binding)
  }
  return {
    fetch: (request, binding) =>
      follower.isCurrent
        ? answer(request, binding)
        : follower.current().then(() => answer(request, binding)),
    reject: (binding, fault) => origin.reject(binding, fault),
    // The main process answers a HEAD request that is forwarded.
    answersHead: (request) => origin.answersHead(request),
  }
}

function currentSockets(binding: ApplicationBinding, follower: Follower): ApplicationBinding {
  return {
    get peer() {
      return binding.peer ?? 'unknown'
    },
    takeTime: () => binding.takeTime(),
    returnTime: () => binding.returnTime(),
    setTime: (seconds) => binding.setTime(seconds),
    setRate: (bytesPerSecond) => binding.setRate(bytesPerSecond),
    isAnswered: () => binding.isAnswered(),
    upgrade: ({ headers, session }) =>
      binding.upgrade({ headers, session: new CurrentSession(session, follower) }),
  }
}

/**
 * Messages of one connection that wait, of 64 KiB at most each. A wait lasts as long as a message
 * from the main process, so that only a peer that floods has more.
 */
const WAITING_MESSAGES_MAX = 16

/** Passes messages on in their order, each once the process is current. */
class CurrentSession implements SocketSession {
  readonly #session: SocketSession
  readonly #follower: Follower
  /** The last message that waits; null if none does. */
  #waiting: Promise<void> | null = null
  #waitingCount = 0
  #socket: Socket | null = null

  constructor(session: SocketSession, follower: Follower) {
    this.#session = session
    this.#follower = follower
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
    if (this.#waitingCount >= WAITING_MESSAGES_MAX) {
      this.#socket?.cut()
      return
    }
    this.#waitingCount += 1
    const before = this.#waiting ?? Promise.resolve()
    const waiting = before
      .then(() => this.#follower.current())
      .then(() => {
        this.#waitingCount -= 1
        if (this.#waiting === waiting) this.#waiting = null
        this.#session.message(text)
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
    this.#session.closed(code)
  }
}
