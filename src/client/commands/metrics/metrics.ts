/**
 * `svc metrics`: shows the counters, gauges and durations since the server started, or serves them
 * to a collector.
 */
import { formatTimestamp } from '../../../value/plain.ts'
import type { MetricsReport } from '../../../wire/metrics.ts'
import { readMetrics } from '../../../wire/operations/metrics.ts'
import { type CommandSpec, type Context, command, option } from '../../contexts.ts'
import { openRemote, type Remote } from '../../roots/remotes.ts'
import { timeText } from '../../timestamps.ts'
import { usage } from '../../usage.ts'
import { REMOTE } from '../operations.ts'
import { MetricsExporter, parseListenAddress } from './exporter.ts'

export const metricsCommand: CommandSpec = command({
  name: 'metrics',
  summary: 'Show what the server measured since it started',
  details: [
    'For durations it shows the bucket bound of each percentile.',
    'With --listen it serves GET /metrics to collectors such as Prometheus until it is stopped,',
    'and renews its session. Every process of this machine can read that address.',
  ],
  options: {
    ...REMOTE,
    listen: option('ADDRESS', 'Serve them at 127.0.0.1:PORT or [::1]:PORT; port 0 is any'),
  },
  examples: ['svc metrics --listen 127.0.0.1:9464'],
  async run(context, { listen, ...at }) {
    const remote = await openRemote(context, at)
    if (listen !== undefined) return serveMetrics(context, remote, listen)
    const metrics = await context.output.progress('reading the metrics', remote.call(readMetrics))
    await context.output.result(metrics, humanMetrics(context, metrics))
  },
})

async function serveMetrics(context: Context, remote: Remote, listen: string): Promise<void> {
  const address = parseListenAddress(listen)
  if (address === null) {
    throw usage('--listen needs 127.0.0.1:PORT or [::1]:PORT.', metricsCommand)
  }
  context.endsInOrder()
  const exporter = await MetricsExporter.open(context, remote, address)
  const { url } = exporter
  const ends = remote.session.profile.refreshExpiresAtMicros
  await context.output.result({ version: 1, url, sessionEndsAtMicros: String(ends) }, [
    `Serving the metrics at ${url}. The session ends at ${formatTimestamp(ends)}.`,
  ])
  await exporter.whenEnded(context.signal)
}

type Distribution = MetricsReport['histograms'][string]

function humanMetrics({ output }: Context, metrics: MetricsReport): string[] {
  const figures = (title: string, figures: Readonly<Record<string, string>>): string[] => {
    const rows = Object.entries(figures).filter(([, value]) => value !== '0')
    return output.section(
      rows.map(([name, value]) => figureRow(name, value)),
      { [title]: ([name]) => name, VALUE: ([, value]) => value },
    )
  }
  const times = Object.entries(metrics.histograms).filter(([, { count }]) => count !== '0')
  return [
    `Since ${timeText(metrics.processStartedAtMicros)}; values of 0 are omitted.`,
    ...figures('COUNTER', metrics.counters),
    ...figures('NOW', metrics.gauges),
    ...output.section(times, {
      TIME: ([name]) => name.replace(/Micros$/, ''),
      COUNT: ([, { count }]) => count,
      MEAN: ([, { count, sumMicros }]) => showMicros(Number(sumMicros) / Number(count)),
      '50 %': ([, distribution]) => percentile(distribution, 0.5),
      '95 %': ([, distribution]) => percentile(distribution, 0.95),
      '99 %': ([, distribution]) => percentile(distribution, 0.99),
    }),
  ]
}

const UNITS: readonly (readonly [suffix: string, show: (value: number) => string])[] = [
  ['Micros', showMicros],
  ['Bytes', (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`],
  ['Percent', (percent) => `${percent} %`],
]

/** Formats a figure by the unit at the end of its name. */
function figureRow(name: string, value: string): [name: string, value: string] {
  const unit = UNITS.find(([suffix]) => name.endsWith(suffix))
  if (unit === undefined) return [name, value]
  const [suffix, show] = unit
  return [name.slice(0, -suffix.length), show(Number(value))]
}

/** Returns the bound of the bucket that the share of all values reaches. */
function percentile({ count, buckets }: Distribution, share: number): string {
  const bucket = buckets.find((bucket) => Number(bucket.count) >= share * Number(count))
  return bucket === undefined ? 'more' : showMicros(Number(bucket.leMicros))
}

function showMicros(micros: number): string {
  if (micros < 1e6) return `${Number((micros / 1e3).toPrecision(3))} ms`
  return micros < 1e9
    ? `${Number((micros / 1e6).toPrecision(3))} s`
    : `${Math.round(micros / 1e6)} s`
}
