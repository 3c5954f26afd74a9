/** What a figure of the bench is: something measured beside its limit, in the same run. */
import type { BenchInstallation, Documents } from './installation.ts'
import type { LoadResult } from './load.ts'

export interface Figure {
  readonly name: string
  /** What it is held against. */
  readonly beside: string
  /** The least ratio of the two. */
  readonly bar: number
  /** Where the documents of its installation are. */
  readonly documents: Documents
  /** Takes minutes: only with BENCH_LONG=1. */
  readonly long?: true
  measure(installation: BenchInstallation, options: MeasureOptions): Promise<Measured>
}

export interface MeasureOptions {
  /** How long each side is loaded before the first round: code that is new runs uncompiled. */
  readonly warmUpSeconds: number
  /** How long each side is loaded in a round. */
  readonly seconds: number
  readonly rounds: number
}

/** Medians of the rounds. */
export interface Measured {
  readonly ratio: number
  readonly ours: Side
  readonly limit: Side
  /** What failed, if anything did: the figure is none then. */
  readonly failure: string | null
}

export interface Side {
  readonly value: string
  /** Null where nothing was waited for. */
  readonly p50Micros: number | null
  readonly p99Micros: number | null
}

export interface Contest {
  ours(seconds: number): Promise<LoadResult>
  limit(seconds: number): Promise<LoadResult>
}

/** In turns, so that a machine whose speed drifts slows both. */
export async function inTurns(
  contest: Contest,
  { warmUpSeconds, seconds, rounds }: MeasureOptions,
): Promise<Measured> {
  await contest.ours(warmUpSeconds)
  await contest.limit(warmUpSeconds)
  const ours: LoadResult[] = []
  const limits: LoadResult[] = []
  for (let round = 0; round < rounds; round++) {
    ours.push(await contest.ours(seconds))
    limits.push(await contest.limit(seconds))
  }
  return measuredBy({ ours, limits }, (our, limit) => our.perSecond / limit.perSecond)
}

interface Rounds {
  readonly ours: readonly LoadResult[]
  readonly limits: readonly LoadResult[]
}

/** `ratio` is that of one round. */
export function measuredBy(
  { ours, limits }: Rounds,
  ratio: (our: LoadResult, limit: LoadResult) => number,
): Measured {
  const failed = [...ours, ...limits].filter(({ failures }) => failures > 0)
  const failures = failed.reduce((sum, result) => sum + result.failures, 0)
  return {
    ratio: median(ours.map((our, round) => ratio(our, limits[round]!))),
    ours: sideOf(ours),
    limit: sideOf(limits),
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
