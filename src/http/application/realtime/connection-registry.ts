/** The interfaces between the Realtime connections and their registry. */
import type { MemoryBudget } from '../../../system/memory/memory-budget.ts'
import type { CredentialId } from '../../../value/ids.ts'
import type { RealtimeVersion } from '../../../wire/realtime.ts'
import type { ApplicationCaller } from '../incoming.ts'
import type { Authorization, OpenedBy } from './authorizations.ts'
import type { CompressionTime } from './compression-time.ts'
import type { Deliveries } from './delivery-slices.ts'
import type { Traffic, TrafficCounts } from './traffic.ts'

/** A connection as the registry knows it. */
export interface OpenConnection {
  readonly incoming: OpenedBy
  readonly version: RealtimeVersion
  readonly traffic: TrafficCounts
  readonly authorization: Authorization | null
  /** Milliseconds since the upgrade. */
  readonly ageMillis: number
  /** The credential that the connection counts against; null before the authentication. */
  countedFor: CredentialId | null
  /** Checks the times and the authorization. Called four times a second. */
  tick(): void
  /** Requests the client to reconnect, and closes the connection after that time. */
  reconnect(afterMillis: number): void
}

/** The registry of all connections, to which each reports. */
export interface ConnectionRegistry {
  /** Counts the connection for its credential. Throws BUSY beyond the bound. */
  authenticated(connection: OpenConnection, caller: ApplicationCaller): void
  /** Records that a subscription ended because memory was exhausted. */
  memoryExhausted(): void
  closed(connection: OpenConnection, ending: Ending): void
}

export interface ConnectionParts {
  /** The version of the subprotocol that was selected. */
  readonly version: RealtimeVersion
  readonly registry: ConnectionRegistry
  readonly traffic: Traffic
  /** The memory of all subscriptions. */
  readonly memory: MemoryBudget
  readonly deliveries: Deliveries
  /** The time that compression may take on all connections. */
  readonly compression: CompressionTime
}

export interface Ending {
  /** The close code; 1006 if there was no close frame. */
  readonly code: number
  /** The error code or reason of the server; null if the peer or the network ended it. */
  readonly reason: string | null
  /** Number of subscriptions that ended with the connection. */
  readonly subscriptions: number
}
