/** Counts the starts and ends of all runners, and their resource usage. */
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { RunnerFate } from '../calls/outcomes.ts'
import type { Runner } from './runner.ts'

const RECENT_MILLIS = 60_000
/** Most runner failures that are remembered. */
const RECENT_MAX = 100

export class RunnerRegistry {
  readonly live = new Set<Runner>()
  readonly #counters: Metrics['counters']
  /** CPU time of the runners that have ended. */
  #cpuMicros = 0
  /** Monotonic milliseconds of runner failures, ascending. */
  readonly #breakdowns: number[] = []

  constructor({ counters }: Metrics) {
    this.#counters = counters
  }

  begin(runner: Runner): void {
    this.#counters.runnersStarted.add()
    this.live.add(runner)
  }

  /** `fate` is null for a runner that was stopped because it is no longer needed. */
  end(runner: Runner, fate: RunnerFate | null, nowMillis: number): void {
    this.live.delete(runner)
    this.#cpuMicros += runner.watch.usage.cpuMicros ?? 0
    this.#counterOf(fate).add()
    if (fate === null) return
    this.#breakdowns.push(nowMillis)
    if (this.#breakdowns.length > RECENT_MAX) this.#breakdowns.shift()
  }

  /** Returns the number of runners that failed or were killed within the last minute. */
  recentBreakdowns(nowMillis: number): number {
    return this.#breakdowns.filter((atMillis) => nowMillis - atMillis < RECENT_MILLIS).length
  }

  /** Reads the usage from the kernel. The CPU time includes runners that have ended. */
  usage(): { readonly cpuMicros: number; readonly residentBytes: number } {
    let cpuMicros = this.#cpuMicros
    let residentBytes = 0
    for (const { watch } of this.live) {
      watch.sampleUsage()
      cpuMicros += watch.usage.cpuMicros ?? 0
      residentBytes += watch.usage.residentBytes ?? 0
    }
    return { cpuMicros, residentBytes }
  }

  #counterOf(fate: RunnerFate | null) {
    const { runnersStopped, runnersKilledForCpu, runnersKilledForMemory } = this.#counters
    if (fate === null) return runnersStopped
    if (fate.kind === 'broken') return this.#counters.runnersBroken
    return fate.limit === 'cpu' ? runnersKilledForCpu : runnersKilledForMemory
  }
}
