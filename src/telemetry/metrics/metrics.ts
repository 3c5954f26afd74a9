/**
 * What happened in this process, in numbers: diagnostic, and gone with it. Whoever does something
 * counts it in a field that is there from the start; what somebody knows anyway is read when the
 * figures are collected.
 */
import type { System } from '../../system/system.ts'
import {
  BOUNDS,
  COUNTERS,
  type CounterName,
  type GaugeName,
  HISTOGRAMS,
  type HistogramName,
} from './names.ts'

/** Exact up to 2^53: at a million a second for 285 years. */
export class Counter {
  value = 0

  add(count = 1): void {
    this.value += count
  }
}

export class Histogram {
  sumMicros = 0
  /** Observations in each bucket, and above the last bound; not those of smaller buckets. */
  readonly counts = new Float64Array(BOUNDS.length + 1)

  observe(micros: number): void {
    this.sumMicros += micros
    let bucket = 0
    while (micros > BOUNDS[bucket]!) bucket += 1
    this.counts[bucket]! += 1
  }
}

/** Figures that somebody else keeps. */
export type Figures = { readonly [name in CounterName | GaugeName]?: number }

export interface CollectedHistogram {
  readonly count: number
  readonly sumMicros: number
  /** Observations of at most so many microseconds, ascending; `count` is that of all. */
  readonly buckets: readonly { readonly leMicros: number; readonly count: number }[]
}

/** Whole numbers from 0. */
export interface Collected {
  readonly collectedAtMicros: bigint
  readonly processStartedAtMicros: bigint
  readonly counters: { readonly [name in CounterName]: number }
  /** Those that a part of this server keeps. */
  readonly gauges: { readonly [name in GaugeName]?: number }
  readonly histograms: { readonly [name in HistogramName]: CollectedHistogram }
}

export class Metrics {
  readonly counters = made(COUNTERS, () => new Counter())
  readonly histograms = made(HISTOGRAMS, () => new Histogram())
  readonly #system: Pick<System, 'nowMicros'>
  readonly #startedAtMicros: bigint
  readonly #sources: (() => Figures)[] = []

  constructor(system: Pick<System, 'nowMicros'>) {
    this.#system = system
    this.#startedAtMicros = system.nowMicros()
  }

  /** `read` answers what it keeps; it is called once for each collection. */
  addSource(read: () => Figures): void {
    this.#sources.push(read)
  }

  collect(): Collected {
    const counters = made(this.counters, ({ value }) => whole(value))
    const gauges: { [name in GaugeName]?: number } = {}
    for (const read of this.#sources) {
      for (const [name, value] of Object.entries(read())) {
        const into: { [name: string]: number } = Object.hasOwn(counters, name) ? counters : gauges
        into[name] = whole(value)
      }
    }
    return {
      collectedAtMicros: this.#system.nowMicros(),
      processStartedAtMicros: this.#startedAtMicros,
      counters,
      gauges,
      histograms: made(this.histograms, collectedHistogram),
    }
  }
}

function collectedHistogram({ counts, sumMicros }: Histogram): CollectedHistogram {
  let count = 0
  const buckets = BOUNDS.map((leMicros, i) => {
    count += counts[i]!
    return { leMicros, count }
  })
  return { count: count + counts[BOUNDS.length]!, sumMicros: whole(sumMicros), buckets }
}

function whole(value: number): number {
  return Math.max(0, Math.floor(value))
}

/** The same names with what `make` makes of each. */
function made<N extends string, From, To>(
  table: { readonly [name in N]: From },
  make: (from: From) => To,
): { [name in N]: To } {
  const entries = Object.entries<From>(table).map(([name, from]) => [name, make(from)])
  return Object.fromEntries(entries) as { [name in N]: To }
}
