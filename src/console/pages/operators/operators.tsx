/** Operators: who may log in, what they may do, and the invitation of another one. */
import type { OperatorRecord } from '../../../wire/identity/access.ts'
import { timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Badge, Empty, Page, Reload, Result, Section } from '../../parts/page.tsx'
import { PageLinks } from '../../parts/pages.tsx'
import { Identifier, Shown } from '../../parts/shown.tsx'
import { Table } from '../../parts/table.tsx'
import { call } from '../../requests.ts'
import { about, environmentId, hrefOf, route } from '../../state.ts'
import { InvitationSection } from './invitation.tsx'
import { OneOperator } from './operator.tsx'
import { roleText, scopeText } from './scopes.ts'

const PAGE_OPERATORS = 50

export function OperatorsPage() {
  const operatorId = route.value.parameters.get('operator')
  if (!about.value!.managesInstallation) {
    return (
      <Page title="Operators">
        <Section title="Operators">
          <Empty>
            Only operators with operators:manage at the installation see the list. You can invite
            for the Projects and Environments where you have it.
          </Empty>
        </Section>
        <InvitationSection />
      </Page>
    )
  }
  if (operatorId !== null) {
    return (
      <Page title="Operator">
        <OneOperator key={operatorId} operatorId={operatorId} />
      </Page>
    )
  }
  return <All />
}

function All() {
  const after = route.value.parameters.get('after')
  const page = useLoaded(`operators ${after}`, () => {
    const query = { limit: PAGE_OPERATORS, ...(after !== null && { after }) }
    return call('listOperators', environmentId.value, { query })
  })
  return (
    <Page title="Operators" actions={<Reload of={[page]} />}>
      <Section title="All operators">
        <Result of={page}>
          {({ items, next }) => (
            <>
              <Rows items={items} />
              <PageLinks page="operators" at={{}} after={after} next={next} />
            </>
          )}
        </Result>
      </Section>
      <InvitationSection />
    </Page>
  )
}

function Rows({ items }: { items: readonly OperatorRecord[] }) {
  return (
    <Table
      label="Operators"
      rows={items}
      keyOf={({ operatorId }) => operatorId}
      columns={[
        {
          head: 'Name',
          cell: ({ operatorId, operatorName }) => (
            <a href={hrefOf('operators', { operator: operatorId })}>
              <Shown text={operatorName} />
            </a>
          ),
        },
        {
          head: 'State',
          cell: ({ disabledAtMicros }) => (
            <Badge text={disabledAtMicros === null ? 'enabled' : 'disabled'} />
          ),
        },
        { head: 'Grants', cell: (operator) => <Grants operator={operator} /> },
        {
          head: 'Last used',
          isShort: true,
          cell: ({ lastUsedAtMicros }) => timeText(lastUsedAtMicros),
        },
        {
          head: 'Operator',
          isShort: true,
          cell: ({ operatorId }) => <Identifier id={operatorId} />,
        },
      ]}
    />
  )
}

function Grants({ operator: { grants } }: { operator: OperatorRecord }) {
  if (grants.length === 0) return <span class="quiet">none</span>
  const texts = grants.map((grant) => `${roleText(grant)} at ${scopeText(grant.scope)}`)
  return <Shown text={texts.join(', ')} />
}
