/** The Realtime route of an application origin, as a test plays it. */
import { realtimeProtocol } from '../../src/wire/realtime.ts'

// biome-ignore lint/suspicious/noExplicitAny: messages of many shapes.
type Loose = any

/** The newest version of the protocol, which a server of today selects. */
const VERSION = 2

/** Responds to one message of the client. */
export type Play = (message: Loose, peer: Peer) => void

export interface Peer {
  send(message: object): void
  /** Closes the connection after the messages that were sent. */
  close(): void
}

export interface FakeRealtime {
  readonly origin: string
  /** All messages of clients. */
  readonly messages: Loose[]
  stop(): void
}

/** Serves the route; if `play` is null it responds 404, as a server without Realtime does. */
export function startFakeRealtime(play: Play | null): FakeRealtime {
  const messages: Loose[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request, self) {
      const headers = { 'sec-websocket-protocol': realtimeProtocol(VERSION) }
      if (play !== null && self.upgrade(request, { headers })) return
      return new Response(null, { status: 404 })
    },
    websocket: {
      message(socket, text) {
        const message = JSON.parse(String(text))
        messages.push(message)
        play?.(message, {
          send: (answer) => void socket.send(JSON.stringify({ version: VERSION, ...answer })),
          close: () => socket.close(1001),
        })
      },
    },
  })
  return {
    origin: `http://127.0.0.1:${server.port}`,
    messages,
    stop: () => void server.stop(true),
  }
}
