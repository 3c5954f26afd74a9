/**
 * Logs the resource usage of each Function once a minute. Functions come and go with Releases, so
 * they cannot be names of metrics. The CPU time of a call includes the Functions that it called in
 * its runner.
 */
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import { UsagePeriods } from '../../telemetry/usage-periods.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { RunnerOutcome } from '../calls/outcomes.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'

export interface FunctionUsageOptions {
  readonly system: Pick<System, 'monotonicMillis'>
  readonly log: Logger
  readonly metrics: Metrics
}

/** The call whose usage is recorded. */
interface UsedCall {
  readonly definition: FunctionManifest
  readonly prepared: PreparedRelease
}

/** The server's own measurements of a run. */
interface Measurements {
  /** Monotonic milliseconds. */
  readonly startedMillis: number
  /** Largest observed growth of the runner's memory; undefined where it was not observed. */
  readonly grownBytes: number | undefined
}

class Usage {
  /** Null for all Functions beyond the first 1,000 of a period. */
  readonly subject: { readonly releaseId: string; readonly function: string } | null
  runs = 0
  cpuMicros = 0
  /** Total wall time of the runs. */
  durationMicros = 0
  largestGrowthBytes = 0

  constructor(subject: Usage['subject']) {
    this.subject = subject
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

  /** Logs the usage since the last report. */
  stop(): void {
    this.#periods.stop()
  }

  /** Counts a run that ended now, unless it was lost or misspeculated and is repeated. */
  record(
    { definition, prepared }: UsedCall,
    outcome: RunnerOutcome,
    { startedMillis, grownBytes = 0 }: Measurements,
  ): void {
    if (outcome.kind === 'lost' || outcome.kind === 'misspeculated') return
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

  /** Logs one record for each Function that ran since the last report, and resets the counts. */
  report(): void {
    this.#periods.report()
  }

  #write({ subject, ...figures }: Usage): void {
    const message = `${subject?.function ?? 'Further Functions'} ran ${figures.runs} times.`
    this.#options.log.info('function.usage', {
      message,
      ...subject,
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
 * Returns the CPU time that the runner reports, limited to the elapsed time. A call that was
 * terminated for its CPU usage is charged the elapsed time, any other without a report nothing.
 */
function cpuOf(outcome: RunnerOutcome, durationMicros: number): number {
  const { kind } = outcome
  if ('cpuMicros' in outcome) return Math.min(outcome.cpuMicros ?? 0, durationMicros)
  return kind === 'limit' && outcome.limit === 'cpu' ? durationMicros : 0
}
