/**
 * A TCP proxy for PostgreSQL that cuts a connection at a chosen statement or at a chosen message of
 * the protocol.
 */
import { connect, createServer, type Socket } from 'node:net'

/** The point of a message at which a connection is cut. */
export type CutPoint =
  /** The message does not reach the server. */
  | 'before'
  /** The message reaches the server. Its response, if there is one, is withheld. */
  | 'after'
  /** The response is returned without its last byte. */
  | 'within-answer'

export interface PostgresProxy {
  /** URL of the database through the proxy. */
  readonly url: string
  /**
   * Cuts the connection of the next matching statement: `before` it reaches the server, or `after`
   * it did, with the response withheld.
   */
  cut(statement: RegExp, when: 'before' | 'after'): void
  /** Cuts at the message with this number, counted from 1 over the next messages of clients. */
  cutAtMessage(number: number, point: CutPoint): void
  /** Starts a recording. Returns a function that ends it and returns message types such as `P`. */
  record(): () => readonly string[]
  /** Cuts every connection and, until it is called with false, each new one. */
  refuse(refused: boolean): void
  /** Number of statements that were cut. */
  readonly cuts: number
  close(): Promise<void>
}

interface Rules {
  statement: { readonly pattern: RegExp; readonly when: 'before' | 'after' } | null
  message: { readonly number: number; readonly point: CutPoint } | null
  refused: boolean
  /** Types of the recorded messages. */
  seen: string[]
  cuts: number
}

/** Messages that have a response: Sync and Query. */
const ANSWERED = ['S', 'Q']

export async function postgresProxy(url: string): Promise<PostgresProxy> {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  const rules: Rules = { statement: null, message: null, refused: false, seen: [], cuts: 0 }
  const server = createServer((client) => {
    if (rules.refused) {
      client.destroy()
      return
    }
    const upstream = connect(Number(target.port), target.hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    relay(client, upstream, rules)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const through = new URL(url)
  through.port = String(typeof address === 'object' && address !== null ? address.port : 0)
  return {
    url: through.href,
    cut: (pattern, when) => {
      rules.statement = { pattern, when }
    },
    cutAtMessage: (number, point) => {
      rules.message = { number, point }
      rules.seen = []
    },
    record: () => {
      rules.message = null
      const seen: string[] = []
      rules.seen = seen
      return () => {
        rules.seen = []
        return seen
      }
    },
    refuse: (refused) => {
      rules.refused = refused
      if (refused) for (const socket of sockets) socket.destroy()
    },
    get cuts() {
      return rules.cuts
    },
    close: () =>
      new Promise<void>((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
}

/** Relays one connection, message by message on the side of the client. */
function relay(client: Socket, upstream: Socket, rules: Rules): void {
  let onAnswer: 'pass' | 'withhold' | 'truncate' = 'pass'
  const split = messageSplitter()
  const cut = (point: CutPoint, message: Buffer, answered: boolean): void => {
    rules.cuts++
    if (point === 'before') {
      client.destroy()
      return
    }
    upstream.write(message)
    // A message without a response has no effect yet.
    if (!answered) client.destroy()
    else onAnswer = point === 'after' ? 'withhold' : 'truncate'
  }
  client.on('data', (bytes: Buffer) => {
    if (rules.statement?.pattern.test(bytes.toString('latin1'))) {
      const { when } = rules.statement
      rules.statement = null
      cut(when, bytes, true)
      return
    }
    for (const { type, whole } of split(bytes)) {
      if (client.destroyed || onAnswer !== 'pass') return
      // Startup and orderly termination of a connection are not counted.
      const counted = !['', 'X'].includes(type)
      if (counted) rules.seen.push(type)
      if (counted && rules.message?.number === rules.seen.length) {
        const { point } = rules.message
        rules.message = null
        cut(point, whole, ANSWERED.includes(type))
        return
      }
      upstream.write(whole)
    }
  })
  upstream.on('data', (bytes: Buffer) => {
    if (onAnswer === 'pass') {
      client.write(bytes)
      return
    }
    // The response proves that the statement took effect; the client does not receive all of it.
    if (onAnswer === 'truncate') client.write(bytes.subarray(0, -1), () => client.destroy())
    else client.destroy()
  })
}

/**
 * Splits the bytes of one side into messages. The startup message of a client, which has no type,
 * is ''.
 */
export function messageSplitter(
  side: 'client' | 'server' = 'client',
): (bytes: Buffer) => { type: string; whole: Buffer }[] {
  let rest: Buffer = Buffer.alloc(0)
  let started = side === 'server'
  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    const messages: { type: string; whole: Buffer }[] = []
    for (;;) {
      const typeBytes = started ? 1 : 0
      if (rest.length < typeBytes + 4) return messages
      const length = typeBytes + rest.readUInt32BE(typeBytes)
      if (rest.length < length) return messages
      const type = started ? String.fromCharCode(rest[0]!) : ''
      messages.push({ type, whole: rest.subarray(0, length) })
      rest = rest.subarray(length)
      started = true
    }
  }
}
