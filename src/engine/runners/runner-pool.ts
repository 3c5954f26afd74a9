/**
 * The pool of processes that execute Functions. Each process loads one Release and never another.
 * While Functions are called, one spare process without a Release avoids that calls wait for a
 * process to start. Actions have separate processes with a separate limit, so that a long or
 * terminated Action does not delay Queries.
 */
import { Fault } from '../../errors/fault.ts'
import type { SpawnRunner } from '../../runner/processes.ts'
import { GROWTH_BYTES_MAX, SELF_TEST_FLAG, THREADS_MAX } from '../../runner/protocol/messages.ts'
import { DEFAULT_PLAN, type MemoryPlan } from '../../system/memory/memory-plan.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { Json } from '../../value/strict-json.ts'
import { limitText } from '../calls/limit-texts.ts'
import type {
  LoadFailure,
  RunnerCall,
  RunnerFate,
  RunnerHost,
  RunnerOutcome,
} from '../calls/outcomes.ts'
import {
  ACTION_CPU_MILLIS_MAX,
  ACTIONS_MAX,
  CALL_CPU_MILLIS_MAX,
  CALL_GROWTH_BYTES_MAX,
  LOAD_CPU_MILLIS_MAX,
  NESTED_ACTIONS_MAX,
  OPERATIONS_MAX,
  RESULT_BYTES_MAX,
  RUNNER_GROWTH_BYTES_MAX,
} from '../limits.ts'
import type { ReleaseCode } from '../releases/executable-release.ts'
import {
  type ContainmentLevel,
  type ContainmentRule,
  checkContainment,
  levelOf,
} from './containment-checks.ts'
import { type GroupLimits, RunnerGroup } from './groups.ts'
import { LoneCalls } from './lone-calls.ts'
import type { RunnerLimits, RunnerRole } from './ports.ts'
import { Runner } from './runner.ts'
import { RunnerRegistry } from './runner-registry.ts'

export interface PoolLimits extends RunnerLimits, GroupLimits {
  /** Most runners of all Releases. Idle ones are stopped for others. */
  readonly runnersOfAll: number
  /** Runners of one Release for Actions. */
  readonly actionRunners: number
  readonly actionCallsPerRunner: number
  readonly actionRunnersOfAll: number
  /** Milliseconds after the last call of a served Release until its runners may be stopped. */
  readonly idleMillis: number
  /** Milliseconds after the last call of any other Release until its runners are stopped. */
  readonly calledMillis: number
  /** Milliseconds until the runners of a Release are stopped that was loaded, but never called. */
  readonly uncalledMillis: number
  /** Milliseconds until the runners of a Release are stopped that is no longer served. */
  readonly replacedMillis: number
  /** Milliseconds after the last call or check of a Release until the spare runner is stopped. */
  readonly spareMillis: number
}

export interface RunnerPoolOptions {
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
  readonly spawn: SpawnRunner
  /** Runners of one Release. Default: that of the memory plan. */
  readonly size?: number
  readonly memory?: MemoryPlan | undefined
  readonly limits?: Partial<PoolLimits>
}

export interface RunnerPool {
  /** Tests the sandbox with the known escapes. Throws SERVER_SANDBOX_UNAVAILABLE. */
  start(rule: ContainmentRule): Promise<ContainmentLevel>
  /** Throws BUSY, UNAVAILABLE, and errors of the host other than OperationError. */
  invoke(code: ReleaseCode, call: RunnerCall, host: RunnerHost): Promise<RunnerOutcome>
  /**
   * Returns the description that the code provides, for parseDescription. Throws FUNCTION_FAILED
   * and LIMIT_EXCEEDED for failures of the code; DEADLINE_EXCEEDED, BUSY and UNAVAILABLE for
   * others.
   */
  describe(code: ReleaseCode): Promise<Json>
  /**
   * Resolves when a runner of each role has loaded the code, by default one for Queries and
   * Mutations. Throws like `describe`.
   */
  warm(code: ReleaseCode, roles?: readonly RunnerRole[]): Promise<void>
  /** Returns whether a runner of each role has loaded the Release. */
  isWarm(releaseId: ReleaseId, roles: readonly RunnerRole[]): boolean
  /** Stops the runners of a Release. Calls in flight are lost. */
  forget(releaseId: ReleaseId): void
  /**
   * Names the Releases that are served. Idle runners of others end. Until the first call all count
   * as served.
   */
  markServed(releases: ReadonlySet<ReleaseId>): void
  /** Stops the runners of all other Releases. */
  retainOnly(releases: { has(releaseId: ReleaseId): boolean }): void
  /** Lets idle runners return memory; `withDocuments` also that of documents they cache. */
  trim(withDocuments: boolean): void
  close(): Promise<void>
  statistics(): PoolStatistics
  /** Bytes of replies that runners of Actions have not read yet. */
  actionBacklogBytes(): number
  /** Returns the processes of the runners. */
  pids(): readonly number[]
  /** Reads the CPU time of all runners since the start, and their resident memory. */
  usage(): { readonly cpuMicros: number; readonly residentBytes: number }
}

export interface PoolStatistics {
  readonly containment: ContainmentLevel | null
  readonly releases: number
  readonly runners: number
  readonly transactionRunners: number
  readonly actionRunners: number
  readonly inFlight: number
  /** Runners that broke or were killed within the last minute. */
  readonly recentBreakdowns: number
  /** Consecutive starts of a process that failed. */
  readonly failedStarts: number
}

const ROLES: readonly RunnerRole[] = ['transactions', 'actions']
const MEBIBYTE = 1024 * 1024
/** Interval of the limit checks, which ends a call within 200 ms of its limit. */
const TICK_MILLIS = 25
/** Most recently used Releases whose runners are kept while idle. */
const KEPT_RELEASES = 2
/** Time to load and describe a Release. */
const DESCRIBE_MILLIS = 10_000

const LIMITS: Omit<PoolLimits, keyof ReturnType<typeof processLimits>> = {
  callCpuMillis: CALL_CPU_MILLIS_MAX,
  actionCpuMillis: ACTION_CPU_MILLIS_MAX,
  actionRunners: 2,
  // A nested Action must find a place, since its caller waits and keeps its own.
  actionCallsPerRunner: ACTIONS_MAX + NESTED_ACTIONS_MAX,
  loadCpuMillis: LOAD_CPU_MILLIS_MAX,
  callGrowthBytes: CALL_GROWTH_BYTES_MAX,
  runnerGrowthBytes: RUNNER_GROWTH_BYTES_MAX,
  processGrowthBytes: GROWTH_BYTES_MAX,
  processThreads: THREADS_MAX,
  unexplainedCpuMillis: 10_000,
  resultBytes: RESULT_BYTES_MAX,
  fixedClock: false,
  operations: OPERATIONS_MAX,
  backlogBytes: 32 * MEBIBYTE,
  deferredCharacters: 32 * MEBIBYTE,
  startMillis: 30_000,
  callsPerRunner: 128,
  waiting: 4_096,
  keptGrowthBytes: 128 * MEBIBYTE,
  isolationMillis: 10_000,
  restartMillis: 100,
  restartMillisMax: 10_000,
  surplusMillis: 5_000,
  idleMillis: 300_000,
  calledMillis: 60_000,
  uncalledMillis: 5_000,
  replacedMillis: 1_000,
  spareMillis: 30_000,
}

export function createRunnerPool(options: RunnerPoolOptions): RunnerPool {
  return new Pool(options)
}

class Pool implements RunnerPool {
  readonly #options: RunnerPoolOptions
  readonly #limits: PoolLimits
  readonly #groups: Readonly<Record<RunnerRole, Map<ReleaseId, RunnerGroup>>> = {
    transactions: new Map(),
    actions: new Map(),
  }
  readonly #registry: RunnerRegistry
  #spare: Promise<Runner | null> | null = null
  readonly #startedAtMillis: number
  /** Monotonic milliseconds of the last call or check of a Release. */
  #usedAtMillis = Number.NEGATIVE_INFINITY
  #containment: ContainmentLevel | null = null
  #failedStarts = 0
  /** Null until it is known what is served. */
  #served: ReadonlySet<ReleaseId> | null = null
  readonly #loneCalls = new LoneCalls()
  readonly #timer: ReturnType<typeof setInterval>
  #closed = false

  constructor(options: RunnerPoolOptions) {
    this.#options = options
    this.#startedAtMillis = options.system.monotonicMillis()
    this.#registry = new RunnerRegistry(options.metrics)
    this.#limits = { ...LIMITS, ...processLimits(options), ...options.limits }
    this.#timer = setInterval(() => this.#tick(), TICK_MILLIS)
  }

  async start(rule: ContainmentRule): Promise<ContainmentLevel> {
    try {
      const tested = this.#spawn([SELF_TEST_FLAG])
      this.#containment = await checkContainment(tested, rule, this.#options.log)
      this.#spare = Promise.resolve(tested)
      return this.#containment
    } catch (error) {
      await this.close()
      if (error instanceof Fault) throw error
      throw new Fault('SERVER_SANDBOX_UNAVAILABLE', {
        detail: 'the first runner failed to start',
        cause: error,
      })
    }
  }

  invoke(code: ReleaseCode, call: RunnerCall, host: RunnerHost): Promise<RunnerOutcome> {
    const role = call.kind === 'action' ? 'actions' : 'transactions'
    const group = this.#group(code, role)
    group.keptUntilMillis = group.usedAtMillis + this.#limits.calledMillis
    this.#usedAtMillis = group.usedAtMillis
    return group.invoke(call, host)
  }

  async describe(code: ReleaseCode): Promise<Json> {
    const group = this.#group(code, 'transactions')
    this.#usedAtMillis = group.usedAtMillis
    const outcome = await group.describe(this.#describeDeadline())
    if (outcome.kind !== 'described') throw loadFault(outcome)
    return outcome.description as Json
  }

  async warm(code: ReleaseCode, roles: readonly RunnerRole[] = ['transactions']): Promise<void> {
    for (const role of roles) {
      const failure = await this.#group(code, role).warm(this.#describeDeadline())
      if (failure !== null) throw loadFault(failure)
    }
  }

  isWarm(releaseId: ReleaseId, roles: readonly RunnerRole[]): boolean {
    return roles.every((role) => this.#groups[role].get(releaseId)?.isReady === true)
  }

  forget(releaseId: ReleaseId): void {
    for (const role of ROLES) this.#forget(releaseId, role)
  }

  markServed(releases: ReadonlySet<ReleaseId>): void {
    const keptUntil = this.#options.system.monotonicMillis() + this.#limits.replacedMillis
    for (const role of ROLES) {
      for (const [releaseId, group] of this.#groups[role]) {
        const isReplaced = this.#served?.has(releaseId) === true && !releases.has(releaseId)
        if (isReplaced) group.keptUntilMillis = keptUntil
      }
    }
    this.#served = releases
  }

  retainOnly(releases: { has(releaseId: ReleaseId): boolean }): void {
    for (const role of ROLES) {
      const others = [...this.#groups[role].keys()].filter((id) => !releases.has(id))
      for (const releaseId of others) this.#forget(releaseId, role)
    }
  }

  trim(withDocuments: boolean): void {
    for (const group of this.#allGroups()) group.trim(withDocuments)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    for (const group of this.#allGroups()) group.close()
    for (const role of ROLES) this.#groups[role].clear()
    for (const runner of this.#registry.live) runner.stop()
  }

  statistics(): PoolStatistics {
    const groups = this.#allGroups()
    const [transactionRunners, actionRunners] = [this.#size('transactions'), this.#size('actions')]
    return {
      containment: this.#containment,
      releases: new Set(ROLES.flatMap((role) => [...this.#groups[role].keys()])).size,
      runners: transactionRunners + actionRunners,
      transactionRunners,
      actionRunners,
      inFlight: groups.reduce((sum, group) => sum + group.inFlight, 0),
      recentBreakdowns: this.#registry.recentBreakdowns(this.#options.system.monotonicMillis()),
      failedStarts: this.#failedStarts,
    }
  }

  actionBacklogBytes(): number {
    let bytes = 0
    for (const group of this.#groups.actions.values()) bytes += group.backlogBytes
    return bytes
  }

  pids(): readonly number[] {
    return [...this.#registry.live].map(({ process }) => process.pid)
  }

  usage() {
    return this.#registry.usage()
  }

  #size(role: RunnerRole): number {
    return [...this.#groups[role].values()].reduce((sum, group) => sum + group.size, 0)
  }

  #allGroups(): RunnerGroup[] {
    return ROLES.flatMap((role) => [...this.#groups[role].values()])
  }

  #forget(releaseId: ReleaseId, role: RunnerRole): void {
    this.#groups[role].get(releaseId)?.close()
    this.#groups[role].delete(releaseId)
  }

  #describeDeadline(): number {
    return this.#options.system.monotonicMillis() + DESCRIBE_MILLIS
  }

  #group(code: ReleaseCode, role: RunnerRole): RunnerGroup {
    const groups = this.#groups[role]
    let group = groups.get(code.releaseId)
    if (group === undefined) {
      const { system } = this.#options
      const limits = role === 'actions' ? this.#actionLimits : this.#limits
      const take = () => this.#take(role)
      group = new RunnerGroup(code, { role, take, limits, system })
      if (this.#closed) group.close()
      else groups.set(code.releaseId, group)
    }
    const now = this.#options.system.monotonicMillis()
    group.usedAtMillis = now
    group.keptUntilMillis = Math.max(group.keptUntilMillis, now + this.#limits.uncalledMillis)
    return group
  }

  get #actionLimits(): GroupLimits {
    const { actionRunners: runners, actionCallsPerRunner: callsPerRunner } = this.#limits
    return { ...this.#limits, runners, callsPerRunner }
  }

  #tick(): void {
    for (const runner of this.#registry.live) runner.tick()
    const now = this.#options.system.monotonicMillis()
    this.#loneCalls.tick(this.#registry.live, now)
    const groups = this.#allGroups()
    for (const group of groups) group.tick(now)
    this.#keepSpare(groups, now)
    for (const role of ROLES) {
      this.#endUnserved(role, now)
      this.#endIdle(role, now - this.#limits.idleMillis)
    }
  }

  /** Stops idle runners of Releases that no Channel or policy serves, or ever did. */
  #endUnserved(role: RunnerRole, now: number): void {
    if (this.#served === null) return
    for (const [releaseId, group] of this.#groups[role]) {
      if (this.#served.has(releaseId) || now < group.keptUntilMillis) continue
      if (group.inFlight === 0 && !group.isStarting) this.#forget(releaseId, role)
    }
  }

  /** Stops idle runners of Releases that are served, but rarely called. */
  #endIdle(role: RunnerRole, before: number): void {
    const groups = [...this.#groups[role]]
    if (groups.length <= KEPT_RELEASES) return
    groups.sort(([, a], [, b]) => b.usedAtMillis - a.usedAtMillis)
    for (const [releaseId, group] of groups.slice(KEPT_RELEASES)) {
      if (group.usedAtMillis < before && group.inFlight === 0) this.#forget(releaseId, role)
    }
  }

  #spawn(flags: readonly string[] = []): Runner {
    const { system, log, spawn } = this.#options
    const onEnd = (fate: RunnerFate | null) =>
      this.#registry.end(runner, fate, system.monotonicMillis())
    const runner: Runner = new Runner({ system, log, spawn, limits: this.#limits, onEnd }, flags)
    this.#registry.begin(runner)
    return runner
  }

  /**
   * Starts a runner. Null where it fails, or has weaker containment than the tested one. One that
   * is killed from outside meanwhile is returned: its load is lost, so that calls wait for another.
   */
  async #startRunner(): Promise<Runner | null> {
    const { log } = this.#options
    try {
      const runner = this.#spawn()
      const hello = await runner.hello
      this.#failedStarts = hello === null ? this.#failedStarts + 1 : 0
      if (hello === null) return runner.isKilled ? runner : null
      const expected = this.#containment
      if (expected === null || levelOf(hello.containment) === expected) return runner
      log.error('runner.containment', {
        message: `A runner was stopped, since its containment is not ${expected}.`,
      })
      runner.stop()
      return null
    } catch (error) {
      this.#failedStarts += 1
      log.error('runner.start', { message: 'A runner failed to start.', error })
      return null
    }
  }

  /** Takes the spare runner, or starts one where there is none. */
  async #take(role: RunnerRole): Promise<Runner | null> {
    if (!this.#makeRoom(role)) return null
    // Removed before it is awaited, so that two groups never get one runner.
    const spare = this.#spare
    this.#spare = null
    let runner = await spare
    if (runner === null || runner.isEnded) runner = await this.#startRunner()
    if (this.#closed) runner?.stop()
    return runner
  }

  /** Starts the spare runner if Functions are called, and stops it if they no longer are. */
  #keepSpare(groups: readonly RunnerGroup[], now: number): void {
    const since = now - this.#limits.spareMillis
    if (this.#spare === null) {
      // A process that starts beside the one of a Release would delay it.
      const isSettled = groups.some(({ isReady }) => isReady) && !groups.some(isStarting)
      if (this.#usedAtMillis > since && isSettled) this.#spare = this.#startRunner()
    } else if (Math.max(this.#usedAtMillis, this.#startedAtMillis) <= since) {
      void this.#spare.then((runner) => runner?.stop())
      this.#spare = null
    }
  }

  /** Stops idle runners above the limit. Returns false if all runners of the role are busy. */
  #makeRoom(role: RunnerRole): boolean {
    const { runnersOfAll, actionRunnersOfAll } = this.#limits
    const most = role === 'actions' ? actionRunnersOfAll : runnersOfAll
    const groups = this.#groups[role]
    // The size includes the requested runner.
    while (this.#size(role) > most) {
      let oldest: readonly [ReleaseId, RunnerGroup] | null = null
      for (const entry of groups) {
        const [, group] = entry
        if (group.inFlight > 0 || group.size === 0) continue
        if (oldest === null || group.usedAtMillis < oldest[1].usedAtMillis) oldest = entry
      }
      if (oldest === null) return false
      this.#forget(oldest[0], role)
    }
    return true
  }
}

function isStarting(group: RunnerGroup): boolean {
  return group.isStarting
}

function processLimits({ size, memory = DEFAULT_PLAN }: RunnerPoolOptions) {
  const { runners, runnersOfAll, actionRunnersOfAll, runnerCharacters: sentCharacters } = memory
  if (size === undefined) return { runners, runnersOfAll, actionRunnersOfAll, sentCharacters }
  const ofAll = { runnersOfAll: 4 * size + 4, actionRunnersOfAll: 2 * size + 2 }
  return { runners: size, ...ofAll, sentCharacters }
}

function loadFault(failure: LoadFailure): Fault {
  switch (failure.kind) {
    case 'threw': {
      const { name, message, stack } = failure.error
      return new Fault('FUNCTION_FAILED', {
        detail: `${name}: ${message}\n${stack}`,
        // Loading has no access to documents or secrets, so the author may read the error.
        violations: [{ path: 'code', rule: `${name}: ${message}` }],
      })
    }
    case 'limit':
      return new Fault('LIMIT_EXCEEDED', { detail: limitText(failure.limit, 'load') })
    case 'broken':
      return new Fault('FUNCTION_FAILED', { detail: failure.detail })
    case 'deadline':
      return new Fault('DEADLINE_EXCEEDED')
    case 'lost':
    case 'cancelled':
      return new Fault('UNAVAILABLE', { detail: 'the runner ended' })
  }
}
