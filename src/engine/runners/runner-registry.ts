/** How runners begin and end, all of them together. */
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { RunnerFate } from './outcomes.ts'
import type { Runner } from './runner.ts'

const RECENT_MILLIS = 60_000
/** More within that time tell nothing new. */
const RECENT_MAX = 100

export class RunnerRegistry {
  readonly live = new Set<Runner>()
  readonly #counters: Metrics['counters']
  /** Of those that ended. */
  #cpuMicros = 0
  /** Monotonic milliseconds at which runners ended that nobody stopped, ascending. */
  readonly #breakdowns: number[] = []

  constructor({ counters }: Metrics) {
    this.#counters = counters
  }

  begin(runner: Runner): void {
    this.#counters.runnersStarted.add()
    this.live.add(runner)
  }

  /** `fate` is null for one that is no longer needed. */
  end(runner: Runner, fate: RunnerFate | null, nowMillis: number): void {
    this.live.delete(runner)
    this.#cpuMicros += runner.watch.usage.cpuMicros ?? 0
    this.#counterOf(fate).add()
    if (fate === null) return
    this.#breakdowns.push(nowMillis)
    if (this.#breakdowns.length > RECENT_MAX) this.#breakdowns.shift()
  }

  /** Runners that broke or were killed within the last minute. */
  recentBreakdowns(nowMillis: number): number {
    return this.#breakdowns.filter((atMillis) => nowMillis - atMillis < RECENT_MILLIS).length
  }

  /** Asks the kernel. Time of the CPU is that of ended runners too. */
  usage(): { readonly cpuMicros: number; readonly residentBytes: number } {
    let cpuMicros = this.#cpuMicros
    let residentBytes = 0
    for (const { watch } of this.live) {
      watch.look()
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
