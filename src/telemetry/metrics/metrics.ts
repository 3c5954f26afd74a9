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

export class Metrics {
  readonly counters = mapValues(COUNTERS, () => new Counter())
  readonly histograms = mapValues(HISTOGRAMS, () => new Histogram())
  readonly #system: Pick<System, 'nowMicros'>
  readonly #startedAtMicros: bigint
  readonly #sources: (() => ProvidedMetrics)[] = []

  constructor(system: Pick<System, 'nowMicros'>) {
    this.#system = system
    this.#startedAtMicros = system.nowMicros()
  }

  /** Adds a component whose metrics `read` returns. It is called once per collection. */
  addSource(read: () => ProvidedMetrics): void {
    this.#sources.push(read)
  }

  collect(): Collected {
    const counters = mapValues(this.counters, ({ value }) => wholeNumber(value))
    const gauges: { [name in GaugeName]?: number } = {}
    for (const read of this.#sources) {
      for (const [name, value] of Object.entries(read())) {
        const into: { [name: string]: number } = Object.hasOwn(counters, name) ? counters : gauges
        into[name] = wholeNumber(value)
      }
    }
    return {
      collectedAtMicros: this.#system.nowMicros(),
      processStartedAtMicros: this.#startedAtMicros,
      counters,
      gauges,
      histograms: mapValues(this.histograms, collectedHistogram),
    }
  }
}

function collectedHistogram({ counts, sumMicros }: Histogram): CollectedHistogram {
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
