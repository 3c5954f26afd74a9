/** HTTP: the mounts of the routes of http.ts, and what other services sent below one. */
import { SCHEDULED_STATES } from '../../../value/scheduling/scheduled-work.ts'
import type { DeliveryField } from '../../../wire/http/deliveries.ts'
import type { ListedMount } from '../../../wire/http/mounts.ts'
import { timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Badge, Empty, Page, Reload, Result, Section } from '../../parts/page.tsx'
import { Identifier, Shown } from '../../parts/shown.tsx'
import { Table } from '../../parts/table.tsx'
import { call } from '../../requests.ts'
import { environmentId, go, hrefOf, may, route } from '../../state.ts'
import { Delivery } from './delivery.tsx'

const DELIVERIES_MAX = 50
/** Stands for the secret part of a path, which nothing shows again. */
const HIDDEN_TOKEN = 'hkt_…'

export function HttpPage() {
  const { parameters } = route.value
  const [mount, delivery] = [parameters.get('mount'), parameters.get('delivery')]
  return (
    <Page title="HTTP">
      {mount === null ? (
        <Mounts />
      ) : delivery === null ? (
        <Deliveries key={mount} mount={mount} />
      ) : (
        <Delivery key={delivery} mount={mount} scheduledId={delivery} />
      )}
    </Page>
  )
}

function Mounts() {
  const id = environmentId.value
  const mounts = useLoaded(id, () => call('listMounts', id))
  return (
    <Section title="Mounts" actions={<Reload of={[mounts]} />}>
      <p class="quiet">Other services reach the routes of http.ts of a Workspace below a mount.</p>
      <Result of={mounts}>
        {({ mounts: all }) =>
          all.length === 0 ? (
            <Empty>
              Nothing is mounted. Mount the routes of a Channel with{' '}
              <code>svc http mount NAME --target channel:production</code>.
            </Empty>
          ) : (
            <Table
              label="Mounts"
              rows={all}
              keyOf={({ name }) => name}
              columns={[
                { head: 'Mount', cell: ({ name }) => <MountName name={name} /> },
                { head: 'Target', cell: ({ configuration }) => configuration.target },
                { head: 'Serves', cell: (mount) => <Serves mount={mount} /> },
                {
                  head: 'Address',
                  cell: (mount) => (
                    <span class="cell">
                      <Shown text={addressOf(mount)} max={600} />
                    </span>
                  ),
                },
                {
                  head: 'Requests a second',
                  isNumber: true,
                  cell: ({ configuration }) => configuration.rateLimit ?? 'default',
                },
                { head: 'Changed', cell: ({ updatedAtMicros }) => timeText(updatedAtMicros) },
              ]}
            />
          )
        }
      </Result>
    </Section>
  )
}

function MountName({ name }: { name: string }) {
  if (!may('logs:read')) return <Shown text={name} />
  return (
    <a class="nowrap" href={hrefOf('http', { mount: name })}>
      <Shown text={name} />
    </a>
  )
}

function Serves({ mount: { releaseId } }: { mount: ListedMount }) {
  if (releaseId === undefined) return <span class="quiet">not known</span>
  if (releaseId === null) return <Badge text="nothing" />
  return (
    <span class="nowrap">
      <Identifier id={releaseId} />
    </span>
  )
}

function addressOf({ path, configuration }: ListedMount): string {
  const token = configuration.pathToken ? `/${HIDDEN_TOKEN}` : ''
  return `${configuration.publicUrl ?? ''}${path}${token}/…`
}

function Deliveries({ mount }: { mount: string }) {
  const id = environmentId.value
  const { parameters } = route.value
  const [state, after] = [parameters.get('state'), parameters.get('after')]
  const page = useLoaded(`${id} ${mount} ${state} ${after}`, () =>
    call('listDeliveries', id, {
      params: { mount },
      query: {
        limit: DELIVERIES_MAX,
        ...(state !== null && { state }),
        ...(after !== null && { after }),
      },
    }),
  )
  return (
    <Section title={`Deliveries of ${mount}`} actions={<Reload of={[page]} />}>
      <p>
        <a href={hrefOf('http')}>All mounts</a>
      </p>
      <div class="filters">
        <label class="field">
          <span class="label">State</span>
          <select
            value={state ?? ''}
            onChange={(event) => go('http', { mount, state: event.currentTarget.value })}
          >
            <option value="">any</option>
            {SCHEDULED_STATES.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Result of={page}>
        {({ items, next }) => (
          <>
            <Rows mount={mount} items={items} isFiltered={state !== null} hasNext={next !== null} />
            <p class="buttons">
              {after !== null && <a href={hrefOf('http', { mount, state })}>First page</a>}
              {next !== null && (
                <a href={hrefOf('http', { mount, state, after: next })}>Next page</a>
              )}
            </p>
          </>
        )}
      </Result>
    </Section>
  )
}

function Rows({
  mount,
  items,
  isFiltered,
  hasNext,
}: {
  mount: string
  items: readonly DeliveryField[]
  isFiltered: boolean
  hasNext: boolean
}) {
  if (items.length === 0) {
    if (hasNext) return <Empty>This page has none, but later ones may: see the next page.</Empty>
    return (
      <Empty>
        {isFiltered
          ? 'No delivery is in this state.'
          : 'Nothing came in the last 7 days. Endpoints answer at once and leave no delivery here.'}
      </Empty>
    )
  }
  return (
    <Table
      label="Deliveries"
      rows={items}
      keyOf={({ deliveryId }) => deliveryId}
      columns={[
        {
          head: 'Event',
          cell: ({ deliveryId, event }) => (
            <a class="cell" href={hrefOf('http', { mount, delivery: deliveryId })}>
              <Shown text={event} />
            </a>
          ),
        },
        { head: 'Hook', cell: ({ route: name }) => <Shown text={name} /> },
        { head: 'State', cell: ({ state }) => <Badge text={state} /> },
        { head: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
        {
          head: 'Failure',
          cell: ({ lastErrorCode, lastErrorMessage }) =>
            lastErrorCode === null ? (
              <span class="quiet">–</span>
            ) : (
              <span class="cell">
                <Shown text={[lastErrorCode, lastErrorMessage].filter(Boolean).join(': ')} />
              </span>
            ),
        },
        { head: 'Received', cell: ({ receivedAtMicros }) => timeText(receivedAtMicros) },
      ]}
    />
  )
}
