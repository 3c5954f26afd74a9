/** `svc metrics`: shows the counters, gauges and durations since the server started. */
import { formatTimestamp } from '../../value/plain.ts'
import type { MetricsReport } from '../../wire/metrics.ts'
import { type Context, command } from '../contexts.ts'
import { openRemote, readMetrics } from '../remotes.ts'
import { REMOTE } from './operations.ts'

export const metricsCommand = command({
  name: 'metrics',
  summary: 'Show what the server measured since it started',
  details: [
    'For durations it shows the bucket bound of each percentile.',
    'Collectors such as Prometheus read GET /v1/projects/ID/environments/ID/metrics.',
  ],
  options: REMOTE,
  async run(context, { root }) {
    const remote = await openRemote(context, root)
    const metrics = await context.output.progress('reading the metrics', readMetrics(remote))
    await context.output.result(metrics, humanMetrics(context, metrics))
  },
})

type Distribution = MetricsReport['histograms'][string]

function humanMetrics({ output }: Context, metrics: MetricsReport): string[] {
  const figures = (figures: Readonly<Record<string, string>>) =>
    Object.entries(figures)
      .filter(([, value]) => value !== '0')
      .map(([name, value]) => figureRow(name, value))
  const times = Object.entries(metrics.histograms)
    .filter(([, { count }]) => count !== '0')
    .map(([name, distribution]) => distributionRow(name, distribution))
  const section = (head: readonly string[], rows: readonly (readonly string[])[]): string[] =>
    rows.length === 0 ? [] : ['', ...output.table(head, rows)]
  const started = formatTimestamp(BigInt(metrics.processStartedAtMicros))
  return [
    `Since ${started}; values of 0 are omitted.`,
    ...section(['COUNTER', 'VALUE'], figures(metrics.counters)),
    ...section(['NOW', 'VALUE'], figures(metrics.gauges)),
    ...section(['TIME', 'COUNT', 'MEAN', '50 %', '95 %', '99 %'], times),
  ]
}

const UNITS: readonly (readonly [suffix: string, show: (value: number) => string])[] = [
  ['Micros', showMicros],
  ['Bytes', (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`],
  ['Percent', (percent) => `${percent} %`],
]

/** Formats a figure by the unit at the end of its name. */
function figureRow(name: string, value: string): string[] {
  const unit = UNITS.find(([suffix]) => name.endsWith(suffix))
  if (unit === undefined) return [name, value]
  const [suffix, show] = unit
  return [name.slice(0, -suffix.length), show(Number(value))]
}

function distributionRow(name: string, { count, sumMicros, buckets }: Distribution): string[] {
  const all = Number(count)
  const within = (share: number): string => {
    const bucket = buckets.find((bucket) => Number(bucket.count) >= share * all)
    return bucket === undefined ? 'more' : showMicros(Number(bucket.leMicros))
  }
  const mean = showMicros(Number(sumMicros) / all)
  return [name.replace(/Micros$/, ''), count, mean, ...[0.5, 0.95, 0.99].map(within)]
}

function showMicros(micros: number): string {
  if (micros < 1e6) return `${Number((micros / 1e3).toPrecision(3))} ms`
  return micros < 1e9
    ? `${Number((micros / 1e6).toPrecision(3))} s`
    : `${Math.round(micros / 1e6)} s`
}
