/** Metrics of the server's process: as JSON, or as text for a collector. */
import { CatalogQuery } from '../catalogs.ts'
import { JSON_MEDIA_TYPE } from '../media-types.ts'
import { FunctionFiguresReport, MetricsReport } from '../metrics.ts'
import { environmentOperation } from './operation.ts'

export const OPEN_METRICS = 'application/openmetrics-text'
/** The format of Prometheus, which collectors read that ask for plain text. */
export const PROMETHEUS_TEXT = 'text/plain'

export const readMetrics = environmentOperation({
  method: 'GET',
  path: '/metrics',
  name: 'readMetrics',
  summary: 'Returns counters, gauges and histograms of the server process.',
  capability: 'usage:read',
  mediaTypes: [JSON_MEDIA_TYPE, OPEN_METRICS, PROMETHEUS_TEXT],
  replies: { 200: MetricsReport },
})

export const readFunctionFigures = environmentOperation({
  method: 'GET',
  path: '/metrics/functions',
  name: 'readFunctionFigures',
  summary: 'Returns calls, errors and percentiles of durations of the Functions of a target.',
  capability: 'usage:read',
  query: CatalogQuery,
  replies: { 200: FunctionFiguresReport },
  errors: ['PRODUCT_INVALID', 'PRODUCT_RELEASE_RETIRED'],
})

export const metricsOperations = { readMetrics, readFunctionFigures }
