/**
 * The Realtime connection of a client: authenticates, renews the authorization in place, detects a
 * dead connection by its silence, and reconnects with jittered delays.
 */
import { backoffMillis, CONNECTION_BACKOFF } from '../backoff.ts'
import { readErrorFields } from '../calls/responses.ts'
import type { Tokens } from '../calls/tokens.ts'
import { type CallError, clientError, hasCode, responseInvalid, toCallError } from '../errors.ts'
import type { Platform, Socket } from '../platform.ts'

/** The versions of the subprotocol; the server selects one. */
const VERSIONS: readonly number[] = [2, 1]
const protocolOf = (version: number) => `service.realtime.v${version}`
/** Milliseconds within which the server must accept an attempt to connect. */
const OPEN_MILLIS_MAX = 15_000
/** Milliseconds without a message after which the client sends a ping. */
const SILENCE_MILLIS = 25_000
/** Milliseconds within which a ping must be answered. */
const PONG_MILLIS_MAX = 10_000
/** Milliseconds between two attempts to renew an authorization. */
const RENEWAL_MILLIS = 5_000

export type ConnectionStatus = 'idle' | 'connecting' | 'connected' | 'waiting' | 'failed'

/** A message of the server with its fields unchecked. */
export type Message = { readonly type: string; readonly [field: string]: unknown }

export interface ConnectionOptions {
  readonly platform: Platform
  /** The application address, without a slash at the end. */
  readonly url: string
  readonly applicationKey: string
  readonly tokens: Tokens
  /** Called when the connection is authorized, also again: every subscription must be made. */
  onReady(): void
  /** Called with a message about subscriptions. Throws if the server violates the protocol. */
  onMessage(message: Message): void
  /** Called when the server rejects the credentials of this client. */
  onFailed(error: CallError): void
  onChange(): void
}

export class Connection {
  readonly #options: ConnectionOptions
  #status: ConnectionStatus = 'idle'
  #error: CallError | null = null
  #socket: Socket | null = null
  #offered = VERSIONS
  /** The version of the subprotocol of the current socket. */
  #version = 1
  #failures = 0
  /** True if the last token was rejected, so that the next attempt needs a new one. */
  #needsToken = false
  #hasExpired = false
  #cancelTimer: () => void = () => undefined
  #cancelRenewal: () => void = () => undefined

  constructor(options: ConnectionOptions) {
    this.#options = options
  }

  get status(): ConnectionStatus {
    return this.#status
  }

  /** The last failure of the connection; null after a success. */
  get error(): CallError | null {
    return this.#error
  }

  /** True if subscriptions can be made. */
  get isReady(): boolean {
    return this.#status === 'connected' && !this.#hasExpired
  }

  /** True if the server can send patches. */
  get hasPatches(): boolean {
    return this.#version > 1
  }

  /** Connects unless it is connected, is connecting, or waits for the next attempt. */
  open(): void {
    if (this.#status === 'idle') this.#connect()
  }

  close(): void {
    this.#drop()
    this.#failures = 0
    this.#change('idle', null)
  }

  /** Call this when the network or the page is back. Connects at once, or sends a ping. */
  wake(): void {
    if (this.#status === 'waiting') {
      this.#failures = 0
      this.#connect()
    } else if (this.isReady) this.#ping()
  }

  /**
   * Call this when the network is lost: shown values may be stale from now on. A server on this
   * machine may still be reachable, so the next attempt does not wait for the network.
   */
  offline(): void {
    if (this.#status !== 'connected' && this.#status !== 'connecting') return
    this.#lost(unreachable())
  }

  /** Reconnects with the current token. */
  reconnect(): void {
    this.#failures = 0
    this.#connect()
  }

  send(message: object): void {
    this.#socket?.send(JSON.stringify({ version: this.#version, ...message }))
  }

  #connect(): void {
    this.#drop()
    this.#change('connecting', this.#error)
    this.#cancelTimer = this.#options.platform.after(OPEN_MILLIS_MAX, () => this.#lost())
    void this.#openSocket()
  }

  async #openSocket(): Promise<void> {
    const { platform, url, tokens } = this.#options
    const cancel = this.#cancelTimer
    let token: string | null
    let socket: Socket
    try {
      token = await (this.#needsToken ? tokens.refresh() : tokens.current())
      if (this.#cancelTimer !== cancel) return
      const address = `${url.replace(/^http/, 'ws')}/v1/realtime`
      socket = await platform.openSocket(address, this.#offered.map(protocolOf))
    } catch (error) {
      const message = 'The connection could not be opened.'
      if (this.#cancelTimer === cancel) {
        this.#lost(toCallError(error, 'CLIENT_SERVER_UNREACHABLE', message))
      }
      return
    }
    if (this.#cancelTimer !== cancel) return socket.close()
    this.#socket = socket
    const isCurrent = () => this.#socket === socket
    socket.onopen = () => isCurrent() && this.#opened(socket, token)
    socket.onmessage = ({ data }) => isCurrent() && this.#receive(data)
    socket.onclose = () => isCurrent() && this.#lost()
    socket.onerror = () => isCurrent() && this.#lost()
  }

  #opened({ protocol }: Socket, token: string | null): void {
    if (protocol === undefined && this.#offered.length > 1) {
      // A socket that does not say what the server has selected may offer one version only.
      this.#offered = [1]
      this.#connect()
      return
    }
    this.#version = VERSIONS.find((version) => protocol === protocolOf(version)) ?? 1
    this.#authenticate(token)
  }

  #authenticate(token: string | null): void {
    const { applicationKey } = this.#options
    this.send({ type: 'authenticate', applicationKey, ...(token !== null && { token }) })
  }

  #receive(data: unknown): void {
    try {
      this.#handle(parseMessage(data, this.#version))
    } catch (error) {
      this.#lost(toCallError(error, 'CLIENT_RESPONSE_INVALID', 'The server broke the protocol.'))
    }
  }

  #handle(message: Message): void {
    if (this.#status === 'connected') this.#expectSilence()
    if (message.type === 'authenticated') this.#authenticated()
    else if (message.type === 'authorization_expiring') this.#renew()
    else if (message.type === 'authorization_expired') {
      this.#hasExpired = true
      this.#renew()
    } else if (message.type === 'reconnect') {
      const millis = Number(message.afterMillis)
      this.#cancelTimer()
      this.#cancelTimer = this.#options.platform.after(millis || 0, () => this.#lost(null))
    } else if (message.type === 'error' && message.subscriptionId === null) this.#rejected(message)
    else this.#options.onMessage(message)
  }

  #authenticated(): void {
    const isFirst = this.#status !== 'connected'
    const mustSubscribe = isFirst || this.#hasExpired
    this.#hasExpired = false
    this.#needsToken = false
    this.#failures = 0
    this.#cancelRenewal()
    this.#expectSilence()
    if (isFirst) this.#change('connected', null)
    if (mustSubscribe) this.#options.onReady()
  }

  /** Handles an error of the connection, which is of its first authentication or of a renewal. */
  #rejected({ error: fields }: Message): void {
    const error = readErrorFields(fields, null)
    if (error === null) throw responseInvalid('an unknown error')
    const isToken = hasCode(error, 'FUNCTIONAL_TOKEN_INVALID', 'FUNCTIONAL_TOKEN_REQUIRED')
    if (this.#status === 'connected') {
      // The renewal had the token of another principal, which needs its own connection.
      if (hasCode(error, 'AUTH_POLICY_DENIED')) this.reconnect()
      else this.#error = error
      return
    }
    this.#needsToken = isToken
    // The first message reached the server too late.
    const isLate = hasCode(error, 'APPLICATION_KEY_REQUIRED')
    const mayRetry = error.retryable || isLate || (isToken && this.#options.tokens.canRefresh)
    if (mayRetry) {
      this.#lost(error)
      return
    }
    this.#drop()
    this.#change('failed', error)
    this.#options.onFailed(error)
  }

  /** Renews the authorization with new tokens until the server has accepted one. */
  #renew(): void {
    this.#cancelRenewal()
    this.#needsToken = true
    const socket = this.#socket
    this.#cancelRenewal = this.#options.platform.after(RENEWAL_MILLIS, () => this.#renew())
    this.#options.tokens.refresh().then(
      (token) => this.#socket === socket && this.#authenticate(token),
      () => undefined,
    )
  }

  #expectSilence(): void {
    this.#cancelTimer()
    this.#cancelTimer = this.#options.platform.after(SILENCE_MILLIS, () => this.#ping())
  }

  #ping(): void {
    this.send({ type: 'ping' })
    this.#cancelTimer()
    this.#cancelTimer = this.#options.platform.after(PONG_MILLIS_MAX, () => this.#lost())
  }

  #lost(error: CallError | null = this.#error ?? unreachable()): void {
    const { platform } = this.#options
    this.#drop()
    this.#failures += 1
    const millis = backoffMillis(CONNECTION_BACKOFF, this.#failures, platform)
    this.#cancelTimer = platform.after(millis, () => this.#connect())
    this.#change('waiting', error)
  }

  #drop(): void {
    const socket = this.#socket
    this.#socket = null
    this.#hasExpired = false
    this.#cancelTimer()
    this.#cancelTimer = () => undefined
    this.#cancelRenewal()
    socket?.close(1000)
  }

  #change(status: ConnectionStatus, error: CallError | null): void {
    this.#status = status
    this.#error = error
    this.#options.onChange()
  }
}

function unreachable(): CallError {
  return clientError('CLIENT_SERVER_UNREACHABLE', 'The server cannot be reached.', {
    retryable: true,
  })
}

function parseMessage(data: unknown, version: number): Message {
  try {
    const json = JSON.parse(data as string)
    if (json?.version === version && typeof json.type === 'string') return json
  } catch {
    // The message is not JSON.
  }
  throw responseInvalid('an unknown message')
}
