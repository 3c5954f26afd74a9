/**
 * A connection pooler for PostgreSQL, as pgbouncer is one: clients log in on a session of their
 * own, and in transaction mode each transaction then runs on any session that is free.
 */
import { connect, createServer, type Socket } from 'node:net'
import { messageSplitter } from './postgres-proxy.ts'

export interface PoolerOptions {
  readonly mode: 'session' | 'transaction'
  /** Selects the free session of a transaction; default: the one that was returned last. */
  readonly order?: 'last' | 'in turn'
}

export interface PostgresPooler {
  /** URL of the database through the pooler. */
  readonly url: string
  close(): Promise<void>
}

interface Session {
  readonly socket: Socket
  /** The client whose transaction it runs; null while it is free. */
  client: Client | null
}

interface Client {
  readonly socket: Socket
  session: Session | null
  /** Messages that wait for a session. */
  waiting: Buffer[]
}

/** Value of the status in ReadyForQuery outside of a transaction. */
const IDLE = 'I'.charCodeAt(0)

export async function postgresPooler(url: string, options: PoolerOptions): Promise<PostgresPooler> {
  const target = new URL(url)
  const pool = new Pool(options)
  const server = createServer((socket) => {
    pool.admit(socket, connect(Number(target.port), target.hostname))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const through = new URL(url)
  through.port = String(typeof address === 'object' && address !== null ? address.port : 0)
  return {
    url: through.href,
    close: () =>
      new Promise<void>((resolve) => {
        pool.close()
        server.close(() => resolve())
      }),
  }
}

class Pool {
  readonly #options: PoolerOptions
  readonly #sockets = new Set<Socket>()
  readonly #free: Session[] = []
  readonly #queue: Client[] = []

  constructor(options: PoolerOptions) {
    this.#options = options
  }

  admit(socket: Socket, upstream: Socket): void {
    const client: Client = { socket, session: null, waiting: [] }
    const session: Session = { socket: upstream, client }
    client.session = session
    for (const each of [socket, upstream]) {
      this.#sockets.add(each)
      each.on('error', () => undefined)
      each.on('close', () => this.#sockets.delete(each))
    }
    const ofClient = messageSplitter()
    socket.on('data', (bytes: Buffer) => {
      for (const { type, whole } of ofClient(bytes)) {
        // Sessions outlive their clients.
        if (type !== 'X') this.#send(client, whole)
      }
    })
    const ofServer = messageSplitter('server')
    upstream.on('data', (bytes: Buffer) => {
      for (const { type, whole } of ofServer(bytes)) this.#receive(session, type, whole)
    })
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #send(client: Client, message: Buffer): void {
    client.session ??= this.#take(client)
    if (client.session !== null) client.session.socket.write(message)
    else if (client.waiting.push(message) === 1) this.#queue.push(client)
  }

  #receive(session: Session, type: string, message: Buffer): void {
    const { client } = session
    // BackendKeyData: a pooler invents the process ID, since it has no process for a client.
    if (type === 'K') message.writeInt32BE(-1, 5)
    client?.socket.write(message)
    const isIdle = type === 'Z' && message[5] === IDLE
    if (!isIdle || client === null || this.#options.mode === 'session') return
    client.session = null
    session.client = null
    this.#free.push(session)
    const next = this.#queue.shift()
    if (next === undefined) return
    for (const each of next.waiting.splice(0)) this.#send(next, each)
  }

  #take(client: Client): Session | null {
    const isInTurn = this.#options.order === 'in turn'
    const session = (isInTurn ? this.#free.shift() : this.#free.pop()) ?? null
    if (session !== null) session.client = client
    return session
  }
}
