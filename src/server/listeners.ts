/**
 * The two HTTP listeners. What the runtime would let through is rejected here: a second Host
 * header, one that is no host, and connections that say nothing for too long.
 */
import http from 'node:http'
import { Fault } from '../errors/fault.ts'
import type { ApplicationBinding } from '../http/application/incoming.ts'
import type { Socket, SocketSession, Upgrade } from '../http/application/realtime/sockets.ts'
import { errorResponse, type SurfaceCodes } from '../http/errors.ts'
import { formatListener, type Listener } from '../settings/addresses.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import { REALTIME_MESSAGE_BYTES_MAX } from '../wire/realtime.ts'
import { FORWARDED, peerAddress } from './peer-addresses.ts'

export type Surface = 'management' | 'application'

export interface ListenerApp {
  fetch(request: Request, binding: ApplicationBinding): Response | Promise<Response>
  /** Answers a request that the listener rejects; by default with the error alone. */
  reject?(binding: ApplicationBinding, fault: Fault): Response
  /** Whether `fetch` answers the HEAD request itself; never if absent. */
  answersHead?(request: Request): boolean
}

export interface ListenOptions {
  readonly surface: Surface
  readonly listen: Listener
  readonly app: ListenerApp
  readonly codes: SurfaceCodes
  readonly system: System
  readonly log: Logger
  /** Whether a trusted proxy ends TLS before it. */
  readonly tlsTerminated: boolean
}

export interface OpenListener {
  readonly surface: ListenOptions['surface']
  /** host:port, with the port that was really bound. */
  readonly address: string
  /** Requests that are not answered. */
  inFlight(): number
  /**
   * Closes each connection after the answer to its next request; resolves when no request is in
   * flight.
   */
  drain(): Promise<void>
  /** Stops listening and cuts every connection. */
  cut(): void
}

/**
 * Longer than proxies keep an idle connection, mostly 60 s, so that the proxy closes first.
 * @limit Requests: time that an idle connection stays open
 */
export const IDLE_SECONDS = 75
/**
 * A functional token of 16 KiB, and as much for all else; 16 KiB in all by default.
 * @limit Requests: the head of a request
 */
export const HEAD_BYTES_MAX = 32 * 1024
/** Pause between two looks at the number of requests in flight. */
const DRAIN_POLL_MILLIS = 5
/** Every route bounds its body itself, with an error of its own; the runtime's has no envelope. */
const BODY_BYTES_MAX = Number.MAX_SAFE_INTEGER

const HOST_VIOLATION = { path: 'host', rule: 'one host, with or without a port' }

/** Begins the URL of a request whose Host is none, empty or no host; any other begins with http. */
const SLASH = 0x2f

/** Throws SERVER_LISTEN_FAILED. */
export function openListener(options: ListenOptions): OpenListener {
  const { listen, app, codes, system, surface, tlsTerminated } = options
  let warnsOfProxy = !tlsTerminated
  let isDraining = false
  /** The Host of the last request, which most later requests have too. */
  let knownHost: string | null = null
  // Of the whole process: the runtime knows no bound of one server.
  Object.assign(http, { maxHeaderSize: HEAD_BYTES_MAX })
  const server = bind(surface, () =>
    Bun.serve<SocketSession>({
      hostname: listen.host,
      port: listen.port,
      idleTimeout: IDLE_SECONDS,
      maxRequestBodySize: BODY_BYTES_MAX,
      development: false,
      // Without `development` this runtime shares the port by default: two servers of one user
      // would each take a part of the connections.
      reusePort: false,
      websocket: SOCKETS,
      fetch: (request, server) => {
        const host = request.headers.get('host')
        const isNamed = request.url.charCodeAt(0) !== SLASH
        const binding = new Binding(request, server, tlsTerminated)
        if (host && host !== knownHost && !isHost(host, request.url)) {
          const fault = new Fault(codes.invalid, { violations: [HOST_VIOLATION] })
          if (app.reject !== undefined) return app.reject(binding, fault)
          return errorResponse(fault, system.ids.make('req'), codes)
        }
        knownHost = host
        if (warnsOfProxy && request.headers.has(FORWARDED)) {
          warnsOfProxy = false
          warnOfProxy(options)
        }
        const asked = isNamed ? request : named(request)
        const isHead = request.method === 'HEAD' && app.answersHead?.(asked) !== true
        const answer = isHead ? head(app, asked, binding) : app.fetch(asked, binding)
        return isDraining ? withoutReuse(answer) : answer
      },
      error: (error) =>
        errorResponse(new Fault(codes.internal, { cause: error }), system.ids.make('req'), codes),
    }),
  )
  return {
    surface,
    address: formatListener({ host: listen.host, port: server.port! }),
    inFlight: () => server.pendingRequests,
    drain: async () => {
      isDraining = true
      while (server.pendingRequests > 0) await Bun.sleep(DRAIN_POLL_MILLIS)
    },
    cut: () => void server.stop(true),
  }
}

/**
 * Whether the header names one host. Two Host headers arrive joined, and which of them a proxy
 * believed cannot be known. The runtime makes no absolute URL of some texts that are no host, and
 * one of others that cannot be parsed.
 */
function isHost(host: string, url: string): boolean {
  return !host.includes(',') && url.charCodeAt(0) !== SLASH && URL.canParse(url)
}

/** Logs that a proxy seems to stand before a listener whose settings know of none. */
function warnOfProxy({ log, surface }: ListenOptions): void {
  const setting = `SERVICE_${surface.toUpperCase()}_TLS_TERMINATED`
  const message = [
    `A request to the ${surface} listener carries X-Forwarded-For, which is not trusted there, so`,
    `all clients of a proxy share one rate limit. If a proxy that ends TLS stands before the`,
    `listener, set ${setting}=true and restart the server.`,
  ].join(' ')
  log.warn('server.forwarded_untrusted', { message, surface, setting })
}

/** HTTP/1.0 needs no Host, and any version may leave it empty (RFC 9112, 3.2): routes need one. */
function named(request: Request): Request {
  return new Request(`http://localhost${request.url}`, request)
}

/** An answer after which the connection is closed: the next request belongs elsewhere. */
async function withoutReuse(answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer
  response.headers.set('connection', 'close')
  return response
}

/** Answers as to a GET, without the body: the headers include its length (RFC 9110, 9.3.2). */
async function head(
  app: ListenOptions['app'],
  request: Request,
  binding: ApplicationBinding,
): Promise<Response> {
  const response = await app.fetch(new Request(request, { method: 'GET' }), binding)
  const { status, headers } = response
  const body = await response.bytes()
  if (response.body !== null) headers.set('content-length', String(body.length))
  return new Response(null, { status, headers })
}

/** Few application calls ask it anything, and to look up the peer alone would cost each 2 us. */
class Binding implements ApplicationBinding {
  readonly #request: Request
  readonly #server: Bun.Server<SocketSession>
  readonly #tlsTerminated: boolean

  constructor(request: Request, server: Bun.Server<SocketSession>, tlsTerminated: boolean) {
    this.#request = request
    this.#server = server
    this.#tlsTerminated = tlsTerminated
  }

  get peer(): string {
    const socket = this.#server.requestIP(this.#request)?.address
    return peerAddress(this.#request.headers, socket, this.#tlsTerminated)
  }

  takeTime(): void {
    this.#server.timeout(this.#request, 0)
  }

  returnTime(): void {
    this.#server.timeout(this.#request, IDLE_SECONDS)
  }

  setTime(seconds: number): void {
    this.#server.timeout(this.#request, seconds)
  }

  isAnswered(): boolean {
    // The runtime knows the peer of a request as long as it has not answered it.
    return this.#server.requestIP(this.#request) === null
  }

  upgrade({ headers, session }: Upgrade): boolean {
    return this.#server.upgrade(this.#request, { headers: { ...headers }, data: session })
  }
}

/**
 * WebSockets of the runtime. It closes with 1002, 1007 and 1009 by itself where a peer violates the
 * framing or sends too much; the protocol sends its own pings, so the runtime sends none.
 */
const SOCKETS: Bun.WebSocketHandler<SocketSession> = {
  maxPayloadLength: REALTIME_MESSAGE_BYTES_MAX,
  perMessageDeflate: false,
  sendPings: false,
  idleTimeout: 0,
  open: (socket) => socket.data.opened(socketOf(socket)),
  message: (socket, message) => socket.data.message(typeof message === 'string' ? message : null),
  ping: (socket) => socket.data.heard(),
  pong: (socket) => socket.data.heard(),
  drain: (socket) => socket.data.drained(),
  close: (socket, code) => socket.data.closed(code),
}

function socketOf(socket: Bun.ServerWebSocket<SocketSession>): Socket {
  return {
    // -1 for a message that is in the buffer of the socket, from which the peer does not read.
    send: (text) => socket.send(text) >= 0,
    ping: () => void socket.ping(),
    close: (code, reason) => socket.close(code, reason),
    cut: () => socket.terminate(),
  }
}

function bind<T>(surface: string, open: () => T): T {
  try {
    return open()
  } catch (error) {
    const detail = `${surface}: ${error instanceof Error ? error.message : String(error)}`
    throw new Fault('SERVER_LISTEN_FAILED', { cause: error, detail })
  }
}
