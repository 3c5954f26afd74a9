/** The types of a figure of the bench: svc measured beside a baseline, in the same run. */
import type { BenchInstallation, Documents } from './installation.ts'
import type { LoadResult } from './load.ts'

export interface Figure {
  readonly name: string
  /** Describes what the figure is compared with. */
  readonly baseline: string
  /** The least ratio of svc to the baseline that meets the target. */
  readonly ratioMin: number
  /** The store that holds the documents of the installation. */
  readonly documents: Documents
  /** True if it takes minutes and runs with BENCH_LONG=1 only. */
  readonly long?: true
  measure(installation: BenchInstallation, options: MeasureOptions): Promise<Measured>
}

export interface MeasureOptions {
  /** Seconds of load on each side before the first round, in which new code is compiled. */
  readonly warmUpSeconds: number
  /** Seconds of load on each side in a round. */
  readonly seconds: number
  readonly rounds: number
}

/** The medians of all rounds. */
export interface Measured {
  readonly ratio: number
  readonly candidate: Side
  readonly baseline: Side
  /** The first failure, or null. A figure with a failure has no value. */
  readonly failure: string | null
  /** A count of the same rounds, printed after the figure. */
  readonly note?: string
}

export interface Side {
  readonly value: string
  /** Null if the side has no latencies. */
  readonly p50Micros: number | null
  readonly p99Micros: number | null
}

export interface Comparison {
  candidate(seconds: number): Promise<LoadResult>
  baseline(seconds: number): Promise<LoadResult>
}

/** Loads both sides in turns, so that a drift of the machine's speed affects both. */
export async function inTurns(
  comparison: Comparison,
  { warmUpSeconds, seconds, rounds }: MeasureOptions,
): Promise<Measured> {
  await comparison.candidate(warmUpSeconds)
  await comparison.baseline(warmUpSeconds)
  const candidate: LoadResult[] = []
  const baselines: LoadResult[] = []
  for (let round = 0; round < rounds; round++) {
    candidate.push(await comparison.candidate(seconds))
    baselines.push(await comparison.baseline(seconds))
  }
  return measuredBy(
    { candidate, baselines },
    (sample, baseline) => sample.perSecond / baseline.perSecond,
  )
}

interface Rounds {
  readonly candidate: readonly LoadResult[]
  readonly baselines: readonly LoadResult[]
}

/** Aggregates rounds. `ratio` computes the ratio of one round. */
export function measuredBy(
  { candidate, baselines }: Rounds,
  ratio: (sample: LoadResult, baseline: LoadResult) => number,
): Measured {
  const failed = [...candidate, ...baselines].filter(({ failures }) => failures > 0)
  const failures = failed.reduce((sum, result) => sum + result.failures, 0)
  return {
    ratio: median(candidate.map((sample, round) => ratio(sample, baselines[round]!))),
    candidate: sideOf(candidate),
    baseline: sideOf(baselines),
    failure: failures === 0 ? null : `${failures} failures; ${failed[0]!.firstFailure}`,
  }
}

function sideOf(results: readonly LoadResult[]): Side {
  return {
    value: `${median(results.map(({ perSecond }) => perSecond)).toFixed(0)}/s`,
    p50Micros: median(results.map(({ p50Micros }) => p50Micros)),
    p99Micros: median(results.map(({ p99Micros }) => p99Micros)),
  }
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}
