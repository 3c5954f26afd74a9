/** The Realtime connections of the application origin: handshake, bounds, times, shutdown. */
import type { ComponentHealth } from '../../../engine/usage/health.ts'
import { Fault } from '../../../errors/fault.ts'
import { MemoryBudget } from '../../../system/memory/memory-budget.ts'
import { type Counts, OwnCounts } from '../../../system/memory/shared-counts.ts'
import type { Metrics } from '../../../telemetry/metrics/metrics.ts'
import type { CredentialId } from '../../../value/ids.ts'
import {
  REALTIME_VERSIONS,
  type RealtimeVersion,
  realtimeProtocol,
} from '../../../wire/realtime.ts'
import { peerOf } from '../../rate-limits.ts'
import type { Gateway } from '../gateway.ts'
import type { ApplicationCaller, Incoming } from '../incoming.ts'
import { CLOSE, type Upgrade } from '../sockets.ts'
import { CompressionTime } from './compression-time.ts'
import type { ConnectionRegistry, Ending, OpenConnection } from './connection-registry.ts'
import { Deliveries } from './delivery-slices.ts'
import { traceHeadersOf } from './operation-traces.ts'
import { RealtimeConnection } from './realtime-connection.ts'
import { Traffic } from './traffic.ts'

export interface RealtimeLimits {
  readonly connectionsMax: number
  readonly connectionsPerCredentialMax: number
  readonly connectionsPerPeerMax: number
  /** Bytes that subscriptions hold; a quarter of it for one address, half of it for one key. */
  readonly memoryBytesMax: number
}

/**
 * Interval at which connections are checked: for silence, for pings to answer, for tokens that
 * expire and for keys that were revoked, whose connections stay open at most this long.
 */
const TICK_MILLIS = 250
/**
 * Time over which clients receive `reconnect`, however few they are: a few connections may have
 * many subscriptions.
 * @limit Realtime: time over which a server that stops closes its connections, evenly
 */
export const RECONNECT_MILLIS = 10_000
/** Fraction of the bound on connections at which the component becomes degraded. */
const NEARLY_FULL = 0.9
/** Milliseconds for which the component stays degraded after memory was exhausted. */
const EXHAUSTED_MILLIS = 60_000

export class Realtime implements ConnectionRegistry {
  readonly #gateway: Gateway
  readonly #limits: RealtimeLimits
  readonly #metrics: Metrics
  readonly #memory: MemoryBudget
  readonly #deliveries: Deliveries
  readonly #compression: CompressionTime
  readonly #connections = new Set<OpenConnection>()
  /** The open connections: all, those of each address and those of each credential. */
  readonly #counts: Counts
  #timer: ReturnType<typeof setInterval> | null = null
  /** Monotonic milliseconds at which memory was last exhausted for a subscription. */
  #exhaustedAt = Number.NEGATIVE_INFINITY
  #isDraining = false
  #onEmpty: (() => void) | null = null

  /** `counts` may be those of all processes of the server. */
  constructor(
    gateway: Gateway,
    limits: RealtimeLimits,
    metrics: Metrics,
    counts: Counts = new OwnCounts(),
  ) {
    this.#counts = counts
    this.#gateway = gateway
    this.#limits = limits
    this.#metrics = metrics
    this.#memory = new MemoryBudget(limits.memoryBytesMax)
    this.#deliveries = new Deliveries(gateway.system)
    this.#compression = new CompressionTime(gateway.system)
    metrics.addSource(() => ({
      realtimeConnections: this.#connections.size,
      realtimeMemoryBytes: this.#memory.used,
    }))
  }

  /**
   * Checks the request of an upgrade, whose browser origin was checked before. Throws
   * UPGRADE_REQUIRED, REQUEST_INVALID, UNAVAILABLE and BUSY.
   */
  upgrade(incoming: Incoming): Upgrade {
    const version = checkHandshake(incoming.request)
    if (this.#isDraining) throw new Fault('UNAVAILABLE', { detail: 'the server is stopping' })
    const peer = peerOf(incoming.binding)
    this.#count(peer)
    // The listener forgets the peer of a request when the request ends.
    const { request, ...kept } = { ...incoming, binding: { peer } }
    const traceHeaders = traceHeadersOf(this.#gateway, request)
    const connection = new RealtimeConnection(
      this.#gateway,
      { ...kept, traceHeaders },
      {
        version,
        registry: this,
        traffic: new Traffic(this.#metrics),
        memory: this.#memory,
        deliveries: this.#deliveries,
        compression: this.#compression,
      },
    )
    this.#connections.add(connection)
    this.#timer ??= setInterval(() => this.tick(), TICK_MILLIS)
    this.#metrics.counters.realtimeConnectionsOpened.add()
    // Peers without a key can cause this, so the record has the lowest level.
    this.#gateway.log.debug('realtime.opened', {
      message: 'A Realtime connection was opened.',
      requestId: incoming.requestId,
      peer,
      version,
    })
    return {
      headers: {
        'sec-websocket-protocol': realtimeProtocol(version),
        'x-service-request-id': incoming.requestId,
        'x-content-type-options': 'nosniff',
      },
      session: connection,
    }
  }

  /**
   * Returns `unavailable` while no further connection is accepted, and `degraded` near the bound on
   * connections, while subscriptions find no memory, or while watched Queries fail, so that their
   * subscribers see old states.
   */
  health(): ComponentHealth {
    const { connectionsMax } = this.#limits
    const open = this.#counts.count(ALL)
    if (this.#isDraining || open >= connectionsMax) {
      return { name: 'realtime', status: 'unavailable' }
    }
    const isFull = open >= connectionsMax * NEARLY_FULL
    const isFailing = this.#gateway.engine.subscriptionStatistics().failing > 0
    const exhaustedFor = this.#gateway.system.monotonicMillis() - this.#exhaustedAt
    const isDegraded = isFull || isFailing || exhaustedFor < EXHAUSTED_MILLIS
    return { name: 'realtime', status: isDegraded ? 'degraded' : 'healthy' }
  }

  /** Requests all clients to reconnect, spread over time. Resolves once all connections closed. */
  async drain(): Promise<void> {
    this.#isDraining = true
    if (this.#connections.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onEmpty = resolve
    const { size } = this.#connections
    let position = 0
    for (const connection of this.#connections) {
      connection.reconnect(Math.floor((RECONNECT_MILLIS * position++) / size))
    }
    await promise
  }

  authenticated(connection: OpenConnection, caller: ApplicationCaller): void {
    const { clientId, credentialId } = caller
    const { connectionsPerCredentialMax } = this.#limits
    if (!this.#counts.take(keyOfCredential(credentialId), connectionsPerCredentialMax)) {
      throw busy('connections of a credential')
    }
    connection.countedFor = credentialId
    this.#gateway.log.info('realtime.authenticated', {
      message: 'A Realtime connection was authenticated.',
      requestId: connection.incoming.requestId,
      clientId,
      credentialId,
    })
  }

  /** Counts a connection of the peer. Throws BUSY beyond the bounds. */
  #count(peer: string): void {
    const { connectionsMax, connectionsPerPeerMax } = this.#limits
    if (!this.#counts.take(ALL, connectionsMax)) throw busy('connections')
    if (this.#counts.take(keyOfPeer(peer), connectionsPerPeerMax)) return
    this.#counts.release(ALL)
    throw busy('connections of a peer')
  }

  memoryExhausted(): void {
    this.#exhaustedAt = this.#gateway.system.monotonicMillis()
    this.#metrics.counters.realtimeMemoryRejections.add()
  }

  closed(connection: OpenConnection, { code, reason, subscriptions }: Ending): void {
    if (!this.#connections.delete(connection)) return
    const { incoming, authorization, ageMillis, countedFor, traffic } = connection
    this.#counts.release(ALL)
    this.#counts.release(keyOfPeer(peerOf(incoming.binding)))
    if (countedFor !== null) this.#counts.release(keyOfCredential(countedFor))
    const level = authorization === null ? 'debug' : 'info'
    this.#gateway.log[level]('realtime.closed', {
      message: `A Realtime connection was closed with code ${code}.`,
      requestId: incoming.requestId,
      clientId: authorization?.caller.clientId,
      credentialId: authorization?.caller.credentialId,
      closeCode: code,
      reason: reason ?? (code === CLOSE.noCloseFrame ? 'lost' : 'the client'),
      subscriptions,
      messagesReceived: traffic.messagesReceived,
      receivedBytes: traffic.receivedBytes,
      messagesSent: traffic.messagesSent,
      sentBytes: traffic.sentBytes,
      states: traffic.states,
      patches: traffic.patches,
      resyncs: traffic.resyncs,
      durationMillis: Math.round(ageMillis),
    })
    if (this.#connections.size > 0) return
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    this.#onEmpty?.()
  }

  /** Checks the times and the authorization of every connection. A timer calls it. */
  tick(): void {
    for (const connection of this.#connections) connection.tick()
  }
}

const ALL = 'connections'
const keyOfPeer = (peer: string) => `connections of the peer ${peer}`
const keyOfCredential = (id: CredentialId) => `connections of the credential ${id}`

function busy(limit: string): Fault {
  return new Fault('BUSY', { detail: limit })
}

/**
 * Returns the newest version of the subprotocol that the client offers. Throws UPGRADE_REQUIRED and
 * REQUEST_INVALID (RFC 6455, 4.2.1). The runtime does not report the version of HTTP, so a request
 * without Host counts as HTTP/1.0. An HTTP/1.0 request with all headers is upgraded.
 */
function checkHandshake({ headers }: Request): RealtimeVersion {
  if (headers.get('upgrade')?.toLowerCase() !== 'websocket') throw new Fault('UPGRADE_REQUIRED')
  if (headers.get('sec-websocket-version') !== '13') {
    throw new Fault('UPGRADE_REQUIRED', { detail: 'sec-websocket-version: 13' })
  }
  if (!headers.get('host')) throw new Fault('REQUEST_INVALID', { detail: 'host' })
  if (!listOf(headers.get('connection')).some(isUpgrade)) {
    throw new Fault('REQUEST_INVALID', { detail: 'connection: Upgrade' })
  }
  const offered = listOf(headers.get('sec-websocket-protocol'))
  const version = REALTIME_VERSIONS.findLast((each) => offered.includes(realtimeProtocol(each)))
  if (version === undefined) {
    const names = REALTIME_VERSIONS.map(realtimeProtocol).join(' or ')
    throw new Fault('REQUEST_INVALID', { detail: `sec-websocket-protocol: ${names}` })
  }
  return version
}

function isUpgrade(option: string): boolean {
  return option.toLowerCase() === 'upgrade'
}

/** Returns the elements of a list header. */
function listOf(header: string | null): string[] {
  return (header ?? '').split(',').map((element) => element.trim())
}
