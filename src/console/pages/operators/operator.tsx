/** One operator: its state, grants, identities and sessions. */
import type { OperatorPage, OperatorRecord } from '../../../wire/identity/access.ts'
import { timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Badge, Empty, Reload, Result, Section } from '../../parts/page.tsx'
import { PageLinks } from '../../parts/pages.tsx'
import { Identifier, Shown } from '../../parts/shown.tsx'
import { call, nowMicros } from '../../requests.ts'
import { about, ask, environmentId, hrefOf, route } from '../../state.ts'
import { SessionTable } from '../sessions/session-table.tsx'
import { GrantsSection } from './grants.tsx'

const OPERATORS_MAX = 1_000
const SESSIONS_MAX = 50

/** No route returns one operator. Returns null if no operator has the ID. */
async function readOperator(operatorId: string): Promise<OperatorRecord | null> {
  let after: string | null = null
  for (;;) {
    const query = { limit: OPERATORS_MAX, ...(after !== null && { after }) }
    const page: OperatorPage = await call('listOperators', environmentId.value, { query })
    const found = page.items.find((each) => each.operatorId === operatorId)
    if (found !== undefined) return found
    if (page.next === null) return null
    after = page.next
  }
}

export function OneOperator({ operatorId }: { operatorId: string }) {
  const loaded = useLoaded(operatorId, () => readOperator(operatorId))
  return (
    <>
      <p>
        <a href={hrefOf('operators')}>All operators</a>
      </p>
      <Result of={loaded}>
        {(operator) =>
          operator === null ? (
            <Empty>There is no such operator.</Empty>
          ) : (
            <>
              <Facts operator={operator} reload={loaded.reload} />
              <GrantsSection operator={operator} reload={loaded.reload} />
              <Sessions key={operator.disabledAtMicros ?? ''} operator={operator} />
            </>
          )
        }
      </Result>
    </>
  )
}

function Facts({ operator, reload }: { operator: OperatorRecord; reload: () => void }) {
  const { operatorId, operatorName, disabledAtMicros, identities } = operator
  return (
    <Section
      title="State"
      actions={
        disabledAtMicros === null ? (
          <button type="button" class="danger" onClick={() => disable(operator, reload)}>
            Disable …
          </button>
        ) : (
          <button type="button" onClick={() => enable(operator, reload)}>
            Enable …
          </button>
        )
      }
    >
      <p class="facts">
        <Badge text={disabledAtMicros === null ? 'enabled' : 'disabled'} />
        <strong>
          <Shown text={operatorName} />
        </strong>
        <Identifier id={operatorId} />
        {operatorId === about.value?.operatorId && <span>you</span>}
        <span>created {timeText(operator.createdAtMicros)}</span>
        <span>last used {timeText(operator.lastUsedAtMicros)}</span>
        {disabledAtMicros !== null && <span>disabled {timeText(disabledAtMicros)}</span>}
        <a href={hrefOf('audit', { operator: operatorId })}>Its records in the audit</a>
      </p>
      {identities.length > 0 && (
        <ul>
          {identities.map(({ providerId, linkedAtMicros }) => (
            <li key={providerId}>
              logs in by <Shown text={providerId} />, linked {timeText(linkedAtMicros)}
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}

function change(verb: 'disable' | 'enable', { operatorId }: OperatorRecord) {
  return call(`${verb}Operator`, environmentId.value, {
    params: { operatorId },
    body: { changedAtMicros: nowMicros() },
  })
}

function disable(operator: OperatorRecord, reload: () => void): void {
  const { operatorId, operatorName } = operator
  const isOwn = operatorId === about.value?.operatorId
  ask({
    title: `Disable ${operatorName}?`,
    effects: [
      'Every session of it ends at once, and it cannot log in. Invitations that it issued and ' +
        'nobody used stop working. Its grants stay, for when it is enabled again.',
      ...(isOwn
        ? [
            'It is you: this page stops working, this machine is logged out, and only another ' +
              'owner can enable you again.',
          ]
        : []),
    ],
    command: `svc operators disable ${operatorId}`,
    label: 'Disable the operator',
    act: () => change('disable', operator),
    done: reload,
  })
}

function enable(operator: OperatorRecord, reload: () => void): void {
  const { operatorId, operatorName } = operator
  ask({
    title: `Enable ${operatorName}?`,
    effects: [
      'It may log in again through its identity provider, with the grants below. Its earlier ' +
        'sessions stay ended. Without a linked identity it needs a new invitation.',
    ],
    command: `svc operators enable ${operatorId}`,
    label: 'Enable the operator',
    act: () => change('enable', operator),
    done: reload,
  })
}

function Sessions({ operator: { operatorId, operatorName } }: { operator: OperatorRecord }) {
  const id = environmentId.value
  const after = route.value.parameters.get('after')
  const page = useLoaded(`${operatorId} ${after}`, () => {
    const query = { limit: SESSIONS_MAX, ...(after !== null && { after }) }
    return call('listOperatorSessions', id, { params: { operatorId }, query })
  })
  return (
    <Section title="Sessions" actions={<Reload of={[page]} />}>
      <Result of={page}>
        {({ sessions, next }) => (
          <>
            <SessionTable sessions={sessions} owner={operatorName} reload={page.reload} />
            <PageLinks page="operators" at={{ operator: operatorId }} after={after} next={next} />
          </>
        )}
      </Result>
    </Section>
  )
}
