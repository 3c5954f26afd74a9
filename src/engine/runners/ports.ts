/** What a runner needs of those around it. */
import type { Containment, ProbeResult } from '../../runner/messages.ts'
import type { SpawnRunner } from '../../runner/processes.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { WatchLimits } from './limits-watch.ts'
import type { RunnerFate } from './outcomes.ts'
import type { Runner } from './runner.ts'

/** What a runner executes: Actions, or Queries and Mutations. */
export type RunnerRole = 'transactions' | 'actions'

export interface RunnerLimits extends WatchLimits {
  /** Milliseconds of CPU that one Action may take. */
  readonly actionCpuMillis: number
  readonly resultBytes: number
  /** Operations of one call. */
  readonly operations: number
  /** Bytes of replies that may wait to be written before further operations wait too. */
  readonly backlogBytes: number
  /** Characters of operations that may wait so. */
  readonly deferredCharacters: number
  /** Milliseconds from start to hello, and from load to loaded. */
  readonly startMillis: number
}

export interface RunnerPorts {
  readonly system: System
  readonly log: Logger
  readonly spawn: SpawnRunner
  readonly limits: RunnerLimits
  /** Whoever owns it or not: the process is no longer used. Null: it was stopped. */
  onEnd(runner: Runner, fate: RunnerFate | null): void
}

export interface Hello {
  readonly containment: Containment
  readonly probes: readonly ProbeResult[] | null
}

/** Whose fault the end of a runner was. Unknown: calls were lost, and none was found at fault. */
export type Attribution = { readonly function: string } | 'nobody' | 'unknown'

/** What a runner tells the group that it works for. */
export interface RunnerOwner {
  /** A call ended, so there is room. */
  onRoom(runner: Runner): void
  /** It takes no more calls, and this is the last that it tells. */
  onEnd(runner: Runner, blame: Attribution): void
}
