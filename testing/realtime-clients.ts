/** A Realtime client that records every message, over a real WebSocket. */
import { vi } from 'vitest'
import { type RealtimeVersion, realtimeProtocol } from '../src/wire/realtime.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into messages of many shapes.
type Loose = any

export interface RealtimeClient {
  readonly socket: WebSocket
  readonly messages: Loose[]
  /** The code of the close frame; null while the connection is open. */
  readonly closeCode: number | null
  send(message: object): void
  /** Waits for the next message of this type that was not awaited before. */
  next(type: string): Promise<Loose>
  closed(): Promise<number>
  close(): void
}

export async function openRealtimeClient(
  origin: string,
  headers: Readonly<Record<string, string>> = {},
  version: RealtimeVersion = 1,
): Promise<RealtimeClient> {
  const url = `${origin.replace(/^http/, 'ws')}/v1/realtime`
  const options = { protocols: [realtimeProtocol(version)], headers }
  // The declared type is that of browsers, which send no headers.
  const socket = new WebSocket(url, options as never)
  const messages: Loose[] = []
  const awaited = new Set<Loose>()
  let closeCode: number | null = null
  socket.onmessage = ({ data }) => messages.push(JSON.parse(data as string))
  socket.onclose = ({ code }) => {
    closeCode = code
  }
  await new Promise<void>((resolve, reject) => {
    socket.onopen = () => resolve()
    socket.onerror = () => reject(new Error('the connection was not upgraded'))
  })
  const client: RealtimeClient = {
    socket,
    messages,
    get closeCode() {
      return closeCode
    },
    send: (message) => socket.send(JSON.stringify({ version, ...message })),
    async next(type) {
      const find = () => messages.find((each) => each.type === type && !awaited.has(each))
      const found = await vi.waitFor(
        () => {
          const message = find()
          if (message === undefined) {
            throw new Error(`no ${type} in ${JSON.stringify(messages).slice(0, 2_000)}`)
          }
          return message
        },
        { timeout: 60_000, interval: 5 },
      )
      awaited.add(found)
      return found
    },
    async closed() {
      await vi.waitFor(
        () => {
          if (closeCode === null) throw new Error('the connection is open')
        },
        { timeout: 60_000, interval: 5 },
      )
      return closeCode!
    },
    close: () => socket.close(),
  }
  return client
}
