/**
 * Metrics of this process, which are lost with it. Code counts events in predefined counters and
 * histograms; values that a component has anyway are read from it when metrics are collected.
 */
import type { System } from '../../system/system.ts'
import {
  BOUNDS,
  COUNTERS,
  type CounterName,
  type GaugeName,
  HISTOGRAMS,
  type HistogramName,
} from './definitions.ts'
import {
  addedFigures,
  FIGURES_MILLIS,
  type FunctionCounts,
  type FunctionFigure,
  FunctionFigures,
} from './function-figures.ts'

/** A counter. It is exact up to 2^53, which takes 285 years at a million per second. */
export class Counter {
  value = 0

  add(count = 1): void {
    this.value += count
  }
}

export class Histogram {
  sumMicros = 0
  /** Observations per bucket, not cumulative; the last one is above all bounds. */
  readonly counts = new Float64Array(BOUNDS.length + 1)

  observe(micros: number): void {
    this.sumMicros += micros
    let bucket = 0
    while (micros > BOUNDS[bucket]!) bucket += 1
    this.counts[bucket]! += 1
  }
}

/** Metrics that a component provides at collection. */
export type ProvidedMetrics = { readonly [name in CounterName | GaugeName]?: number }

export interface CollectedHistogram {
  readonly count: number
  readonly sumMicros: number
  /** Cumulative counts by upper bound, ascending. */
  readonly buckets: readonly { readonly leMicros: number; readonly count: number }[]
}

/** A snapshot of all metrics, in whole numbers of 0 or more. */
export interface Collected {
  readonly collectedAtMicros: bigint
  readonly processStartedAtMicros: bigint
  readonly counters: { readonly [name in CounterName]: number }
  /** The gauges that a component of this server provides. */
  readonly gauges: { readonly [name in GaugeName]?: number }
  readonly histograms: { readonly [name in HistogramName]: CollectedHistogram }
}

/** The metrics of another process of this server. Observations of a bucket are not cumulative. */
export interface ProcessMetrics {
  readonly counters: { [name in CounterName]: number }
  readonly gauges: { [name in GaugeName]?: number }
  readonly histograms: { readonly [name in HistogramName]: { sumMicros: number; counts: number[] } }
}

/** The other processes of this server. */
export interface MetricsProcesses {
  /** Asks the processes for their metrics. Resolves early for one that does not answer in time. */
  refresh(): Promise<void>
  /** Returns the metrics that each process has reported last. */
  reported(): Iterable<ProcessMetrics>
  /**
   * Asks the processes for the figures of the Functions of a Release. Omits a process that does not
   * answer in time.
   */
  functionsOf(releaseId: string): Promise<readonly (readonly FunctionCounts[])[]>
}

/** The figures of the Functions of a Release, sorted by name. */
export interface CollectedFunctions {
  readonly collectedAtMicros: bigint
  /** The figures have no call before this. */
  readonly sinceMicros: bigint
  readonly functions: readonly FunctionFigure[]
}

export class Metrics {
  readonly counters = mapValues(COUNTERS, () => new Counter())
  readonly histograms = mapValues(HISTOGRAMS, () => new Histogram())
  readonly functions = new FunctionFigures()
  readonly #system: Pick<System, 'nowMicros' | 'monotonicMillis'>
  readonly #startedAtMicros: bigint
  readonly #sources: (() => ProvidedMetrics)[] = []
  #processes: MetricsProcesses | null = null

  constructor(system: Pick<System, 'nowMicros' | 'monotonicMillis'>) {
    this.#system = system
    this.#startedAtMicros = system.nowMicros()
  }

  /** Adds a component whose metrics `read` returns. It is called once per collection. */
  addSource(read: () => ProvidedMetrics): void {
    this.#sources.push(read)
  }

  /** Adds other processes of this server, whose metrics are added to those of this one. */
  addProcesses(processes: MetricsProcesses): void {
    this.#processes = processes
  }

  /** Asks the other processes for their metrics, so that `collect` has all events until now. */
  async refresh(): Promise<void> {
    await this.#processes?.refresh()
  }

  /** The metrics of this process alone. */
  own(): ProcessMetrics {
    return this.#collectOwn()
  }

  /** Adds up the metrics of this process and those that the others have reported last. */
  collect(): Collected {
    const { counters, gauges, histograms } = this.#collectOwn()
    for (const other of this.#processes?.reported() ?? []) {
      addCounts({ counters, histograms }, other)
      addEntries(gauges, other.gauges)
      const { queryCacheHits: hits, queryCacheMisses: misses } = counters
      gauges.queryCacheHitPercent = hits === 0 ? 0 : wholeNumber((100 * hits) / (hits + misses))
    }
    return {
      collectedAtMicros: this.#system.nowMicros(),
      processStartedAtMicros: this.#startedAtMicros,
      counters,
      gauges,
      histograms: mapValues(histograms, collectedHistogram),
    }
  }

  /** The figures of the Functions of a Release in this process alone. */
  ownFunctions(releaseId: string): FunctionCounts[] {
    return this.functions.read(releaseId, this.#system.monotonicMillis())
  }

  /** Adds up the figures of the Functions of a Release in all processes. */
  async collectFunctions(releaseId: string): Promise<CollectedFunctions> {
    const others = (await this.#processes?.functionsOf(releaseId)) ?? []
    const functions = addedFigures([this.ownFunctions(releaseId), ...others])
    const collectedAtMicros = this.#system.nowMicros()
    const earliest = collectedAtMicros - BigInt(FIGURES_MILLIS) * 1_000n
    const sinceMicros = earliest > this.#startedAtMicros ? earliest : this.#startedAtMicros
    return { collectedAtMicros, sinceMicros, functions }
  }

  #collectOwn() {
    const values = mapValues(this.counters, ({ value }) => wholeNumber(value))
    const counters: { [name in CounterName]: number } = values
    const gauges: { [name in GaugeName]?: number } = {}
    for (const read of this.#sources) {
      for (const [name, value] of Object.entries(read())) {
        const into: { [name: string]: number } = Object.hasOwn(counters, name) ? counters : gauges
        into[name] = wholeNumber(value)
      }
    }
    const histograms = mapValues(this.histograms, ({ sumMicros, counts }) => {
      return { sumMicros, counts: [...counts] }
    })
    return { counters, gauges, histograms }
  }
}

/** Returns the sum of the counters and the histograms, without gauges. */
export function addedCounts(to: ProcessMetrics | null, from: ProcessMetrics): ProcessMetrics {
  if (to === null) return { ...from, gauges: {} }
  const sum = structuredClone(to)
  addCounts(sum, from)
  return sum
}

function addCounts(into: Omit<ProcessMetrics, 'gauges'>, from: ProcessMetrics): void {
  addEntries(into.counters, from.counters)
  for (const [name, { sumMicros, counts }] of Object.entries(from.histograms)) {
    const sums: { sumMicros: number; counts: number[] } = into.histograms[name as HistogramName]
    sums.sumMicros += sumMicros
    for (const [i, count] of counts.entries()) sums.counts[i]! += count
  }
}

function addEntries(
  into: { [name: string]: number },
  from: { readonly [name: string]: number },
): void {
  for (const [name, value] of Object.entries(from)) into[name] = (into[name] ?? 0) + value
}

function collectedHistogram({
  counts,
  sumMicros,
}: ProcessMetrics['histograms'][HistogramName]): CollectedHistogram {
  let count = 0
  const buckets = BOUNDS.map((leMicros, i) => {
    count += counts[i]!
    return { leMicros, count }
  })
  return { count: count + counts[BOUNDS.length]!, sumMicros: wholeNumber(sumMicros), buckets }
}

function wholeNumber(value: number): number {
  return Math.max(0, Math.floor(value))
}

/** Maps the values of a table. */
function mapValues<N extends string, From, To>(
  table: { readonly [name in N]: From },
  make: (from: From) => To,
): { [name in N]: To } {
  const entries = Object.entries<From>(table).map(([name, from]) => [name, make(from)])
  return Object.fromEntries(entries) as { [name in N]: To }
}
