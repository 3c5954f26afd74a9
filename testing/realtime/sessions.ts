/** Realtime connections without a network, so that a test decides when the peer reads. */
import { vi } from 'vitest'
import type { Socket, SocketSession } from '../../src/http/application/sockets.ts'
import { type RealtimeVersion, realtimeProtocol } from '../../src/wire/realtime.ts'
import type { TestGateway } from '../gateways.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into messages of many shapes.
type Loose = any

export interface RealtimeSession {
  readonly messages: Loose[]
  /** True while the peer reads. Otherwise the socket accepts one more message. */
  isReading: boolean
  readonly pings: number
  readonly closed: { readonly code: number; readonly reason: string } | null
  readonly wasCut: boolean
  /** Sends a message of the client; a text is sent unchanged. */
  send(message: object | string): void
  /** A control frame of the client arrives. */
  heard(): void
  /** The peer reads again. */
  read(): void
  /** Returns the messages of this type. */
  of(type: string): Loose[]
  /** Waits for as many messages of this type, and returns the last of them. */
  next(type: string, count?: number): Promise<Loose>
  /** Waits for the close frame and returns its code. */
  closeCode(): Promise<number>
  /** The connection ends on the side of the peer. */
  drop(): void
}

const HEADERS = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  host: 'localhost',
}

/** Opens a connection from the peer. Throws the error code if the upgrade is rejected. */
export async function openRealtimeSession(
  { application }: Pick<TestGateway, 'application'>,
  peer = '192.0.2.1',
  version: RealtimeVersion = 1,
): Promise<RealtimeSession> {
  const opened = Promise.withResolvers<SocketSession>()
  const headers = new Headers({ ...HEADERS, 'sec-websocket-protocol': realtimeProtocol(version) })
  const request = new Request('http://localhost/v1/realtime')
  const upgrade = ({ session }: { readonly session: SocketSession }): boolean => {
    opened.resolve(session)
    return true
  }
  const response = await application.fetch(upgradeRequest(request, headers), { peer, upgrade })
  if (response.status !== 101) throw new Error(((await response.json()) as Loose).error.code)
  return sessionOf(await opened.promise, version)
}

/** A Request of this runtime drops the header Connection, so the headers are given as they are. */
function upgradeRequest(request: Request, headers: Headers): Request {
  return Object.defineProperty(request, 'headers', { value: headers })
}

const WAIT = { timeout: 60_000, interval: 1 }

function sessionOf(session: SocketSession, version: RealtimeVersion): RealtimeSession {
  const messages: Loose[] = []
  let [pings, wasCut, isReading] = [0, false, true]
  let closed: RealtimeSession['closed'] = null
  const socket: Socket = {
    send(text) {
      messages.push(JSON.parse(text))
      return isReading
    },
    ping: () => {
      pings += 1
    },
    close: (code, reason) => {
      closed ??= { code, reason }
    },
    cut: () => {
      wasCut = true
    },
  }
  session.opened(socket)
  const of = (type: string) => messages.filter((message) => message.type === type)
  return {
    messages,
    of,
    get isReading() {
      return isReading
    },
    set isReading(value) {
      isReading = value
    },
    get pings() {
      return pings
    },
    get closed() {
      return closed
    },
    get wasCut() {
      return wasCut
    },
    send(message) {
      const isText = typeof message === 'string'
      session.message(isText ? message : JSON.stringify({ version, ...message }))
    },
    heard: () => session.heard(),
    read() {
      isReading = true
      session.drained()
    },
    next: (type, count = 1) =>
      vi.waitFor(() => {
        const found = of(type)
        if (found.length >= count) return found[count - 1]
        throw new Error(`no ${type} ${count} in ${JSON.stringify(messages).slice(0, 2_000)}`)
      }, WAIT),
    closeCode: () =>
      vi.waitFor(() => {
        if (closed !== null) return closed.code
        throw new Error('the connection is open')
      }, WAIT),
    drop: () => session.closed(1006),
  }
}
