/** Settings of memory. */

import { machineMemoryBytes } from '../system/memory/machine-memory.ts'
import {
  defaultPeerMib,
  defaultTargetMib,
  engineProcesses,
  leastTargetMib,
  MEMORY_TARGET_MIB_MAX,
} from '../system/memory/memory-plan.ts'
import { type ProcessEnvironment, readPlain, wholeNumber } from './sources.ts'
import type { PlainName } from './variables.ts'

/**
 * Bounds of the settings for memory that peers make the server hold. One peer may use a quarter,
 * and the largest response must fit into a quarter of the minimum.
 */
const PEER_MIB = { min: 128, max: 65_536, unit: ' of MiB' }

export interface MemorySettings {
  /** MiB that the server aims at with all its processes. */
  readonly targetMib: number
  /** Bound of request bodies that are incomplete or not yet parsed, on both origins together. */
  readonly requestMib: number
  /** Bound of responses that are not yet sent, on both origins together. */
  readonly responseMib: number
  /** Bound of what Realtime subscriptions hold. */
  readonly realtimeMib: number
}

/** Throws SERVER_CONFIGURATION_INVALID. */
export function readMemory(
  environment: ProcessEnvironment,
  applicationProcesses: number,
): MemorySettings {
  const targetMib = readTarget(environment, engineProcesses(applicationProcesses))
  const peers = (name: PlainName): number =>
    readPlain(environment, name) === null
      ? defaultPeerMib(targetMib)
      : wholeNumber(environment, name, PEER_MIB)
  return {
    targetMib,
    requestMib: peers('SERVICE_REQUEST_MEMORY_MIB'),
    responseMib: peers('SERVICE_RESPONSE_MEMORY_MIB'),
    realtimeMib: peers('SERVICE_REALTIME_MEMORY_MIB'),
  }
}

function readTarget(environment: ProcessEnvironment, processes: number): number {
  const name = 'SERVICE_MEMORY_TARGET'
  if (readPlain(environment, name) === null) {
    return defaultTargetMib(machineMemoryBytes(), processes)
  }
  const unit = processes === 1 ? ' of MiB' : ` of MiB, for ${processes} processes,`
  const bounds = { min: leastTargetMib(processes), max: MEMORY_TARGET_MIB_MAX, unit }
  return wholeNumber(environment, name, bounds)
}
