/** Settings of Realtime. */
import { type ProcessEnvironment, wholeNumber } from './sources.ts'
import type { PlainName } from './variables.ts'

const CONNECTIONS = { min: 1, max: 1_000_000, unit: '' }

/**
 * Bounds of the settings for memory that peers make the server hold. One peer may use a quarter,
 * and the largest response must fit into a quarter of the minimum.
 */
export const MEMORY_MIB = { min: 128, max: 65_536, unit: ' of MiB' }
const MIB = 1024 * 1024

/** Maximum of open Realtime connections, and of bytes that their subscriptions hold. */
export interface RealtimeSettings {
  readonly connectionsMax: number
  readonly connectionsPerCredentialMax: number
  readonly connectionsPerPeerMax: number
  readonly memoryBytesMax: number
}

/** Throws SERVER_CONFIGURATION_INVALID. */
export function readRealtime(environment: ProcessEnvironment): RealtimeSettings {
  const connections = (name: PlainName) => wholeNumber(environment, name, CONNECTIONS)
  return {
    connectionsMax: connections('SERVICE_REALTIME_CONNECTIONS_MAX'),
    connectionsPerCredentialMax: connections('SERVICE_REALTIME_CONNECTIONS_PER_CREDENTIAL_MAX'),
    connectionsPerPeerMax: connections('SERVICE_REALTIME_CONNECTIONS_PER_PEER_MAX'),
    memoryBytesMax: wholeNumber(environment, 'SERVICE_REALTIME_MEMORY_MIB', MEMORY_MIB) * MIB,
  }
}
