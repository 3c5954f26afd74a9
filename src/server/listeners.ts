/**
 * The two HTTP listeners. They reject what the runtime accepts: a second Host header, an invalid
 * Host, and connections that stay idle for too long.
 */
import http, { STATUS_CODES } from 'node:http'
import { Fault } from '../errors/fault.ts'
import type { ApplicationBinding } from '../http/application/incoming.ts'
import type { Socket, SocketSession, Upgrade } from '../http/application/sockets.ts'
import { errorResponse, type SurfaceCodes } from '../http/errors.ts'
import { DOWNLOAD_IDLE_SECONDS } from '../http/transfers/downloads.ts'
import { TAKES_NAMED_BYTES } from '../http/transfers/named-bytes.ts'
import { sizedStreamOf } from '../http/transfers/sized-streams.ts'
import { formatListener, type Listener } from '../settings/addresses.ts'
import type { CertificatePair } from '../settings/tls.ts'
import { ConnectionStreams } from '../system/connections/connection-streams.ts'
import { type RemoteEnd, SendingRates } from '../system/sending-rates.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import { REALTIME_MESSAGE_BYTES_MAX } from '../wire/realtime.ts'
import { FORWARDED, peerAddress } from './peer-addresses.ts'

export type Surface = 'management' | 'application'

export interface ListenerApp {
  fetch(request: Request, binding: ApplicationBinding): Response | Promise<Response>
  /** Makes the response to a request that the listener rejects. Default: the error alone. */
  reject?(binding: ApplicationBinding, fault: Fault): Response
  /** Returns whether `fetch` answers the HEAD request itself. Default: never. */
  answersHead?(request: Request): boolean
}

export interface ListenOptions {
  readonly surface: Surface
  /** An address, or the path of a Unix socket that processes of this server use. */
  readonly listen: Listener | { readonly socketPath: string }
  /** True if other processes of this server listen on the address too; absent for false. */
  readonly sharesPort?: boolean
  readonly app: ListenerApp
  readonly codes: SurfaceCodes
  readonly system: System
  readonly log: Logger
  /** True if a trusted proxy before the listener terminates TLS. */
  readonly tlsTerminated: boolean
  /** The certificate of a listener that ends TLS, which needs `sharesPort`; absent for another. */
  readonly certificate?: CertificatePair | undefined
  /**
   * Returns the rule that a valid Host of a request to this port breaks, or null. It is called
   * before anything else of the request is read. Absent if every valid Host is accepted.
   */
  readonly hostRule?: (host: string, port: number) => string | null
}

export interface OpenListener {
  readonly surface: ListenOptions['surface']
  /** `host:port`, with the bound port. */
  readonly address: string
  /** Returns the number of requests without a response. */
  inFlight(): number
  /**
   * Closes each connection after the answer to its next request; resolves when no request is in
   * flight.
   */
  drain(): Promise<void>
  /**
   * Uses another certificate for the connections from now on; those that are open stay. Does
   * nothing if the listener does not end TLS or has stopped. Throws SERVER_LISTEN_FAILED.
   */
  useCertificate(pair: CertificatePair): void
  /** Accepts no further connection. */
  stopListening(): void
  /** Stops listening and cuts every connection. */
  cut(): void
}

/**
 * Idle timeout of a connection. Longer than that of proxies, mostly 60 s, so that the proxy closes
 * first: otherwise its next request could meet a connection that the server has just closed.
 * @limit Requests: time that an idle connection stays open
 */
export const IDLE_SECONDS = 75
/**
 * Size of a request head: a functional token of 16 KiB, and as much for the other headers. The
 * runtime's default of 16 KiB would reject the largest token.
 * @limit Requests: the head of a request
 */
export const HEAD_BYTES_MAX = 32 * 1024
/** Interval at which `drain` reads the number of requests in flight. */
const DRAIN_POLL_MILLIS = 5
/** No bound here: each route bounds its body, since the runtime's error has no envelope. */
const BODY_BYTES_MAX = Number.MAX_SAFE_INTEGER

const HOST_RULE = 'one host, with or without a port'

/**
 * First character of `request.url` if the Host header is missing, empty or invalid; otherwise the
 * URL is absolute.
 */
const SLASH = 0x2f

type Server = Bun.Server<SocketSession>

/** Opens the address. Throws SERVER_LISTEN_FAILED. */
export function openListener(options: ListenOptions): OpenListener {
  const { listen, surface } = options
  const state = { isDraining: false }
  const handlers = handlersOf(options, state)
  const open = (at: BoundAddress, pair: CertificatePair | undefined): Server =>
    bind(surface, () => Bun.serve({ ...handlers, ...at, ...(pair && { tls: tlsOf(pair) }) }))
  let current = open(addressOf(listen, options.sharesPort), options.certificate)
  let certificate = options.certificate
  const port = current.port!
  /** Servers with an earlier certificate, until their last connection ends. */
  const earlier = new Set<Server>()
  let isListening = true
  const servers = (): Server[] => [current, ...earlier]
  const inFlight = (): number => servers().reduce((sum, each) => sum + each.pendingRequests, 0)
  return {
    surface,
    address: 'host' in listen ? formatListener({ host: listen.host, port }) : 'a Unix socket',
    inFlight,
    drain: async () => {
      state.isDraining = true
      while (inFlight() > 0) await Bun.sleep(DRAIN_POLL_MILLIS)
    },
    // The runtime cannot change the certificate of a server, so another one takes its port.
    useCertificate: (pair) => {
      if (!isListening || certificate === undefined || !('host' in listen)) return
      // Another listener may have failed to use it, so that it is given again.
      if (pair === certificate) return
      const before = current
      current = open(addressOf({ ...listen, port }, true), pair)
      certificate = pair
      earlier.add(before)
      void before.stop(false).finally(() => earlier.delete(before))
    },
    stopListening: () => {
      isListening = false
      void current.stop(false)
    },
    cut: () => {
      isListening = false
      for (const each of servers()) void each.stop(true)
    },
  }
}

function tlsOf({ certificate, key }: CertificatePair) {
  return { cert: certificate, key: key.reveal() }
}

/** Returns the options of a server that are the same for each certificate. */
function handlersOf(options: ListenOptions, state: { readonly isDraining: boolean }) {
  const { app, codes, system, tlsTerminated, hostRule } = options
  let warnsOfProxy = !tlsTerminated
  /** The last accepted Host, so that the next request with the same one is not checked again. */
  let knownHost: string | null = null
  // Applies to the whole process: the runtime has no option for one server.
  Object.assign(http, { maxHeaderSize: HEAD_BYTES_MAX })
  return {
    idleTimeout: IDLE_SECONDS,
    maxRequestBodySize: BODY_BYTES_MAX,
    development: false,
    websocket: SOCKETS,
    fetch: (request: Request, server: Server) => {
      const host = request.headers.get('host')
      const hasHost = request.url.charCodeAt(0) !== SLASH
      const binding = new Binding(request, server, options)
      if (host && host !== knownHost) {
        const isValid = isHost(host, request.url)
        const rule = isValid ? (hostRule?.(host, server.port!) ?? null) : HOST_RULE
        if (rule !== null) return rejectHost(options, binding, rule)
      }
      knownHost = host
      if (warnsOfProxy && request.headers.has(FORWARDED)) {
        warnsOfProxy = false
        warnOfProxy(options)
      }
      const routed = hasHost ? request : withHost(request)
      const isHead = request.method === 'HEAD' && app.answersHead?.(routed) !== true
      const response = isHead ? head(app, routed, binding) : app.fetch(routed, binding)
      const sent = state.isDraining ? withoutReuse(response) : response
      // The other responses have their body in memory.
      return sent instanceof Promise ? sent.then((each) => binding.send(each, system)) : sent
    },
    error: (error: Error) =>
      errorResponse(new Fault(codes.internal, { cause: error }), system.ids.make('req'), codes),
  }
}

/**
 * Returns the options of the address. The runtime shares a port by default, so that two servers of
 * one user would each get a part of the connections.
 */
function addressOf(listen: ListenOptions['listen'], sharesPort = false): BoundAddress {
  if ('host' in listen) return { hostname: listen.host, port: listen.port, reusePort: sharesPort }
  // The types of the runtime know either form, but not a choice of both.
  return { unix: listen.socketPath } as unknown as BoundAddress
}

interface BoundAddress {
  readonly hostname: string
  readonly port: number
  readonly reusePort: boolean
}

/**
 * Returns whether the header names one host. The runtime joins two Host headers with a comma; they
 * are rejected, since a proxy may have used either of them. For an invalid Host the runtime makes
 * either a relative URL or one that cannot be parsed.
 */
function isHost(host: string, url: string): boolean {
  return !host.includes(',') && url.charCodeAt(0) !== SLASH && URL.canParse(url)
}

function rejectHost(
  { app, codes, system }: ListenOptions,
  binding: ApplicationBinding,
  rule: string,
): Response {
  const fault = new Fault(codes.invalid, { violations: [{ path: 'host', rule }] })
  if (app.reject !== undefined) return app.reject(binding, fault)
  return errorResponse(fault, system.ids.make('req'), codes)
}

/** Logs that requests seem to come through a proxy that the settings do not declare. */
function warnOfProxy({ log, surface }: ListenOptions): void {
  const setting = `SERVICE_${surface.toUpperCase()}_TLS_TERMINATED`
  const message = [
    `A request to the ${surface} listener carries X-Forwarded-For, which is not trusted there, so`,
    `all clients of a proxy share one rate limit. If a proxy that ends TLS stands before the`,
    `listener, set ${setting}=true and restart the server.`,
  ].join(' ')
  log.warn('server.forwarded_untrusted', { message, surface, setting })
}

/**
 * Adds a host to the URL of a request without one, since routes need an absolute URL. HTTP/1.0
 * requires no Host header, and in any version it may be empty (RFC 9112, 3.2).
 */
function withHost(request: Request): Request {
  return new Request(`http://localhost${request.url}`, request)
}

/** Adds `Connection: close`, so that the client sends its next request over a new connection. */
async function withoutReuse(pending: Response | Promise<Response>): Promise<Response> {
  const response = await pending
  response.headers.set('connection', 'close')
  return response
}

/** Returns the response to the same GET without its body, but with its length (RFC 9110, 9.3.2). */
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

type Clock = Pick<System, 'nowMillis'>

/** The connection of a request, once its rate was bounded. */
interface Connection {
  /** Null for a connection that has ended. */
  readonly descriptor: number | null
  readonly end: RemoteEnd
}

const NOWHERE: RemoteEnd = { address: '', port: 0 }
/** Undefined before the first rate is bounded. */
let rates: SendingRates | null | undefined
/** Undefined before the first stream is sent. */
let streams: ConnectionStreams | null | undefined

/** Computes the peer address on demand: most calls never need it, and the look-up costs 2 us. */
class Binding implements ApplicationBinding {
  readonly #request: Request
  readonly #server: Bun.Server<SocketSession>
  readonly #tlsTerminated: boolean
  readonly #isInternal: boolean
  /** True if the runtime encrypts what it sends. */
  readonly #isEncrypted: boolean
  #connection: Connection | null = null
  /** True once the response is sent beside the runtime, whose times do not apply to it. */
  #isStreamed = false

  constructor(
    request: Request,
    server: Bun.Server<SocketSession>,
    { tlsTerminated, listen, certificate }: ListenOptions,
  ) {
    this.#request = request
    this.#server = server
    this.#tlsTerminated = tlsTerminated
    this.#isInternal = 'socketPath' in listen
    this.#isEncrypted = certificate !== undefined
  }

  get peer(): string {
    const socket = this.#server.requestIP(this.#request)?.address
    return peerAddress(this.#request.headers, socket, this.#tlsTerminated)
  }

  /** Only processes of this server can reach a socket of the file system. */
  get namesBytes(): boolean {
    return this.#isInternal && this.#request.headers.has(TAKES_NAMED_BYTES)
  }

  takeTime(): void {
    this.#server.timeout(this.#request, 0)
  }

  returnTime(): void {
    this.#server.timeout(this.#request, IDLE_SECONDS)
  }

  setTime(seconds: number): void {
    if (!this.#isStreamed) this.#server.timeout(this.#request, seconds)
  }

  setRate(bytesPerSecond: number | null): void {
    rates ??= SendingRates.open()
    if (rates === null) return
    this.#connection ??= this.#findConnection(rates)
    const { descriptor, end } = this.#connection
    if (descriptor !== null) rates.limit(descriptor, end, bytesPerSecond)
  }

  /** Returns what the runtime sends: the response, or nothing once its stream was sent. */
  send(response: Response, system: Clock): Response | Promise<Response> {
    const body = this.#isEncrypted ? null : sizedStreamOf(response)
    return body === null ? response : this.#stream(response, body, system)
  }

  async #stream(
    response: Response,
    body: ReadableStream<Uint8Array>,
    system: Clock,
  ): Promise<Response> {
    streams ??= ConnectionStreams.open()
    rates ??= SendingRates.open()
    const end = this.#server.requestIP(this.#request)
    const descriptor = end === null ? null : (rates?.find(end) ?? null)
    if (descriptor === null || streams === null) return response
    this.#isStreamed = true
    this.takeTime()
    const { signal } = this.#request
    const idleMillis = DOWNLOAD_IDLE_SECONDS * 1000
    const head = headOf(response, system)
    const isSent = await streams.send(descriptor, { head, body, signal, idleMillis })
    return isSent ? new Response(null) : response
  }

  #findConnection(open: SendingRates): Connection {
    const end = this.#server.requestIP(this.#request)
    return end === null ? { descriptor: null, end: NOWHERE } : { descriptor: open.find(end), end }
  }

  isAnswered(): boolean {
    // The runtime forgets the peer of a request with its response.
    return this.#server.requestIP(this.#request) === null
  }

  upgrade({ headers, session }: Upgrade): boolean {
    return this.#server.upgrade(this.#request, { headers: { ...headers }, data: session })
  }
}

/** Returns the status line and the headers of a response that ends its connection. */
function headOf({ status, headers }: Response, system: Clock): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`]
  for (const [name, value] of headers) {
    if (name !== 'connection' && name !== 'date') lines.push(`${name}: ${value}`)
  }
  lines.push(`date: ${new Date(system.nowMillis()).toUTCString()}`, 'connection: close', '', '')
  return lines.join('\r\n')
}

/**
 * Options of the runtime's WebSockets. The runtime itself closes with 1002, 1007 or 1009 if a peer
 * violates the framing or sends too much, compressed or not: it decompresses no more than the bound
 * of a message. All connections share one compressor and one decompressor, so none keeps a window
 * between two messages. It sends no pings, since the protocol sends its own.
 */
const SOCKETS: Bun.WebSocketHandler<SocketSession> = {
  maxPayloadLength: REALTIME_MESSAGE_BYTES_MAX,
  perMessageDeflate: { compress: 'shared', decompress: 'shared' },
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
    // The runtime returns -1 for a message that it buffers because the peer does not read.
    send: (text, compresses) => socket.send(text, compresses) >= 0,
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
