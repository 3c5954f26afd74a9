/**
 * The protocol of one Realtime connection (wire decisions, section 4): authentication in the first
 * message, subscriptions, renewal and expiry. Messages are processed one after the other.
 */
import { Fault, isFault } from '../../../errors/fault.ts'
import type { CredentialId } from '../../../value/ids.ts'
import { type Json, parseStrictJson } from '../../../value/strict-json.ts'
import { decodeTagged } from '../../../value/tagged.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import type { ValueObject } from '../../../value/values.ts'
import { read } from '../../../wire/reading/read.ts'
import { REALTIME_SUBSCRIPTIONS_MAX, RealtimeRequest } from '../../../wire/realtime.ts'
import { APPLICATION_CODES, toFault } from '../../errors.ts'
import { RateLimiter } from '../../rate-limits.ts'
import { admitKey, chargeCall, verifyToken } from '../callers.ts'
import type { Gateway } from '../gateway.ts'
import type { ApplicationCaller, Incoming } from '../incoming.ts'
import { type Authorization, requireRealtime, requireSameCaller } from './authorizations.ts'
import { OutgoingMessages } from './outgoing-messages.ts'
import { RealtimeSubscription } from './realtime-subscription.ts'
import type { Socket, SocketSession } from './sockets.ts'
import { subscriptionPort } from './subscription-port.ts'

/** Close codes (RFC 6455, 7.4). */
export const CLOSE = { goingAway: 1001, unsupported: 1003, policy: 1008 } as const

/** Milliseconds for the first message. */
const AUTHENTICATION_MILLIS = 5_000
/** Milliseconds before the end of the token at which the client is told. */
const EXPIRING_MILLIS = 60_000
/** Milliseconds for a renewal after the end of the token. */
const RENEWAL_MILLIS = 60_000
const PING_MILLIS = 30_000
/** Milliseconds without a frame after which the peer is presumed to be gone. */
const SILENCE_MILLIS = 60_000
/** Milliseconds between two checks that the token's key is still trusted. */
const TRUST_MILLIS = 10_000
/** Messages of one connection: it may subscribe to everything at once after a reconnect. */
const MESSAGE_LIMIT = { perSecond: 100, burst: 2 * REALTIME_SUBSCRIPTIONS_MAX }
/** Messages that may wait while one is processed. */
const WAITING_MAX = 2 * REALTIME_SUBSCRIPTIONS_MAX

/** The registry of all connections, to which each reports. */
export interface ConnectionRegistry {
  /** Counts the connection for its credential. Throws BUSY beyond the bound. */
  authenticated(connection: RealtimeConnection, caller: ApplicationCaller): void
  stateSent(): void
  messageReceived(): void
  closed(connection: RealtimeConnection, code: number): void
}

export class RealtimeConnection implements SocketSession {
  readonly gateway: Gateway
  readonly incoming: Incoming
  /** The credential that the registry counts it for; null before the authentication. */
  countedFor: CredentialId | null = null
  readonly #registry: ConnectionRegistry
  readonly #outgoing: OutgoingMessages
  readonly #messages: RateLimiter
  readonly #subscriptions = new Map<string, RealtimeSubscription>()
  readonly #waiting: (string | null)[] = []
  #socket: Socket | null = null
  #authorization: Authorization | null = null
  #isProcessing = false
  #isClosed = false
  /** Monotonic milliseconds. */
  #openedAt: number
  #heardAt: number
  #pingedAt: number
  #trustedAt: number
  #toldExpiring = false
  /** Unix milliseconds of the end of the token; null before it. */
  #expiredAt: number | null = null
  #revision: number

  constructor(gateway: Gateway, incoming: Incoming, registry: ConnectionRegistry) {
    this.gateway = gateway
    this.incoming = incoming
    this.#registry = registry
    const now = gateway.system.monotonicMillis()
    this.#openedAt = now
    this.#heardAt = now
    this.#pingedAt = now
    this.#trustedAt = now
    this.#revision = gateway.revision()
    this.#outgoing = new OutgoingMessages(() => this.#end(new Fault('LIMIT_EXCEEDED')))
    this.#messages = new RateLimiter(gateway.system, MESSAGE_LIMIT, 1)
  }

  get authorization(): Authorization | null {
    return this.#authorization
  }

  /** Milliseconds since the upgrade. */
  get ageMillis(): number {
    return this.gateway.system.monotonicMillis() - this.#openedAt
  }

  get subscriptionCount(): number {
    return this.#subscriptions.size
  }

  opened(socket: Socket): void {
    this.#socket = socket
    this.#outgoing.open(socket)
  }

  heard(): void {
    this.#heardAt = this.gateway.system.monotonicMillis()
  }

  drained(): void {
    this.#outgoing.drained()
  }

  closed(code: number): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#endSubscriptions()
    this.#outgoing.close()
    this.#waiting.length = 0
    this.#registry.closed(this, code)
  }

  /** Tells the client to connect again, and closes after that time. */
  reconnect(afterMillis: number): void {
    this.#outgoing.send({ type: 'reconnect', afterMillis, reason: 'draining' })
    setTimeout(() => this.#close(CLOSE.goingAway, 'The server is stopping.'), afterMillis)
  }

  message(text: string | null): void {
    this.heard()
    this.#registry.messageReceived()
    if (this.#isClosed) return
    const isTooMuch = this.#messages.take('') > 0 || this.#waiting.length >= WAITING_MAX
    if (isTooMuch) this.#end(new Fault('RATE_LIMITED', { detail: 'messages of a connection' }))
    else {
      this.#waiting.push(text)
      void this.#process()
    }
  }

  /** Checks times and whether its authorization still holds. Called four times a second. */
  tick(): void {
    if (this.#isClosed || this.#socket === null) return
    const { system } = this.gateway
    const now = system.monotonicMillis()
    if (now - this.#heardAt > SILENCE_MILLIS) {
      this.#socket.cut()
      return
    }
    if (this.#authorization === null) {
      if (now - this.#openedAt > AUTHENTICATION_MILLIS) {
        this.#end(new Fault('APPLICATION_KEY_REQUIRED', { detail: 'no message within 5 s' }))
      }
      return
    }
    if (now - this.#heardAt > PING_MILLIS && now - this.#pingedAt > PING_MILLIS) {
      this.#pingedAt = now
      this.#socket.ping()
    }
    this.#checkExpiry(this.#authorization, system.nowMillis())
    const revision = this.gateway.revision()
    if (revision !== this.#revision) {
      this.#revision = revision
      this.#recheck(this.#authorization)
    }
    if (now - this.#trustedAt > TRUST_MILLIS) {
      this.#trustedAt = now
      void this.#recheckToken(this.#authorization)
    }
  }

  async #process(): Promise<void> {
    if (this.#isProcessing) return
    this.#isProcessing = true
    while (this.#waiting.length > 0 && !this.#isClosed) {
      const text = this.#waiting.shift()!
      if (text === null) this.#close(CLOSE.unsupported, 'Messages are text.')
      else await this.#handle(text).catch((error: unknown) => this.#end(faultOf(error)))
    }
    this.#isProcessing = false
  }

  /** Throws where the connection has to end. */
  async #handle(text: string): Promise<void> {
    const message = read(RealtimeRequest, parseStrictJson(text), 'REQUEST_INVALID')
    if (message.type === 'authenticate') return this.#authenticate(message)
    const authorization = this.#authorization
    if (authorization === null) throw new Fault('APPLICATION_KEY_REQUIRED')
    switch (message.type) {
      case 'subscribe':
        return this.#subscribe(authorization, message)
      case 'unsubscribe':
        this.#drop(message.subscriptionId)
        this.#outgoing.send({ type: 'unsubscribed', subscriptionId: message.subscriptionId })
        return
      case 'ping': {
        const nonce = message.nonce === undefined ? {} : { nonce: message.nonce }
        this.#outgoing.send({ type: 'pong', ...nonce, snapshotSequence: this.#currentAt() })
      }
    }
  }

  /** A failed renewal leaves the authorization as it is. */
  async #authenticate(message: {
    readonly applicationKey: string
    readonly token?: string
  }): Promise<void> {
    const before = this.#authorization
    try {
      const authorization = await this.#authorize(message.applicationKey, message.token ?? null)
      if (before === null) this.#registry.authenticated(this, authorization.caller)
      else requireSameCaller(before, authorization)
      this.#install(authorization, before)
    } catch (error) {
      if (before === null) throw error
      this.incoming.caller = before.caller
      this.#report(null, faultOf(error))
    }
  }

  async #authorize(key: string, token: string | null): Promise<Authorization> {
    const { gateway, incoming } = this
    const caller = admitKey(gateway, incoming, key)
    chargeCall(gateway, caller)
    requireRealtime(caller)
    const principal = token === null ? null : await verifyToken(gateway, incoming, caller, token)
    return { key, caller, token, principal }
  }

  #install(authorization: Authorization, before: Authorization | null): void {
    const { principal } = authorization
    this.#authorization = authorization
    this.#toldExpiring = false
    this.#expiredAt = null
    this.#trustedAt = this.gateway.system.monotonicMillis()
    this.#outgoing.send({
      type: 'authenticated',
      sessionId: this.incoming.requestId,
      expiresAtMicros: principal === null ? null : microsOf(principal.expiresAtMillis),
      maximumSubscriptions: REALTIME_SUBSCRIPTIONS_MAX,
    })
    // Another token of the same principal may name other roles.
    if (before?.principal?.identityText !== principal?.identityText) this.#resolveAll()
  }

  async #subscribe(
    authorization: Authorization,
    message: Extract<RealtimeRequest, { readonly type: 'subscribe' }>,
  ): Promise<void> {
    const { gateway, incoming } = this
    const { subscriptionId } = message
    this.#drop(subscriptionId)
    const request = { ...message, arguments: readArguments(message.arguments as Json) }
    const port = subscriptionPort(this, {
      outgoing: this.#outgoing,
      onState: () => this.#registry.stateSent(),
      onFailure: (failed, fault) => {
        if (this.#subscriptions.get(subscriptionId) === failed) this.#drop(subscriptionId)
        this.#report(subscriptionId, fault, request.function)
      },
    })
    try {
      if (this.#expiredAt !== null) throw new Fault('FUNCTIONAL_TOKEN_INVALID')
      chargeCall(gateway, authorization.caller)
      if (this.#subscriptions.size >= REALTIME_SUBSCRIPTIONS_MAX) {
        throw new Fault('LIMIT_EXCEEDED', { detail: 'subscriptions of a connection' })
      }
    } catch (error) {
      this.#report(subscriptionId, faultOf(error), request.function)
      return
    }
    const subscription = new RealtimeSubscription(port, request)
    this.#subscriptions.set(subscriptionId, subscription)
    gateway.keyUsage.answered(incoming.caller!, 200)
    await subscription.resolve()
  }

  #drop(subscriptionId: string): void {
    const subscription = this.#subscriptions.get(subscriptionId)
    if (subscription === undefined) return
    this.#subscriptions.delete(subscriptionId)
    subscription.close()
    this.#outgoing.remove(subscription)
  }

  #endSubscriptions(): void {
    for (const subscriptionId of [...this.#subscriptions.keys()]) this.#drop(subscriptionId)
  }

  #resolveAll(): void {
    for (const subscription of this.#subscriptions.values()) void subscription.resolve()
  }

  /** The sequence up to which all subscriptions are current; null before their first states. */
  #currentAt(): string | null {
    const durable = this.gateway.engine.statistics().durableSequence
    const current = [...this.#subscriptions.values()].map(({ currentAt }) => currentAt)
    const sequence = Math.min(durable, ...current)
    return sequence < 0 ? null : String(sequence)
  }

  #checkExpiry({ principal }: Authorization, nowMillis: number): void {
    if (principal === null) return
    const left = principal.expiresAtMillis - nowMillis
    if (left <= 0 && this.#expiredAt === null) {
      this.#expiredAt = nowMillis
      this.#endSubscriptions()
      this.#outgoing.send({ type: 'authorization_expired' })
    } else if (left <= EXPIRING_MILLIS && left > 0 && !this.#toldExpiring) {
      this.#toldExpiring = true
      const expiresAtMicros = microsOf(principal.expiresAtMillis)
      this.#outgoing.send({ type: 'authorization_expiring', expiresAtMicros })
    }
    if (this.#expiredAt !== null && nowMillis - this.#expiredAt > RENEWAL_MILLIS) {
      this.#end(new Fault('FUNCTIONAL_TOKEN_INVALID', { detail: 'the token was not renewed' }))
    }
  }

  /** Ends the connection of a revoked key; finds what the targets mean now. */
  #recheck({ key, caller }: Authorization): void {
    const { gateway } = this
    try {
      const now = gateway.authenticateKey(key)
      if (now === null) {
        throw new Fault('APPLICATION_KEY_INVALID', { detail: gateway.explainKey(key).reason })
      }
      if (now !== caller) requireRealtime(now)
    } catch (error) {
      this.#end(faultOf(error))
      return
    }
    this.#resolveAll()
  }

  /** Ends the connection of a token whose key is not trusted any more. */
  async #recheckToken({ token }: Authorization): Promise<void> {
    if (token === null || this.#expiredAt !== null) return
    try {
      await this.gateway.tokens.verify(token)
    } catch (error) {
      if (isFault(error, 'FUNCTIONAL_TOKEN_INVALID') && this.#authorization?.token === token) {
        this.#end(error)
      }
    }
  }

  /** Sends a failure, of a subscription or of the connection, and leaves a record of it. */
  #report(subscriptionId: string | null, fault: Fault, name: string | null = null): void {
    const { code, message, retryable, status } = fault
    const { gateway, incoming } = this
    this.#outgoing.send({ type: 'error', subscriptionId, error: { code, message, retryable } })
    if (this.#authorization !== null) {
      gateway.keyUsage.answered(this.#authorization.caller, status)
    }
    gateway.rejections.add({ ...incoming, function: name }, fault)
  }

  #end(fault: Fault): void {
    if (this.#isClosed) return
    this.#report(null, fault)
    this.#close(CLOSE.policy, fault.code)
  }

  #close(code: number, reason: string): void {
    if (this.#isClosed) return
    this.#socket?.close(code, reason)
    this.closed(code)
  }
}

function readArguments(json: Json): ValueObject {
  const value = decodeTagged(json, 'arguments')
  if (!(value instanceof Map)) throw new ValidationError('an object value', 'arguments')
  return value as ValueObject
}

function faultOf(error: unknown): Fault {
  return toFault(error, APPLICATION_CODES)
}

function microsOf(millis: number): string {
  return String(BigInt(Math.floor(millis)) * 1000n)
}
