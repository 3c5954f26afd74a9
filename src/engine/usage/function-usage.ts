/**
 * What each Function used, as one log record a minute: Functions come and go with Releases, so they
 * are no names of metrics. The CPU time of a call is that of all that it called in its runner.
 */
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import { UsagePeriods } from '../../telemetry/usage-periods.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { Invocation } from '../invocations/invocations.ts'
import type { RunnerOutcome } from '../runners/runner-pool.ts'

export interface FunctionUsageOptions {
  readonly system: Pick<System, 'monotonicMillis'>
  readonly log: Logger
  readonly metrics: Metrics
}

/** What the server saw of a run. */
interface Observed {
  /** Monotonic milliseconds. */
  readonly startedMillis: number
  /** The most that it was seen to add to the runner's memory. */
  readonly grownBytes: number | undefined
}

class Usage {
  /** Null for all Functions beyond the first 1,000 of a period. */
  readonly of: { readonly releaseId: string; readonly function: string } | null
  runs = 0
  cpuMicros = 0
  /** Between the start of a run and its end, in the time that passed. */
  durationMicros = 0
  largestGrowthBytes = 0

  constructor(of: Usage['of']) {
    this.of = of
  }
}

export class FunctionUsage {
  readonly #options: FunctionUsageOptions
  readonly #runs: Metrics['counters']['functionRuns']
  readonly #cpu: Metrics['counters']['functionCpuMicros']
  readonly #periods: UsagePeriods<FunctionManifest, Usage>
  #largestGrowthBytes = 0

  constructor(options: FunctionUsageOptions) {
    const { metrics } = options
    this.#options = options
    this.#runs = metrics.counters.functionRuns
    this.#cpu = metrics.counters.functionCpuMicros
    metrics.addSource(() => ({ largestFunctionGrowthBytes: this.#largestGrowthBytes }))
    this.#periods = new UsagePeriods({
      others: () => new Usage(null),
      write: (usage) => this.#write(usage),
    })
  }

  /** Writes what the last period still lacks. */
  stop(): void {
    this.#periods.stop()
  }

  /** Counts a run that ended now. One that is lost or void is run again. */
  record(
    { definition, prepared }: Pick<Invocation, 'definition' | 'prepared'>,
    outcome: RunnerOutcome,
    { startedMillis, grownBytes = 0 }: Observed,
  ): void {
    if (outcome.kind === 'lost' || outcome.kind === 'void') return
    const durationMicros = (this.#options.system.monotonicMillis() - startedMillis) * 1000
    const cpuMicros = cpuOf(outcome, durationMicros)
    this.#runs.add()
    this.#cpu.add(cpuMicros)
    const usage = this.#usageOf(definition, prepared.release.releaseId)
    usage.runs += 1
    usage.cpuMicros += cpuMicros
    usage.durationMicros += durationMicros
    if (grownBytes > usage.largestGrowthBytes) usage.largestGrowthBytes = grownBytes
    if (grownBytes > this.#largestGrowthBytes) this.#largestGrowthBytes = grownBytes
  }

  /** Writes a record for each Function that ran since the last time, and begins anew. */
  report(): void {
    this.#periods.report()
  }

  #write({ of, ...figures }: Usage): void {
    const message = `${of?.function ?? 'Further Functions'} ran ${figures.runs} times.`
    this.#options.log.info('function.usage', {
      message,
      ...of,
      ...figures,
      cpuMicros: Math.round(figures.cpuMicros),
      durationMicros: Math.round(figures.durationMicros),
    })
  }

  #usageOf(definition: FunctionManifest, releaseId: string): Usage {
    const known = this.#periods.find(definition)
    if (known !== undefined) return known
    return this.#periods.begin(definition, new Usage({ releaseId, function: definition.name }))
  }
}

/**
 * The runner's own word, at most for the time that passed. Of a call that was killed because it
 * took too much, nobody told more than that it kept the CPU; of others that did not end, nothing.
 */
function cpuOf(outcome: RunnerOutcome, durationMicros: number): number {
  const { kind } = outcome
  if ('cpuMicros' in outcome) return Math.min(outcome.cpuMicros ?? 0, durationMicros)
  return kind === 'limit' && outcome.limit === 'cpu' ? durationMicros : 0
}
