/** The log: filters, one request with all its records, and new records as they are written. */
import { useEffect, useState } from 'preact/hooks'
import type { LogRecord } from '../../wire/logs.ts'
import { nowMillis } from '../clock.ts'
import { durationText, timeText } from '../formats.ts'
import { useLoaded } from '../loading.ts'
import { Choice, TextFilter } from '../parts/filters.tsx'
import { RecordDetails } from '../parts/log-records.tsx'
import { Badge, Empty, FailureNote, Page, Reload, Result, Section } from '../parts/page.tsx'
import { Shown } from '../parts/shown.tsx'
import { call, type Failure, failureOf, follow } from '../requests.ts'
import { environmentId, go, hrefOf, may, route } from '../state.ts'
import { RequestTimeline } from './request-timeline.tsx'

/** Records of a page, and those that a followed log keeps. */
const RECORDS_MAX = 200
/** Ages of the oldest shown record in seconds, by the label of the choice. */
const SPANS: Readonly<Record<string, number>> = { '15m': 900, '1h': 3_600, '1d': 86_400 }
const LEVELS = ['debug', 'info', 'warn', 'error']
const STREAMS = ['platform', 'function', 'audit']

/** The filters of the address, as the route has them. */
interface Filters {
  readonly level: string
  readonly stream: string
  readonly function: string
  readonly request: string
  readonly since: string
  readonly text: string
}

function filtersOf(parameters: URLSearchParams): Filters {
  const at = (name: string): string => parameters.get(name) ?? ''
  return {
    level: at('level'),
    stream: at('stream'),
    function: at('function'),
    request: at('request'),
    since: at('since'),
    text: at('text'),
  }
}

function queryOf(filters: Filters): Record<string, string> {
  const { text: _, since, ...named } = filters
  const given = Object.entries(named).filter(([, value]) => value !== '')
  const seconds = SPANS[since]
  if (seconds !== undefined) {
    given.push(['since', String((BigInt(nowMillis()) - BigInt(seconds * 1_000)) * 1_000n)])
  }
  return Object.fromEntries(given)
}

export function LogsPage() {
  const filters = filtersOf(route.value.parameters)
  const key = JSON.stringify([environmentId.value, { ...filters, text: '' }])
  const page = useLoaded(key, () =>
    call('listLogs', environmentId.value, { query: { ...queryOf(filters), limit: RECORDS_MAX } }),
  )
  const [isFollowing, setFollowing] = useState(false)
  const followed = useFollowed(key, filters, isFollowing)
  return (
    <Page title="Logs" actions={<Reload of={[page]} />}>
      <Section title="Filter">
        <FilterForm key={JSON.stringify(filters)} filters={filters} />
        {may('logs:follow') && (
          <p>
            <label class="field check">
              <input
                type="checkbox"
                checked={isFollowing}
                onChange={(event) => setFollowing(event.currentTarget.checked)}
              />
              Show new records as they are written
            </label>
          </p>
        )}
        {followed.failure !== null && <FailureNote failure={followed.failure} />}
      </Section>
      {filters.request !== '' && page.value !== null && (
        <RequestTimeline requestId={filters.request} records={page.value.items} />
      )}
      <Section title={filters.request === '' ? 'Records' : 'Records of one request'}>
        <Result of={page}>
          {({ items }) => {
            const known = new Set(items.map(({ cursor }) => cursor))
            const newer = followed.records.filter(({ cursor }) => !known.has(cursor))
            return <Records records={[...items, ...newer]} filters={filters} />
          }}
        </Result>
      </Section>
    </Page>
  )
}

/** The newest records that were written while the person followed the log. */
function useFollowed(key: string, filters: Filters, isFollowing: boolean) {
  const [records, setRecords] = useState<readonly LogRecord[]>([])
  const [failure, setFailure] = useState<Failure | null>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key has the filters.
  useEffect(() => {
    setRecords([])
    setFailure(null)
    if (!isFollowing) return
    const ending = new AbortController()
    const { since: _, ...query } = queryOf(filters)
    const add = (record: LogRecord): void =>
      setRecords((before) => [...before, record].slice(-RECORDS_MAX))
    follow(environmentId.value, query, add, ending.signal).catch((error) => {
      if (!ending.signal.aborted) setFailure(failureOf(error))
    })
    return () => ending.abort()
  }, [key, isFollowing])
  return { records, failure }
}

function FilterForm({ filters }: { filters: Filters }) {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    go('logs', Object.fromEntries([...form].map(([name, value]) => [name, String(value).trim()])))
  }
  return (
    <form onSubmit={submit}>
      <Choice name="level" label="Lowest level" value={filters.level} choices={LEVELS} />
      <Choice name="stream" label="Stream" value={filters.stream} choices={STREAMS} />
      <Choice name="since" label="Since" value={filters.since} choices={Object.keys(SPANS)} />
      <TextFilter name="function" label="Function" value={filters.function} />
      <TextFilter name="request" label="Request" value={filters.request} />
      <TextFilter name="text" label="Text in the record" value={filters.text} />
      <button type="submit" class="main">
        Filter
      </button>
      <a href={hrefOf('logs')}>All records</a>
    </form>
  )
}

function Records({ records, filters }: { records: readonly LogRecord[]; filters: Filters }) {
  const wanted = filters.text.toLowerCase()
  const shown = records.filter(
    (record) => wanted === '' || JSON.stringify(record).toLowerCase().includes(wanted),
  )
  if (shown.length === 0) return <Empty>No record matches the filter.</Empty>
  return (
    <>
      <p class="quiet">{shown.length} records, the newest first</p>
      <ul class="log">
        {shown.toReversed().map((record) => (
          <Record
            key={record.cursor}
            record={record}
            isOpen={filters.request !== '' && ['warn', 'error'].includes(record.level)}
          />
        ))}
      </ul>
    </>
  )
}

/** The failures of one request stand open, with their lines of the source. */
function Record({ record, isOpen }: { record: LogRecord; isOpen: boolean }) {
  const { atMicros, level, event, message, requestId } = record
  const cause = causeOf(record)
  return (
    <li>
      <div class="line">
        <time>{timeText(atMicros)}</time>
        <Badge text={level} />
        <span>
          <Shown text={record.function ?? event} max={80} />
        </span>
        <span class="text">
          <Shown text={message} max={400} />
          {cause !== null && (
            <>
              {' '}
              <span class="quiet">
                <Shown text={cause} max={200} />
              </span>
            </>
          )}
        </span>
        {record.durationMicros !== undefined && (
          <span class="quiet">{durationText(Number(record.durationMicros))}</span>
        )}
      </div>
      <details open={isOpen}>
        <summary>Details</summary>
        <RecordDetails record={record} />
        {requestId !== undefined && (
          <p>
            <a href={hrefOf('logs', { request: requestId })}>All records of this request</a>
          </p>
        )}
      </details>
    </li>
  )
}

/** The first line of the stack of a failure, or else the detail of a failed call; null without. */
function causeOf({ fields = {}, message }: LogRecord): string | null {
  const { trace, detail } = fields
  const cause = typeof trace === 'string' ? trace.trim().split('\n')[0]! : detail
  return typeof cause === 'string' && cause !== '' && cause !== message ? cause : null
}
