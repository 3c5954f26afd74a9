/** Metrics of the server's process: as JSON, or as text for a collector. */
import type { Collected, Metrics } from '../../telemetry/metrics/metrics.ts'
import { openMetricsText, prometheusText } from '../../telemetry/metrics/open-metrics.ts'
import { MetricsReport } from '../../wire/metrics.ts'
import { preferredType } from '../media-types.ts'
import { environmentRoute, JSON_MEDIA_TYPE, type Route } from './route.ts'

export interface MetricsApp {
  readonly metrics: Metrics
}

const OPEN_METRICS = 'application/openmetrics-text'
/** The format of Prometheus, which collectors read that ask for plain text. */
const TEXT = 'text/plain'
const MEDIA_TYPES = [JSON_MEDIA_TYPE, OPEN_METRICS, TEXT] as const

export const metricsRoutes: readonly Route<MetricsApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '/metrics',
    name: 'readMetrics',
    summary: 'Returns counters, gauges and histograms of the server process.',
    capability: 'usage:read',
    mediaTypes: MEDIA_TYPES,
    replies: { 200: MetricsReport },
    handle({ app, request }) {
      const collected = app.metrics.collect()
      const accept = request.headers.get('accept')
      const mediaType = preferredType(accept, MEDIA_TYPES)
      if (mediaType === TEXT) {
        const contentType = `${TEXT}; version=0.0.4; charset=utf-8`
        return { status: 200, text: prometheusText(collected), contentType }
      }
      if (mediaType === OPEN_METRICS) {
        const contentType = `${OPEN_METRICS}; version=1.0.0; charset=utf-8`
        return { status: 200, text: openMetricsText(collected), contentType }
      }
      return { status: 200, body: reportOf(collected) }
    },
  }),
]

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
