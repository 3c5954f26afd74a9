/** Settings of Realtime. */
import type { MemorySettings } from './memory.ts'
import { type ProcessEnvironment, wholeNumber } from './sources.ts'
import type { PlainName } from './variables.ts'

const CONNECTIONS = { min: 1, max: 1_000_000, unit: '' }

const MIB = 1024 * 1024

/** Maximum of open Realtime connections, and of bytes that their subscriptions hold. */
export interface RealtimeSettings {
  readonly connectionsMax: number
  readonly connectionsPerCredentialMax: number
  readonly connectionsPerPeerMax: number
  readonly memoryBytesMax: number
}

/** Throws SERVER_CONFIGURATION_INVALID. */
export function readRealtime(
  environment: ProcessEnvironment,
  { realtimeMib }: MemorySettings,
): RealtimeSettings {
  const connections = (name: PlainName) => wholeNumber(environment, name, CONNECTIONS)
  return {
    connectionsMax: connections('SERVICE_REALTIME_CONNECTIONS_MAX'),
    connectionsPerCredentialMax: connections('SERVICE_REALTIME_CONNECTIONS_PER_CREDENTIAL_MAX'),
    connectionsPerPeerMax: connections('SERVICE_REALTIME_CONNECTIONS_PER_PEER_MAX'),
    memoryBytesMax: realtimeMib * MIB,
  }
}
