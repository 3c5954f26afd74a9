/**
 * A TCP proxy before PostgreSQL that cuts a connection at a chosen statement, or at a chosen
 * message of the protocol.
 */
import { connect, createServer, type Socket } from 'node:net'

/** Where a connection is cut at a message. */
export type CutPoint =
  /** The message does not reach the server. */
  | 'before'
  /** It reaches the server, whose answer, if the message asks for one, does not come back. */
  | 'after'
  /** The answer comes back but for its last byte. */
  | 'within-answer'

export interface PostgresProxy {
  /** The database's URL, through the proxy. */
  readonly url: string
  /**
   * Cuts the connection on which the next matching statement is sent: `before` it reaches the
   * server, or `after` it did, with the answer withheld.
   */
  cut(statement: RegExp, when: 'before' | 'after'): void
  /** Cuts at the message with this number, from 1, of those that clients send from now on. */
  cutAtMessage(number: number, point: CutPoint): void
  /** Answers what ends it and tells the types of the messages since, such as `P`, `B`, `Q`. */
  record(): () => readonly string[]
  /** Cuts every connection, whatever is on its way, and each new one until it is told otherwise. */
  refuse(refused: boolean): void
  /** How many statements were cut. */
  readonly cuts: number
  close(): Promise<void>
}

interface Rules {
  statement: { readonly pattern: RegExp; readonly when: 'before' | 'after' } | null
  message: { readonly number: number; readonly point: CutPoint } | null
  refused: boolean
  /** Types of the messages that were seen. */
  seen: string[]
  cuts: number
}

/** Messages that the server answers by themselves: Sync and Query. */
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

/** One connection, message by message on the client's side. */
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
    // A message without an answer takes no effect either; it is only on its way.
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
      // Neither the start of a connection nor its orderly end is part of what is done on it.
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
    // The answer shows that the statement has taken effect; the client never sees all of it.
    if (onAnswer === 'truncate') client.write(bytes.subarray(0, -1), () => client.destroy())
    else client.destroy()
  })
}

/** Cuts what a client sends into messages; type '' is the startup message, which has none. */
function messageSplitter(): (bytes: Buffer) => { type: string; whole: Buffer }[] {
  let rest: Buffer = Buffer.alloc(0)
  let started = false
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
