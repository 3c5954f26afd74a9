/** The interfaces between a runner, its pool and its group. */
import type { SpawnRunner } from '../../runner/processes.ts'
import type { Containment, ProbeResult } from '../../runner/protocol/messages.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { RunnerFate } from '../calls/outcomes.ts'
import type { WatchLimits } from './limits-watch.ts'

/** The kind of Functions that a runner executes: Actions, or Queries and Mutations. */
export type RunnerRole = 'transactions' | 'actions'

export interface RunnerLimits extends WatchLimits {
  /** Milliseconds of CPU that one Action may take. */
  readonly actionCpuMillis: number
  readonly resultBytes: number
  /** Most characters of documents that a runner keeps. */
  readonly sentCharacters: number
  /** `LoadLimits.fixedClock`. */
  readonly fixedClock: boolean
  /** Most operations of one call. */
  readonly operations: number
  /** Bytes of unread replies beyond which further operations are deferred. */
  readonly backlogBytes: number
  /** Most characters of deferred operations. */
  readonly deferredCharacters: number
  /** Most milliseconds from start to hello, and from load to loaded. */
  readonly startMillis: number
}

export interface RunnerPorts {
  readonly system: System
  readonly log: Logger
  readonly spawn: SpawnRunner
  readonly limits: RunnerLimits
  /** Called when the process has ended, with or without an owner. `fate` is null for a stop. */
  onEnd(fate: RunnerFate | null): void
}

export interface Hello {
  readonly containment: Containment
  readonly probes: readonly ProbeResult[] | null
}

/**
 * The Function that is responsible for the end of a runner: `none` where no call was lost,
 * `unknown` where calls were lost and none was found responsible.
 */
export type Attribution = { readonly function: string } | 'none' | 'unknown'

/** The events of one runner, for the group that owns it. */
export interface RunnerOwner {
  /** A call ended, so the runner can take another one. */
  onRoom(): void
  /** The runner takes no more calls. This is its last event. */
  onEnd(attribution: Attribution): void
}
