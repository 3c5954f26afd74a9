/** Overview: health, traffic, latency and errors, as they are now. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { MetricsReport } from '../../wire/metrics.ts'
import { bytesText, durationText } from '../formats.ts'
import { useLoaded } from '../loading.ts'
import { Badge, Page, Result, Section } from '../parts/page.tsx'
import { Plot } from '../parts/plot.tsx'
import { Identifier, Shown } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { call } from '../requests.ts'
import { environmentId, hrefOf, may } from '../state.ts'
import { quantile, type Sample, sampleOf } from './samples.ts'

const HEALTH_MS = 5_000
const METRICS_MS = 2_000
/** Samples of ten minutes. */
const SAMPLES_MAX = 300

interface History {
  readonly environmentId: string
  readonly last: MetricsReport | null
  readonly samples: readonly Sample[]
}

/** Kept while other pages are shown, so that the plots continue where they were. */
const history = signal<History>({ environmentId: '', last: null, samples: [] })

export function OverviewPage() {
  return (
    <Page title="Overview">
      {may('environments:read') && <HealthSection />}
      {may('usage:read') && <TrafficSection />}
    </Page>
  )
}

function HealthSection() {
  const id = environmentId.value
  const health = useLoaded(id, readHealth, { everyMs: HEALTH_MS })
  return (
    <Section title="Health">
      <Result of={health}>
        {([{ status, components }, { desired, observed }]) => (
          <>
            <p class="facts">
              <Badge text={status} /> <Shown text={desired.configuration.name} />{' '}
              <Identifier id={id} /> <span>purpose: {desired.configuration.purpose}</span>{' '}
              <span>{desired.lifecycle === 'archived' ? 'archived' : observed.serving}</span>
            </p>
            <ul class="cards">
              {components.map((each) => (
                <li key={each.name}>
                  <span>{each.name}</span> <Badge text={each.status} />
                </li>
              ))}
            </ul>
          </>
        )}
      </Result>
    </Section>
  )
}

function readHealth(background: boolean) {
  const id = environmentId.value
  return Promise.all([
    call('readHealth', id, {}, { background }),
    call('readEnvironment', id, {}, { background }),
  ])
}

function TrafficSection() {
  const id = environmentId.value
  const metrics = useLoaded(id, (background) => call('readMetrics', id, {}, { background }), {
    everyMs: METRICS_MS,
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: another Environment begins anew.
  useEffect(() => {
    if (metrics.value !== null) record(id, metrics.value)
  }, [id, metrics.value])
  const samples = history.value.environmentId === id ? history.value.samples : []
  return (
    <Section title="Traffic">
      <Result of={metrics}>
        {(report) => (
          <>
            <Plots samples={samples} />
            <Totals report={report} />
          </>
        )}
      </Result>
    </Section>
  )
}

/** Adds what happened since the report before; a server that started again begins anew. */
function record(id: string, report: MetricsReport): void {
  const { environmentId: known, last, samples } = history.value
  const continues =
    known === id &&
    last !== null &&
    last.processStartedAtMicros === report.processStartedAtMicros &&
    last.collectedAtMicros !== report.collectedAtMicros
  if (known === id && last?.collectedAtMicros === report.collectedAtMicros) return
  const kept = known === id ? samples : []
  const next = continues ? [...kept, sampleOf(last, report)].slice(-SAMPLES_MAX) : kept
  history.value = { environmentId: id, last: report, samples: next }
}

function Plots({ samples }: { samples: readonly Sample[] }) {
  const times = samples.map(({ atSeconds }) => atSeconds)
  const newest = samples.at(-1)
  const perSecond = (value: number): string => `${value.toFixed(1)}/s`
  const calls = newest === undefined ? 'waiting for the second measurement' : ''
  return (
    <div class="plots">
      <Plot
        title="Calls"
        times={times}
        format={perSecond}
        summary={
          newest === undefined
            ? calls
            : perSecond(newest.queries + newest.mutations + newest.actions)
        }
        series={[
          { label: 'Queries', values: samples.map(({ queries }) => queries) },
          { label: 'Mutations', values: samples.map(({ mutations }) => mutations) },
          { label: 'Actions', values: samples.map(({ actions }) => actions) },
        ]}
      />
      <Plot
        title="Latency of calls"
        times={times}
        format={durationText}
        summary={
          newest === undefined
            ? calls
            : newest.p99 === null
              ? 'no calls'
              : `99th percentile ${durationText(newest.p99)}`
        }
        series={[
          { label: 'Median', values: samples.map(({ p50 }) => p50) },
          { label: '99th percentile', values: samples.map(({ p99 }) => p99) },
        ]}
      />
      <Plot
        title="Errors"
        times={times}
        format={perSecond}
        summary={newest === undefined ? calls : perSecond(newest.failed + newest.unavailable)}
        series={[
          { label: 'Failed', values: samples.map(({ failed }) => failed) },
          { label: 'Unavailable', values: samples.map(({ unavailable }) => unavailable) },
          { label: 'Rejected', values: samples.map(({ refused }) => refused) },
        ]}
      />
    </div>
  )
}

const KINDS = [
  ['Queries', 'queries', 'queryDurationMicros'],
  ['Mutations', 'mutations', 'mutationDurationMicros'],
  ['Actions', 'actions', 'actionDurationMicros'],
] as const

function Totals({ report }: { report: MetricsReport }) {
  const { counters, gauges, histograms } = report
  const count = (name: string): string => Number(counters[name] ?? 0).toLocaleString('en-US')
  const since = Number(
    (BigInt(report.collectedAtMicros) - BigInt(report.processStartedAtMicros)) as bigint,
  )
  return (
    <>
      <p class="facts">
        <span>Running for {durationText(since)}</span>
        <span>{gauges.realtimeConnections ?? '0'} Realtime connections</span>
        <span>{gauges.subscriptions ?? '0'} subscriptions</span>
        <span>{bytesText(gauges.processResidentBytes ?? 0)} in the server</span>
        <span>{bytesText(gauges.runnerResidentBytes ?? 0)} in runners</span>
        <a href={hrefOf('logs', { level: 'warn' })}>Warnings in the log</a>
      </p>
      <Table
        label="Calls since the start"
        rows={KINDS}
        keyOf={([title]) => title}
        columns={[
          { head: 'Since the start', cell: ([title]) => title },
          { head: 'Succeeded', isNumber: true, cell: ([, name]) => count(`${name}Succeeded`) },
          { head: 'Rejected', isNumber: true, cell: ([, name]) => count(`${name}Refused`) },
          {
            head: 'Failed',
            isNumber: true,
            cell: ([title, name]) => <Failed title={title} text={count(`${name}Failed`)} />,
          },
          { head: 'Unavailable', isNumber: true, cell: ([, name]) => count(`${name}Unavailable`) },
          {
            head: 'Median',
            isNumber: true,
            cell: ([, , name]) => quantileText(histograms[name], 0.5),
          },
          {
            head: '99th percentile',
            isNumber: true,
            cell: ([, , name]) => quantileText(histograms[name], 0.99),
          },
        ]}
      />
    </>
  )
}

/** The number of failed calls, with a link to their records. */
function Failed({ title, text }: { title: string; text: string }) {
  if (text === '0' || !may('logs:read')) return <>{text}</>
  return (
    <a href={hrefOf('logs', { level: 'warn' })} aria-label={`${text} failed ${title} in the log`}>
      {text}
    </a>
  )
}

function quantileText(histogram: MetricsReport['histograms'][string] | undefined, part: number) {
  const micros = quantile(histogram, undefined, part)
  return micros === null ? '–' : `≤ ${durationText(micros)}`
}
