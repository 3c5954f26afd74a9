/** The Realtime connections of the application origin: handshake, bounds, times, shutdown. */
import { Fault } from '../../../errors/fault.ts'
import type { Metrics } from '../../../telemetry/metrics/metrics.ts'
import type { CredentialId } from '../../../value/ids.ts'
import { REALTIME_PROTOCOL } from '../../../wire/realtime.ts'
import { peerOf } from '../../rate-limits.ts'
import type { Gateway } from '../gateway.ts'
import type { ApplicationCaller, Incoming } from '../incoming.ts'
import { type ConnectionRegistry, RealtimeConnection } from './realtime-connection.ts'
import type { Upgrade } from './sockets.ts'

export interface RealtimeLimits {
  readonly connectionsMax: number
  readonly connectionsPerCredentialMax: number
  readonly connectionsPerPeerMax: number
}

const TICK_MILLIS = 250
/** At shutdown, clients connect again over this time, or less where they are few. */
const RECONNECT_MILLIS_MAX = 10_000
const RECONNECT_MILLIS_PER_CONNECTION = 1

export class Realtime implements ConnectionRegistry {
  readonly #gateway: Gateway
  readonly #limits: RealtimeLimits
  readonly #metrics: Metrics
  readonly #connections = new Set<RealtimeConnection>()
  readonly #byPeer = new Map<string, number>()
  readonly #byCredential = new Map<CredentialId, number>()
  #timer: ReturnType<typeof setInterval> | null = null
  #isDraining = false
  #onEmpty: (() => void) | null = null

  constructor(gateway: Gateway, limits: RealtimeLimits, metrics: Metrics) {
    this.#gateway = gateway
    this.#limits = limits
    this.#metrics = metrics
    metrics.addSource(() => ({ realtimeConnections: this.#connections.size }))
  }

  /**
   * Checks the request of an upgrade, whose browser origin was checked before. Throws
   * UPGRADE_REQUIRED, REQUEST_INVALID, UNAVAILABLE and BUSY.
   */
  upgrade(incoming: Incoming): Upgrade {
    checkHandshake(incoming.request)
    if (this.#isDraining) throw new Fault('UNAVAILABLE', { detail: 'the server is stopping' })
    const { connectionsMax, connectionsPerPeerMax } = this.#limits
    if (this.#connections.size >= connectionsMax) throw busy('connections')
    const peer = peerOf(incoming.binding)
    if ((this.#byPeer.get(peer) ?? 0) >= connectionsPerPeerMax) throw busy('connections of a peer')
    // The listener knows the peer of a request only while it lasts.
    const kept = { ...incoming, binding: { peer } }
    const connection = new RealtimeConnection(this.#gateway, kept, this)
    this.#connections.add(connection)
    add(this.#byPeer, peer, 1)
    this.#timer ??= setInterval(() => this.#tick(), TICK_MILLIS)
    this.#metrics.counters.realtimeConnectionsOpened.add()
    return {
      headers: {
        'sec-websocket-protocol': REALTIME_PROTOCOL,
        'x-service-request-id': incoming.requestId,
        'x-content-type-options': 'nosniff',
      },
      session: connection,
    }
  }

  /** Tells every client to connect again, spread over time; resolves once all are closed. */
  async drain(): Promise<void> {
    this.#isDraining = true
    if (this.#connections.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onEmpty = resolve
    const spread = this.#connections.size * RECONNECT_MILLIS_PER_CONNECTION
    const millisMax = Math.min(spread, RECONNECT_MILLIS_MAX)
    let position = 0
    for (const connection of this.#connections) {
      connection.reconnect(Math.floor((millisMax * position++) / this.#connections.size))
    }
    await promise
  }

  authenticated(connection: RealtimeConnection, { credentialId }: ApplicationCaller): void {
    const { connectionsPerCredentialMax } = this.#limits
    const open = this.#byCredential.get(credentialId) ?? 0
    if (open >= connectionsPerCredentialMax) throw busy('connections of a credential')
    this.#byCredential.set(credentialId, open + 1)
    connection.countedFor = credentialId
  }

  stateSent(): void {
    this.#metrics.counters.realtimeStatesSent.add()
  }

  messageReceived(): void {
    this.#metrics.counters.realtimeMessagesReceived.add()
  }

  closed(connection: RealtimeConnection, code: number): void {
    if (!this.#connections.delete(connection)) return
    const { incoming, authorization, ageMillis, countedFor } = connection
    add(this.#byPeer, peerOf(incoming.binding), -1)
    if (countedFor !== null) add(this.#byCredential, countedFor, -1)
    this.#gateway.log.info('realtime.closed', {
      message: `A Realtime connection was closed with code ${code}.`,
      requestId: incoming.requestId,
      clientId: authorization?.caller.clientId,
      credentialId: authorization?.caller.credentialId,
      closeCode: code,
      durationMillis: Math.round(ageMillis),
    })
    if (this.#connections.size > 0) return
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    this.#onEmpty?.()
  }

  #tick(): void {
    for (const connection of this.#connections) connection.tick()
  }
}

function add<K>(counts: Map<K, number>, key: K, change: number): void {
  const count = (counts.get(key) ?? 0) + change
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}

function busy(limit: string): Fault {
  return new Fault('BUSY', { detail: limit })
}

/** Throws UPGRADE_REQUIRED and REQUEST_INVALID (RFC 6455, 4.2.1). */
function checkHandshake({ headers }: Request): void {
  if (headers.get('upgrade')?.toLowerCase() !== 'websocket') throw new Fault('UPGRADE_REQUIRED')
  if (headers.get('sec-websocket-version') !== '13') {
    throw new Fault('UPGRADE_REQUIRED', { detail: 'sec-websocket-version: 13' })
  }
  const protocols = (headers.get('sec-websocket-protocol') ?? '').split(',')
  if (!protocols.some((protocol) => protocol.trim() === REALTIME_PROTOCOL)) {
    throw new Fault('REQUEST_INVALID', { detail: `sec-websocket-protocol: ${REALTIME_PROTOCOL}` })
  }
}
