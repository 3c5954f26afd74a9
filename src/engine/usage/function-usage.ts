/**
 * What each Function used, as one log record a minute: Functions come and go with Releases, so they
 * are no names of metrics. The CPU time of a call is that of all that it called in its runner.
 */
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { Invocation } from '../invocations.ts'
import type { RunnerOutcome } from '../runner-pool.ts'

const PERIOD_MILLIS = 60_000
/** Functions with a record of their own in one period; the others share one. */
const FUNCTIONS_MAX = 1_000

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
  runs = 0
  cpuMicros = 0
  /** Between the start of a run and its end, in the time that passed. */
  durationMicros = 0
  largestGrowthBytes = 0
}

export class FunctionUsage {
  readonly #options: FunctionUsageOptions
  readonly #runs: Metrics['counters']['functionRuns']
  readonly #cpu: Metrics['counters']['functionCpuMicros']
  #byFunction = new Map<FunctionManifest, { readonly releaseId: string; readonly usage: Usage }>()
  #others = new Usage()
  #largestGrowthBytes = 0
  readonly #timer: ReturnType<typeof setInterval>

  constructor(options: FunctionUsageOptions) {
    const { metrics } = options
    this.#options = options
    this.#runs = metrics.counters.functionRuns
    this.#cpu = metrics.counters.functionCpuMicros
    metrics.addSource(() => ({ largestFunctionGrowthBytes: this.#largestGrowthBytes }))
    this.#timer = setInterval(() => this.report(), PERIOD_MILLIS)
    this.#timer.unref()
  }

  /** Writes what the last period still lacks. */
  stop(): void {
    clearInterval(this.#timer)
    this.report()
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
    const { log } = this.#options
    const used = this.#byFunction
    const others = this.#others
    this.#byFunction = new Map()
    this.#others = new Usage()
    for (const [{ name }, { releaseId, usage }] of used) {
      const message = `${name} ran ${usage.runs} times.`
      log.info('function.usage', { message, releaseId, function: name, ...figuresOf(usage) })
    }
    if (others.runs === 0) return
    const message = `Functions beyond the first ${FUNCTIONS_MAX} ran ${others.runs} times.`
    log.info('function.usage', { message, ...figuresOf(others) })
  }

  #usageOf(definition: FunctionManifest, releaseId: string): Usage {
    const known = this.#byFunction.get(definition)
    if (known !== undefined) return known.usage
    if (this.#byFunction.size >= FUNCTIONS_MAX) return this.#others
    const usage = new Usage()
    this.#byFunction.set(definition, { releaseId, usage })
    return usage
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

function figuresOf({ runs, cpuMicros, durationMicros, largestGrowthBytes }: Usage) {
  return {
    runs,
    cpuMicros: Math.round(cpuMicros),
    durationMicros: Math.round(durationMicros),
    largestGrowthBytes,
  }
}
