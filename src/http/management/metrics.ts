/** Metrics of the server's process: as JSON, or as text for a collector. */
import type { Collected, Metrics } from '../../telemetry/metrics/metrics.ts'
import { openMetricsText, prometheusText } from '../../telemetry/metrics/open-metrics.ts'
import type { MetricsReport } from '../../wire/metrics.ts'
import {
  metricsOperations,
  OPEN_METRICS,
  PROMETHEUS_TEXT,
  readMetrics,
} from '../../wire/operations/metrics.ts'
import { preferredType } from '../media-types.ts'
import { bind, type Route } from './route.ts'

export interface MetricsApp {
  readonly metrics: Metrics
}

export const metricsRoutes: readonly Route<MetricsApp>[] = bind(metricsOperations, {
  async readMetrics({ app, request }) {
    await app.metrics.refresh()
    const collected = app.metrics.collect()
    const accept = request.headers.get('accept')
    const mediaType = preferredType(accept, readMetrics.mediaTypes)
    if (mediaType === PROMETHEUS_TEXT) {
      const contentType = `${PROMETHEUS_TEXT}; version=0.0.4; charset=utf-8`
      return { status: 200, text: prometheusText(collected), contentType }
    }
    if (mediaType === OPEN_METRICS) {
      const contentType = `${OPEN_METRICS}; version=1.0.0; charset=utf-8`
      return { status: 200, text: openMetricsText(collected), contentType }
    }
    return { status: 200, body: reportOf(collected) }
  },
})

function reportOf(collected: Collected): MetricsReport {
  const { collectedAtMicros, processStartedAtMicros, counters, gauges, histograms } = collected
  return {
    version: 1,
    collectedAtMicros: String(collectedAtMicros),
    processStartedAtMicros: String(processStartedAtMicros),
    counters: texts(counters),
    gauges: texts(gauges),
    histograms: Object.fromEntries(
      Object.entries(histograms).map(([name, { count, sumMicros, buckets }]) => [
        name,
        {
          count: String(count),
          sumMicros: String(sumMicros),
          buckets: buckets.map((bucket) => ({
            leMicros: String(bucket.leMicros),
            count: String(bucket.count),
          })),
        },
      ]),
    ),
  }
}

function texts(values: { readonly [name: string]: number }): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]))
}
