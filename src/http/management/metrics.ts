/** Metrics of the server's process: as JSON, or as text for a collector. */
import { listFunctions } from '../../product/releases/catalogs.ts'
import type { FunctionFigure } from '../../telemetry/metrics/function-figures.ts'
import type { Collected, Metrics } from '../../telemetry/metrics/metrics.ts'
import { openMetricsText, prometheusText } from '../../telemetry/metrics/open-metrics.ts'
import type { FunctionFiguresReport, MetricsReport } from '../../wire/metrics.ts'
import {
  metricsOperations,
  OPEN_METRICS,
  PROMETHEUS_TEXT,
  readMetrics,
} from '../../wire/operations/metrics.ts'
import { preferredType } from '../media-types.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type Route } from './route.ts'

export interface MetricsApp extends ProductApp {
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

  async readFunctionFigures({ app, query }) {
    const { releaseId, functions } = await listFunctions(app.product, query.target)
    const kinds = new Map(functions.map(({ name, kind }) => [name, kind]))
    const { metrics } = app
    const { collectedAtMicros, sinceMicros, ...collected } =
      await metrics.collectFunctions(releaseId)
    const body: FunctionFiguresReport = {
      version: 1,
      releaseId,
      collectedAtMicros: String(collectedAtMicros),
      sinceMicros: String(sinceMicros),
      functions: collected.functions.flatMap((figure) => figureFields(figure, kinds)),
    }
    return { status: 200, body }
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

type FigureFields = FunctionFiguresReport['functions']

function figureFields(
  { function: name, ...figure }: FunctionFigure,
  kinds: ReadonlyMap<string, FigureFields[number]['kind']>,
): FigureFields {
  const kind = kinds.get(name)
  if (kind === undefined) return []
  const micros = (value: number | null) => (value === null ? null : String(Math.round(value)))
  return [
    {
      name,
      kind,
      calls: String(figure.calls),
      cached: String(figure.cached),
      rejected: String(figure.rejected),
      failed: String(figure.failed),
      p50Micros: micros(figure.p50Micros),
      p95Micros: micros(figure.p95Micros),
      p99Micros: micros(figure.p99Micros),
    },
  ]
}

function texts(values: { readonly [name: string]: number }): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]))
}
