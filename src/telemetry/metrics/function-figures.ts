/**
 * Counts the calls of each Function of the last hour and the distribution of their durations.
 * Functions come and go with Releases, so they cannot be names of metrics: this aggregate is
 * bounded and forgets. All times are monotonic milliseconds of this process.
 */

const STEP_MILLIS = 5 * 60_000
const STEPS = 12
/** @limit Operations: time for which a process keeps the figures of calls of each Function */
export const FIGURES_MILLIS = STEPS * STEP_MILLIS
/**
 * Each has at most 10 KiB, so that all have at most 5 MiB. Beyond the bound the one that was unused
 * for the longest time is forgotten.
 *
 * @limit Operations: Functions whose calls a process keeps figures of
 */
export const FUNCTIONS_WITH_FIGURES_MAX = 500

/** Ratio of the bounds of a bucket. */
const GROWTH = 1.1
const LOG_GROWTH = Math.log(GROWTH)
/** Durations up to this have one bucket. */
export const SHORTEST_MICROS = 10
/** Longer durations share the bucket of this one. */
export const LONGEST_MICROS = 600_000_000
const BUCKETS = bucketOf(LONGEST_MICROS) + 1
/** Largest relative error of a percentile between the shortest and the longest duration. */
export const RELATIVE_ERROR = (GROWTH - 1) / (GROWTH + 1)

/** Places of the counts of one step. The calls by duration follow them. */
const CACHED = 0
const REJECTED = 1
const FAILED = 2
const DURATIONS = 3

export type CallEnd = 'succeeded' | 'rejected' | 'failed'

interface CalledRelease {
  readonly releaseId: string
}

interface CalledFunction {
  readonly name: string
}

/** The end of an executed call. */
export interface EndedCall {
  readonly as: CallEnd
  readonly startedMillis: number
  readonly nowMillis: number
}

/** The calls of a Function in the last hour, in a form that processes send. */
export interface FunctionCounts {
  readonly function: string
  cached: number
  rejected: number
  failed: number
  /** Calls by the bucket of their duration. */
  readonly durations: number[]
}

/** The figures of a Function. Percentiles are null if no call had a duration. */
export interface FunctionFigure {
  readonly function: string
  readonly calls: number
  readonly cached: number
  readonly rejected: number
  readonly failed: number
  readonly p50Micros: number | null
  readonly p95Micros: number | null
  readonly p99Micros: number | null
}

class Series {
  readonly releaseId: string
  readonly name: string
  lastStep = -1
  #last: Uint32Array = new Uint32Array(0)
  readonly #numbers = new Float64Array(STEPS).fill(-1)
  readonly #counts: (Uint32Array | undefined)[] = []

  constructor(releaseId: string, name: string) {
    this.releaseId = releaseId
    this.name = name
  }

  /** The counts of the last step, which may be changed. */
  get last(): Uint32Array {
    return this.#last
  }

  begin(step: number): void {
    const place = step % STEPS
    const counts = this.#counts[place]?.fill(0) ?? new Uint32Array(DURATIONS + BUCKETS)
    this.#counts[place] = counts
    this.#numbers[place] = step
    this.lastStep = step
    this.#last = counts
  }

  sum(step: number): FunctionCounts {
    const sum = new Array<number>(DURATIONS + BUCKETS).fill(0)
    for (const [place, counts] of this.#counts.entries()) {
      if (counts === undefined || this.#numbers[place]! <= step - STEPS) continue
      for (const [i, count] of counts.entries()) sum[i]! += count
    }
    return {
      function: this.name,
      cached: sum[CACHED]!,
      rejected: sum[REJECTED]!,
      failed: sum[FAILED]!,
      durations: sum.slice(DURATIONS),
    }
  }
}

export class FunctionFigures {
  readonly #releases = new Map<string, Map<string, Series>>()
  /** All of them by their last steps, so that an eviction searches nothing. */
  readonly #byUse = new Set<Series>()

  /** Counts a call that was executed and has ended. */
  ended(
    release: CalledRelease,
    called: CalledFunction,
    { as, startedMillis, nowMillis }: EndedCall,
  ): void {
    const counts = this.#at(release.releaseId, called.name, nowMillis)
    counts[DURATIONS + bucketOf((nowMillis - startedMillis) * 1_000)]! += 1
    if (as !== 'succeeded') counts[as === 'failed' ? FAILED : REJECTED]! += 1
  }

  /** Counts a call that was answered from the cache. It has no duration. */
  cached(release: CalledRelease, called: CalledFunction, nowMillis: number): void {
    this.#at(release.releaseId, called.name, nowMillis)[CACHED]! += 1
  }

  /** Returns the Functions of the Release that were called in the last hour. */
  read(releaseId: string, nowMillis: number): FunctionCounts[] {
    const step = Math.floor(nowMillis / STEP_MILLIS)
    return [...(this.#releases.get(releaseId)?.values() ?? [])]
      .filter(({ lastStep }) => lastStep > step - STEPS)
      .map((series) => series.sum(step))
  }

  #at(releaseId: string, name: string, nowMillis: number): Uint32Array {
    const step = Math.floor(nowMillis / STEP_MILLIS)
    const series = this.#releases.get(releaseId)?.get(name) ?? this.#add(releaseId, name)
    if (series.lastStep !== step) {
      series.begin(step)
      this.#byUse.delete(series)
      this.#byUse.add(series)
    }
    return series.last
  }

  #add(releaseId: string, name: string): Series {
    const [oldest] = this.#byUse.size < FUNCTIONS_WITH_FIGURES_MAX ? [] : this.#byUse
    if (oldest !== undefined) this.#remove(oldest)
    const series = new Series(releaseId, name)
    const functions = this.#releases.get(releaseId) ?? new Map<string, Series>()
    this.#releases.set(releaseId, functions)
    functions.set(name, series)
    return series
  }

  #remove(series: Series): void {
    const functions = this.#releases.get(series.releaseId)!
    functions.delete(series.name)
    if (functions.size === 0) this.#releases.delete(series.releaseId)
    this.#byUse.delete(series)
  }
}

/** Adds the counts of several processes, and sorts the Functions by name. */
export function addedFigures(processes: Iterable<readonly FunctionCounts[]>): FunctionFigure[] {
  const sums = new Map<string, FunctionCounts>()
  for (const all of processes) {
    for (const counts of all) {
      const sum = sums.get(counts.function)
      if (sum === undefined) {
        sums.set(counts.function, { ...counts, durations: [...counts.durations] })
        continue
      }
      sum.cached += counts.cached
      sum.rejected += counts.rejected
      sum.failed += counts.failed
      for (const [i, count] of counts.durations.entries()) sum.durations[i]! += count
    }
  }
  return [...sums.values()]
    .map(figureOf)
    .sort((a, b) => (a.function < b.function ? -1 : Number(a.function > b.function)))
}

function figureOf({ durations, ...counts }: FunctionCounts): FunctionFigure {
  const executed = durations.reduce((sum, count) => sum + count, 0)
  return {
    ...counts,
    calls: executed + counts.cached,
    p50Micros: percentile(durations, executed, 50),
    p95Micros: percentile(durations, executed, 95),
    p99Micros: percentile(durations, executed, 99),
  }
}

/** Returns the middle of the bucket with the nearest-rank percentile; null without durations. */
function percentile(durations: readonly number[], executed: number, percent: number) {
  if (executed === 0) return null
  const rank = Math.ceil((executed * percent) / 100)
  let count = 0
  const bucket = durations.findIndex((each) => {
    count += each
    return count >= rank
  })
  if (bucket === 0) return SHORTEST_MICROS
  return (2 * SHORTEST_MICROS * GROWTH ** bucket) / (GROWTH + 1)
}

function bucketOf(micros: number): number {
  if (!(micros > SHORTEST_MICROS)) return 0
  const bounded = Math.min(micros, LONGEST_MICROS)
  return Math.ceil(Math.log(bounded / SHORTEST_MICROS) / LOG_GROWTH)
}
