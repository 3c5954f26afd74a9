/** The parts that all Realtime connections share. */
import type { MemoryBudget } from '../../../system/memory-budget.ts'
import type { CredentialId } from '../../../value/ids.ts'
import type { ApplicationCaller } from '../incoming.ts'
import type { Authorization, OpenedBy } from './authorizations.ts'
import type { Deliveries } from './deliveries.ts'
import type { Traffic, TrafficCounts } from './traffic.ts'

/** A connection as the registry knows it. */
export interface OpenConnection {
  readonly incoming: OpenedBy
  readonly traffic: TrafficCounts
  readonly authorization: Authorization | null
  /** Milliseconds since the upgrade. */
  readonly ageMillis: number
  /** The credential that the registry counts it for; null before the authentication. */
  countedFor: CredentialId | null
  /** Checks times and whether its authorization still holds. Called four times a second. */
  tick(): void
  /** Tells the client to connect again, and closes after that time. */
  reconnect(afterMillis: number): void
}

/** The registry of all connections, to which each reports. */
export interface ConnectionRegistry {
  /** Counts the connection for its credential. Throws BUSY beyond the bound. */
  authenticated(connection: OpenConnection, caller: ApplicationCaller): void
  /** A subscription has ended for want of memory. */
  memoryExhausted(): void
  closed(connection: OpenConnection, ending: Ending): void
}

export interface ConnectionParts {
  readonly registry: ConnectionRegistry
  readonly traffic: Traffic
  /** The memory of all subscriptions. */
  readonly memory: MemoryBudget
  readonly deliveries: Deliveries
}

export interface Ending {
  /** Close code; 1006 where there was no close frame. */
  readonly code: number
  /** Error code or other reason of the server; null where the peer or the network ended it. */
  readonly reason: string | null
  /** Subscriptions that ended with it. */
  readonly subscriptions: number
}
