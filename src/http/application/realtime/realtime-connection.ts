/**
 * The protocol of one Realtime connection (contract/wire.md, Realtime): authentication in the first
 * message, subscriptions, renewal and expiry. Messages are processed one after the other.
 */
import { SUBSCRIPTION_MEMORY } from '../../../engine/limits.ts'
import { memoryExhausted } from '../../../engine/subscriptions/live-query.ts'
import { Fault, isFault } from '../../../errors/fault.ts'
import type {
  MemoryBudget,
  MemoryShare,
  Reservation,
} from '../../../system/memory/memory-budget.ts'
import { valueBytes } from '../../../system/memory/memory-bytes.ts'
import type { CredentialId } from '../../../value/ids.ts'
import { type Json, parseKeptJson } from '../../../value/strict-json.ts'
import { read } from '../../../wire/reading/read.ts'
import {
  REALTIME_SUBSCRIPTIONS_MAX,
  RealtimeRequest,
  RealtimeRequestV2,
  type RealtimeVersion,
  type SubscribeRequest,
} from '../../../wire/realtime.ts'
import { APPLICATION_CODES, toFault } from '../../errors.ts'
import { peerOf, RateLimiter } from '../../rate-limits.ts'
import { OwnBuckets } from '../../token-buckets.ts'
import { admitKey, chargeBody, chargeCall, overdrawCall, verifyToken } from '../callers.ts'
import { type CallName, callerError } from '../development-targets.ts'
import type { Gateway } from '../gateway.ts'
import { CLOSE, type Socket, type SocketSession } from '../sockets.ts'
import {
  type Authorization,
  type OpenedBy,
  requireRealtime,
  requireSameCaller,
} from './authorizations.ts'
import type { ConnectionParts, ConnectionRegistry, OpenConnection } from './connection-registry.ts'
import { Heartbeat } from './heartbeat.ts'
import { IncomingMessages } from './incoming-messages.ts'
import { startOperation, tracedAuthentication } from './operation-traces.ts'
import { OutgoingMessages } from './outgoing-messages.ts'
import { Pings } from './pings.ts'
import { RealtimeSubscription } from './realtime-subscription.ts'
import { readArguments } from './request-arguments.ts'
import { subscriptionPort } from './subscription-port.ts'
import { TokenExpiry } from './token-expiry.ts'
import type { Traffic } from './traffic.ts'

/** Milliseconds between two checks of a token. A check also reloads the published keys. */
const TRUST_MILLIS = 60_000
/** Rate of messages. The burst lets a client renew all its subscriptions after a reconnect. */
const MESSAGE_LIMIT = { perSecond: 100, burst: 2 * REALTIME_SUBSCRIPTIONS_MAX }

/** Measured bytes of a subscription, without its arguments and the Query that it watches. */
const SUBSCRIPTION_BYTES = 3 * 1024

export class RealtimeConnection implements SocketSession, OpenConnection {
  readonly gateway: Gateway
  readonly incoming: OpenedBy
  readonly version: RealtimeVersion
  readonly traffic: Traffic
  countedFor: CredentialId | null = null
  readonly #registry: ConnectionRegistry
  readonly #budget: MemoryBudget
  /** The share of the memory of this connection; null before the authentication. */
  #memory: MemoryShare | null = null
  readonly #outgoing: OutgoingMessages
  readonly #messages: RateLimiter
  readonly #subscriptions = new Map<string, RealtimeSubscription>()
  readonly #incoming: IncomingMessages
  readonly #pings: Pings
  #socket: Socket | null = null
  #authorization: Authorization | null = null
  readonly #heartbeat: Heartbeat
  readonly #expiry = new TokenExpiry()
  #isClosed = false
  /** Monotonic milliseconds. */
  #trustedAt: number
  #keysRevision: number
  #revision: number

  constructor(
    gateway: Gateway,
    incoming: OpenedBy,
    { version, registry, traffic, memory, deliveries, compression }: ConnectionParts,
  ) {
    this.gateway = gateway
    this.incoming = incoming
    this.version = version
    this.traffic = traffic
    this.#registry = registry
    this.#budget = memory
    const now = gateway.system.monotonicMillis()
    this.#heartbeat = new Heartbeat(now)
    this.#trustedAt = now
    this.#keysRevision = gateway.tokens.revision
    this.#revision = gateway.revision()
    this.#outgoing = new OutgoingMessages(
      version,
      {
        onOverflow: () => {
          this.#end(new Fault('LIMIT_EXCEEDED', { detail: 'the peer does not read its messages' }))
        },
        onSent: (bytes) => traffic.sent(bytes),
      },
      { deliveries, compression },
    )
    this.#messages = new RateLimiter(
      gateway.system,
      MESSAGE_LIMIT,
      new OwnBuckets(gateway.system, 1),
    )
    this.#pings = new Pings(gateway, this.#outgoing)
    // Charged to the address alone: messages may wait before the credential is known.
    const share = gateway.transfers.bodies.shareOf({
      credential: null,
      peer: peerOf(incoming.binding),
    })
    this.#incoming = new IncomingMessages(share, (text) => this.#process(text))
  }

  get authorization(): Authorization | null {
    return this.#authorization
  }

  get ageMillis(): number {
    return this.#heartbeat.ageMillis(this.gateway.system.monotonicMillis())
  }

  get subscriptionCount(): number {
    return this.#subscriptions.size
  }

  opened(socket: Socket): void {
    this.#socket = socket
    this.#outgoing.open(socket)
  }

  heard(): void {
    this.#heartbeat.heard(this.gateway.system.monotonicMillis())
  }

  drained(): void {
    this.#outgoing.drained()
  }

  closed(code: number): void {
    this.#closed(code, null)
  }

  reconnect(afterMillis: number): void {
    this.#outgoing.send({ type: 'reconnect', afterMillis, reason: 'draining' })
    setTimeout(() => this.#close(CLOSE.goingAway, 'draining'), afterMillis)
  }

  message(text: string | null): void {
    const now = this.gateway.system.monotonicMillis()
    this.#heartbeat.messageHeard(now)
    if (this.#authorization !== null) this.gateway.transfers.turns.called(now)
    this.traffic.received(text === null ? 0 : Buffer.byteLength(text))
    if (this.#isClosed) return
    const isWithinRate = this.#messages.take('') === 0
    const exceeded = isWithinRate ? this.#incoming.add(text) : 'messages of a connection'
    if (exceeded !== null) this.#end(new Fault('RATE_LIMITED', { detail: exceeded }))
  }

  tick(): void {
    if (this.#isClosed || this.#socket === null) return
    const { system } = this.gateway
    const now = system.monotonicMillis()
    const due = this.#heartbeat.check(now)
    if (due === 'silent') this.#cut(this.#socket)
    if (due === 'no-first-message') {
      this.#end(new Fault('APPLICATION_KEY_REQUIRED', { detail: 'no message within 5 s' }))
    }
    if (due === 'ping') this.#socket.ping()
    if (this.#isClosed || this.#authorization === null) return
    this.#pings.answer(this.#authorization.caller)
    this.#checkExpiry(this.#authorization, system.nowMillis())
    const revision = this.gateway.revision()
    if (revision !== this.#revision) {
      this.#revision = revision
      this.#recheck(this.#authorization)
    }
    const keysRevision = this.gateway.tokens.revision
    if (keysRevision !== this.#keysRevision || now - this.#trustedAt > TRUST_MILLIS) {
      this.#keysRevision = keysRevision
      this.#trustedAt = now
      void this.#recheckToken(this.#authorization)
    }
  }

  async #process(text: string | null): Promise<void> {
    if (this.#isClosed) return
    if (text === null) this.#close(CLOSE.unsupported, 'Messages are text.')
    else await this.#handle(text).catch((error: unknown) => this.#end(faultOf(error)))
  }

  /** Processes one message. Throws if the connection must end. */
  async #handle(text: string): Promise<void> {
    const json = parseKeptJson(text)
    const message =
      this.version === 1
        ? read(RealtimeRequest, json, 'REQUEST_INVALID')
        : read(RealtimeRequestV2, json, 'REQUEST_INVALID')
    if (message.type === 'authenticate') return this.#authenticate(message)
    const authorization = this.#authorization
    if (authorization === null) throw new Fault('APPLICATION_KEY_REQUIRED')
    chargeBody(this.gateway, authorization.caller, Buffer.byteLength(text))
    switch (message.type) {
      case 'subscribe':
        return this.#subscribe(authorization, message)
      case 'unsubscribe':
        overdrawCall(this.gateway, authorization.caller)
        this.#drop(message.subscriptionId)
        this.#outgoing.send({ type: 'unsubscribed', subscriptionId: message.subscriptionId })
        return
      case 'ping':
        this.#pings.received(message, authorization.caller)
    }
  }

  /** Renews the authorization. A failed renewal leaves it unchanged. */
  async #authenticate(message: {
    readonly applicationKey: string
    readonly token?: string
  }): Promise<void> {
    const before = this.#authorization
    try {
      await tracedAuthentication(this, async () => {
        const authorization = await this.#authorize(message.applicationKey, message.token ?? null)
        if (before === null) this.#registry.authenticated(this, authorization.caller)
        else requireSameCaller(before, authorization)
        this.#install(authorization, before)
      })
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
    const { principal, caller } = authorization
    const { credentialId: credential } = caller
    this.#memory ??= this.#budget.shareOf({ credential, peer: peerOf(this.incoming.binding) })
    this.#authorization = authorization
    this.#expiry.renew()
    this.#trustedAt = this.gateway.system.monotonicMillis()
    this.#outgoing.send({
      type: 'authenticated',
      sessionId: this.incoming.requestId,
      expiresAtMicros: principal === null ? null : microsOf(principal.expiresAtMillis),
      maximumSubscriptions: REALTIME_SUBSCRIPTIONS_MAX,
    })
    // A new token of the same principal may name other roles.
    if (before?.principal?.identityText !== principal?.identityText) this.#resolveAll()
  }

  async #subscribe(authorization: Authorization, message: SubscribeRequest): Promise<void> {
    const { gateway, incoming } = this
    const { subscriptionId } = message
    this.#drop(subscriptionId)
    const request = {
      ...message,
      arguments: readArguments(message.arguments as Json),
      patches: 'patches' in message && message.patches === true,
    }
    const memory = this.#memory!
    const port = subscriptionPort(this, {
      outgoing: this.#outgoing,
      traffic: this.traffic,
      current: this.#pings.current,
      memory,
      onFailure: (failed, fault) => {
        if (this.#subscriptions.get(subscriptionId) === failed) this.#drop(subscriptionId)
        this.#report(subscriptionId, fault, request)
      },
    })
    let held: Reservation | null
    try {
      if (this.#expiry.isExpired) throw new Fault('FUNCTIONAL_TOKEN_INVALID')
      chargeCall(gateway, authorization.caller)
      if (this.#subscriptions.size >= REALTIME_SUBSCRIPTIONS_MAX) {
        throw new Fault('LIMIT_EXCEEDED', { detail: 'subscriptions of a connection' })
      }
      held = memory.reserve(SUBSCRIPTION_BYTES + valueBytes(request.arguments))
      if (held === null) throw memoryExhausted()
    } catch (error) {
      this.#report(subscriptionId, faultOf(error), request)
      return
    }
    const trace = startOperation(this, 'subscribe')
    const subscription = new RealtimeSubscription(port, request, { trace, held })
    this.#subscriptions.set(subscriptionId, subscription)
    this.#pings.current.update(subscription)
    gateway.keyUsage.answered(incoming.caller!, 200)
    await subscription.resolve()
  }

  #drop(subscriptionId: string): void {
    const subscription = this.#subscriptions.get(subscriptionId)
    if (subscription === undefined) return
    this.#subscriptions.delete(subscriptionId)
    subscription.close()
    this.#outgoing.remove(subscription)
    this.#pings.current.remove(subscription)
  }

  #endSubscriptions(): void {
    for (const subscriptionId of [...this.#subscriptions.keys()]) this.#drop(subscriptionId)
  }

  #resolveAll(): void {
    for (const subscription of this.#subscriptions.values()) void subscription.resolve()
  }

  #checkExpiry({ principal }: Authorization, nowMillis: number): void {
    const event = this.#expiry.check(principal, nowMillis)
    if (event === 'expired') {
      this.#endSubscriptions()
      this.#outgoing.send({ type: 'authorization_expired' })
    } else if (event === 'expiring') {
      const expiresAtMicros = microsOf(principal!.expiresAtMillis)
      this.#outgoing.send({ type: 'authorization_expiring', expiresAtMicros })
    } else if (event === 'unrenewed') {
      this.#end(new Fault('FUNCTIONAL_TOKEN_INVALID', { detail: 'the token was not renewed' }))
    }
  }

  /** Ends the connection if its key was revoked, and resolves all targets again. */
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

  /** Ends the connection if the signing key of its token is no longer trusted. */
  async #recheckToken({ token, principal }: Authorization): Promise<void> {
    if (token === null || this.#expiry.isExpired) return
    try {
      await this.gateway.tokens.verify(token)
    } catch (error) {
      const isCurrent = this.#authorization?.token === token
      // A token that expired during the check still has the time for a renewal.
      const hasEnded = principal!.expiresAtMillis <= this.gateway.system.nowMillis()
      if (isFault(error, 'FUNCTIONAL_TOKEN_INVALID') && isCurrent && !hasEnded) this.#end(error)
    }
  }

  /** Sends and logs a failure of a subscription or of the connection. */
  #report(subscriptionId: string | null, fault: Fault, call: CallName | null = null): void {
    const { gateway, incoming } = this
    this.#outgoing.send({ type: 'error', subscriptionId, error: callerError(fault, call) })
    if (this.#authorization !== null) {
      gateway.keyUsage.answered(this.#authorization.caller, fault.status)
    }
    gateway.rejections.add({ ...incoming, function: call?.function ?? null }, fault)
    if (fault.detail === SUBSCRIPTION_MEMORY) this.#registry.memoryExhausted()
  }

  #end(fault: Fault): void {
    if (this.#isClosed) return
    this.#report(null, fault)
    this.#close(CLOSE.policy, fault.code)
  }

  #close(code: number, reason: string): void {
    if (this.#isClosed) return
    this.#socket?.close(code, reason)
    this.#closed(code, reason)
  }

  #cut(socket: Socket): void {
    socket.cut()
    this.#closed(CLOSE.noCloseFrame, 'silent')
  }

  #closed(code: number, reason: string | null): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const subscriptions = this.#subscriptions.size
    this.#endSubscriptions()
    this.#outgoing.close()
    this.#incoming.clear()
    this.#registry.closed(this, { code, reason, subscriptions })
  }
}

function faultOf(error: unknown): Fault {
  return toFault(error, APPLICATION_CODES)
}

function microsOf(millis: number): string {
  return String(BigInt(Math.floor(millis)) * 1000n)
}
