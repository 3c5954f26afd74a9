/** Scheduled Functions: those that are pending, and those that ended within 7 days. */
import { SCHEDULED_STATES } from '../../../value/scheduling/scheduled-work.ts'
import { nowMillis } from '../../clock.ts'
import { timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Choice, TextFilter } from '../../parts/filters.tsx'
import { Badge, Empty, Reload, Result, Section } from '../../parts/page.tsx'
import { Identifier, Shown } from '../../parts/shown.tsx'
import { Table } from '../../parts/table.tsx'
import { call } from '../../requests.ts'
import { ask, environmentId, go, hrefOf, may, route, svcCommand } from '../../state.ts'
import { FailureLink } from './crons.tsx'
import { type Found, findWork, idBefore, type Work } from './pieces.ts'

const ROWS_MAX = 100
const WORK_MS = 5_000
/** Ages of the oldest shown piece in milliseconds, by the label of the choice. */
const SPANS: Readonly<Record<string, number>> = {
  '15m': 900_000,
  '1h': 3_600_000,
  '1d': 86_400_000,
}

export function ScheduledSection() {
  const id = environmentId.value
  const { parameters } = route.value
  const [state, since, name] = ['state', 'since', 'name'].map((each) => parameters.get(each) ?? '')
  const after = parameters.get('after')
  const key = JSON.stringify([id, state, since, name, after])
  const pieces = useLoaded(
    key,
    (background) => {
      const span = SPANS[since!]
      const begins = span === undefined ? null : idBefore(nowMillis() - span)
      const fits = (work: Work): boolean =>
        (state === '' || work.state === state) && (name === '' || work.function === name)
      return findWork(id, { after: after ?? begins, limit: ROWS_MAX, fits }, background)
    },
    { everyMs: WORK_MS },
  )
  const at = { state: state!, since: since!, name: name! }
  return (
    <Section title="Scheduled Functions" actions={<Reload of={[pieces]} />}>
      <Filter key={key} {...at} />
      <Result of={pieces}>
        {(found) => (
          <>
            <Pieces
              found={found}
              isFiltered={state !== '' || since !== '' || name !== ''}
              reload={pieces.reload}
            />
            <p class="buttons">
              {after !== null && <a href={hrefOf('schedules', at)}>First page</a>}
              {found.next !== null && (
                <a href={hrefOf('schedules', { ...at, after: found.next })}>Next page</a>
              )}
            </p>
          </>
        )}
      </Result>
    </Section>
  )
}

function Filter({ state, since, name }: { state: string; since: string; name: string }) {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const given = [...form].map(([field, value]) => [field, String(value).trim()])
    go('schedules', Object.fromEntries(given))
  }
  return (
    <form onSubmit={submit}>
      <Choice name="state" label="State" value={state} choices={SCHEDULED_STATES} />
      <Choice name="since" label="Scheduled since" value={since} choices={Object.keys(SPANS)} />
      <TextFilter name="name" label="Function" value={name} />
      <button type="submit" class="main">
        Filter
      </button>
      <a href={hrefOf('schedules')}>All</a>
    </form>
  )
}

function Pieces({
  found,
  isFiltered,
  reload,
}: {
  found: Found
  isFiltered: boolean
  reload: () => void
}) {
  const none = isFiltered ? 'Nothing fits.' : 'Nothing is scheduled.'
  if (found.items.length === 0) {
    return (
      <Empty>
        {found.next === null
          ? `${none} Functions schedule others with ctx.scheduler; Crons do so too.`
          : `None of ${found.read} scheduled Functions fits. The next page looks at later ones.`}
      </Empty>
    )
  }
  return (
    <>
      <p class="quiet">In the order in which they were scheduled, for 7 days after their end</p>
      <Table
        label="Scheduled Functions"
        rows={found.items}
        keyOf={({ scheduledId }) => scheduledId}
        columns={[
          { head: 'ID', cell: ({ scheduledId }) => <Identifier id={scheduledId} /> },
          { head: 'State', cell: ({ state }) => <Badge text={state} /> },
          { head: 'Function', cell: (work) => <Shown text={work.function} /> },
          { head: 'Due', cell: ({ dueAtMicros }) => timeText(dueAtMicros) },
          { head: 'Attempts', isNumber: true, cell: ({ attempts }) => String(attempts) },
          { head: 'Failure', cell: (work) => <FailureLink work={work} /> },
          { head: 'Origin', cell: (work) => <Origin work={work} /> },
          {
            head: 'Change',
            cell: (work) =>
              may('cron:activate') &&
              work.state === 'pending' && <Cancel work={work} reload={reload} />,
          },
        ]}
      />
    </>
  )
}

function Origin({ work: { source, http } }: { work: Work }) {
  return <Shown text={http === undefined ? source : `${http.mount}/${http.route}`} />
}

function Cancel({ work, reload }: { work: Work; reload: () => void }) {
  const { scheduledId } = work
  const cancel = (): void =>
    ask({
      title: `Cancel ${scheduledId}?`,
      effects: [
        `${work.function} does not run, which was due at ${timeText(work.dueAtMicros)}. Canceled ` +
          'work never runs.',
      ],
      command: svcCommand(`scheduled cancel ${scheduledId}`),
      label: 'Cancel the run',
      act: () => call('cancelScheduled', environmentId.value, { params: { scheduledId } }),
      done: reload,
    })
  return (
    <button type="button" class="danger" aria-label={`Cancel … ${scheduledId}`} onClick={cancel}>
      Cancel …
    </button>
  )
}
