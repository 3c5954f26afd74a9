/** The calls and durations between two reports of the metrics. */
import type { MetricsReport } from '../../wire/metrics.ts'

type Histogram = MetricsReport['histograms'][string]

/** Calls in one second, and durations in microseconds; null if there was no call. */
export interface Sample {
  readonly atSeconds: number
  readonly queries: number
  readonly mutations: number
  readonly actions: number
  readonly refused: number
  readonly failed: number
  readonly unavailable: number
  readonly p50: number | null
  readonly p99: number | null
}

const KINDS = ['queries', 'mutations', 'actions'] as const
const OUTCOMES = ['Succeeded', 'Refused', 'Failed', 'Unavailable'] as const
/** Cached results included: the time that callers see. */
const LATENCY = 'callRequestDurationMicros'

export function sampleOf(before: MetricsReport, after: MetricsReport): Sample {
  const seconds =
    Number(BigInt(after.collectedAtMicros) - BigInt(before.collectedAtMicros)) / 1_000_000
  const rate = (name: string): number =>
    (Number(after.counters[name] ?? 0) - Number(before.counters[name] ?? 0)) / seconds
  const ofKind = (kind: string): number =>
    OUTCOMES.reduce((sum, outcome) => sum + rate(kind + outcome), 0)
  const ofOutcome = (outcome: string): number =>
    KINDS.reduce((sum, kind) => sum + rate(kind + outcome), 0)
  const [first, last] = [before.histograms[LATENCY], after.histograms[LATENCY]]
  return {
    atSeconds: Number(BigInt(after.collectedAtMicros) / 1_000n) / 1_000,
    queries: ofKind('queries'),
    mutations: ofKind('mutations'),
    actions: ofKind('actions'),
    refused: ofOutcome('Refused'),
    failed: ofOutcome('Failed'),
    unavailable: ofOutcome('Unavailable'),
    p50: quantile(last, first, 0.5),
    p99: quantile(last, first, 0.99),
  }
}

/**
 * Returns the upper bound of the bucket in which the part of the durations ends that were measured
 * after `before`; null if there was none.
 */
export function quantile(
  after: Histogram | undefined,
  before: Histogram | undefined,
  part: number,
): number | null {
  if (after === undefined) return null
  const counts = new Map(before?.buckets.map(({ leMicros, count }) => [leMicros, Number(count)]))
  const total = Number(after.count) - Number(before?.count ?? 0)
  if (total <= 0) return null
  for (const { leMicros, count } of after.buckets) {
    if (Number(count) - (counts.get(leMicros) ?? 0) >= total * part) return Number(leMicros)
  }
  return Number(after.buckets.at(-1)?.leMicros ?? 0)
}
