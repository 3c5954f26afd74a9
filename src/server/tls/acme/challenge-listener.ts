/**
 * The listener that the authority reaches at port 80: it answers known challenges (HTTP-01), and
 * redirects the domains of the certificate to HTTPS. A connection gets one response. Everything is
 * bounded, since any client can connect: connections, those of one peer, the head of a request, the
 * time of a connection, and the rate of responses other than challenges.
 */
import { Fault } from '../../../errors/fault.ts'
import { formatListener, type Listener } from '../../../settings/addresses.ts'
import type { System } from '../../../system/system.ts'
import type { Logger } from '../../../telemetry/log.ts'
import { answerHead } from './challenge-head.ts'

/** @limit TLS: open connections of the listener of ACME challenges; the oldest one gives way */
export const CHALLENGE_CONNECTIONS_MAX = 256
/** @limit TLS: open connections of one address at the listener of ACME challenges */
export const CHALLENGE_CONNECTIONS_PER_PEER_MAX = 16
/** @limit TLS: head of a request at the listener of ACME challenges */
export const CHALLENGE_HEAD_BYTES_MAX = 8 * 1024
/** @limit TLS: time of a connection at the listener of ACME challenges */
export const CHALLENGE_CONNECTION_MILLIS_MAX = 5_000
/** @limit TLS: redirects and rejections in a second at the listener of ACME challenges */
export const CHALLENGE_REJECTIONS_PER_SECOND_MAX = 100
/** Tokens of one order are at most one for each domain. */
const TOKENS_MAX = 64
const RECORD_MILLIS = 60_000

/** The answers that an order publishes while it runs. */
export interface Challenges {
  publish(token: string, keyAuthorization: string): void
  withdraw(token: string): void
}

export interface ChallengeListenerOptions {
  readonly listen: Listener
  readonly domains: readonly string[]
  /** The time of a connection; the limit by default. */
  readonly connectionMillis?: number
  readonly system: Pick<System, 'monotonicMillis'>
  readonly log: Logger
}

interface Connection {
  readonly peer: string
  /** The received part of the head, in Latin-1. */
  received: string
  /** The part of the response that is still to be sent; null before the response. */
  unsent: Uint8Array | null
  timer: ReturnType<typeof setTimeout> | null
}

type Socket = Bun.Socket<Connection>

export class ChallengeListener implements Challenges {
  readonly #options: ChallengeListenerOptions
  readonly #server: Bun.TCPSocketListener<Connection>
  readonly #tokens = new Map<string, string>()
  /** The open connections, oldest first. */
  readonly #open = new Set<Socket>()
  readonly #peers = new Map<string, number>()
  /** The second that is counted, and its responses. */
  #second = -1
  #responses = 0
  #rejected = 0
  #recordTimer: ReturnType<typeof setTimeout> | null = null

  /** Opens the address. Throws SERVER_LISTEN_FAILED. */
  constructor(options: ChallengeListenerOptions) {
    this.#options = options
    const { host, port } = options.listen
    try {
      this.#server = Bun.listen<Connection>({
        hostname: host,
        port,
        exclusive: true,
        socket: {
          open: (socket) => this.#opened(socket),
          data: (socket, bytes) => this.#received(socket, bytes),
          drain: (socket) => this.#send(socket),
          close: (socket) => this.#closed(socket),
          error: (socket) => void socket.terminate(),
        },
      })
    } catch (cause) {
      const detail = `SERVICE_TLS_ACME_HTTP_LISTEN: ${formatListener(options.listen)}`
      throw new Fault('SERVER_LISTEN_FAILED', { detail, cause })
    }
  }

  /** `host:port`, with the bound port. */
  get address(): string {
    return formatListener({ host: this.#options.listen.host, port: this.#server.port })
  }

  get connections(): number {
    return this.#open.size
  }

  publish(token: string, keyAuthorization: string): void {
    this.#tokens.set(token, keyAuthorization)
    const [first] = this.#tokens.keys()
    if (this.#tokens.size > TOKENS_MAX) this.#tokens.delete(first!)
  }

  withdraw(token: string): void {
    this.#tokens.delete(token)
  }

  stop(): void {
    this.#server.stop(true)
    for (const socket of this.#open) socket.terminate()
    if (this.#recordTimer !== null) clearTimeout(this.#recordTimer)
    this.#report()
  }

  #opened(socket: Socket): void {
    const peer = socket.remoteAddress
    socket.data = { peer, received: '', unsent: null, timer: null }
    const ofPeer = this.#peers.get(peer) ?? 0
    this.#peers.set(peer, ofPeer + 1)
    this.#open.add(socket)
    if (ofPeer >= CHALLENGE_CONNECTIONS_PER_PEER_MAX) {
      this.#cut(socket)
      return
    }
    if (this.#open.size > CHALLENGE_CONNECTIONS_MAX) {
      const [oldest] = this.#open
      this.#cut(oldest!)
    }
    const { connectionMillis = CHALLENGE_CONNECTION_MILLIS_MAX } = this.#options
    socket.data.timer = setTimeout(() => this.#cut(socket), connectionMillis)
  }

  #closed(socket: Socket): void {
    if (!this.#open.delete(socket)) return
    const { peer, timer } = socket.data
    if (timer !== null) clearTimeout(timer)
    const others = (this.#peers.get(peer) ?? 1) - 1
    if (others === 0) this.#peers.delete(peer)
    else this.#peers.set(peer, others)
  }

  #received(socket: Socket, bytes: Uint8Array): void {
    const { data } = socket
    // Bytes after the head have no meaning, since the connection ends with the response.
    if (data.unsent !== null) return
    const room = CHALLENGE_HEAD_BYTES_MAX - data.received.length
    data.received += Buffer.from(bytes.subarray(0, room)).toString('latin1')
    const end = data.received.indexOf('\r\n\r\n')
    if (end === -1) {
      if (bytes.length >= room) this.#cut(socket)
      return
    }
    const { response, kind } = answerHead(data.received.slice(0, end), {
      find: (token) => this.#tokens.get(token),
      domains: this.#options.domains,
    })
    // An authority must get its answer however many others ask.
    if (kind !== 'challenge' && !this.#hasRoom()) {
      this.#cut(socket)
      return
    }
    if (kind === 'rejected') this.#count()
    data.received = ''
    data.unsent = Buffer.from(response, 'latin1')
    this.#send(socket)
  }

  #send(socket: Socket): void {
    const { data } = socket
    if (data.unsent === null) return
    const sent = Math.max(0, socket.write(data.unsent))
    data.unsent = data.unsent.subarray(sent)
    if (data.unsent.length === 0) socket.end()
  }

  #hasRoom(): boolean {
    const second = Math.floor(this.#options.system.monotonicMillis() / 1_000)
    if (second !== this.#second) this.#responses = 0
    this.#second = second
    this.#responses += 1
    return this.#responses <= CHALLENGE_REJECTIONS_PER_SECOND_MAX
  }

  #cut(socket: Socket): void {
    this.#count()
    socket.terminate()
    this.#closed(socket)
  }

  /** Counts a rejection; one record a minute has their number. */
  #count(): void {
    this.#rejected += 1
    if (this.#recordTimer !== null) return
    this.#recordTimer = setTimeout(() => {
      this.#recordTimer = null
      this.#report()
    }, RECORD_MILLIS)
    this.#recordTimer.unref()
  }

  #report(): void {
    if (this.#rejected === 0) return
    const rejected = this.#rejected
    this.#rejected = 0
    const message = `The listener of ACME challenges rejected ${rejected} requests or connections.`
    this.#options.log.info('server.challenges_rejected', { message, rejected })
  }
}
