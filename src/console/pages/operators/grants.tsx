/** The grants of one operator: what it may do where, a role in their place, and their end. */
import { useState } from 'preact/hooks'
import type { Role } from '../../../value/capabilities.ts'
import type { GrantField, OperatorRecord } from '../../../wire/identity/access.ts'
import { Empty, Section } from '../../parts/page.tsx'
import { Shown } from '../../parts/shown.tsx'
import { Table } from '../../parts/table.tsx'
import { call } from '../../requests.ts'
import { about, ask, environmentId } from '../../state.ts'
import { RoleChoice, ScopeChoice } from './role-form.tsx'
import { roleText, type Scope, scopeOptions, scopesHere, scopeText } from './scopes.ts'

const SOURCES: Readonly<Record<GrantField['source'], string>> = {
  bootstrap: 'first start',
  invitation: 'an operator',
  managed: 'the managed source',
  legacy: 'an earlier version',
}

interface Given {
  readonly operator: OperatorRecord
  readonly reload: () => void
}

export function GrantsSection({ operator, reload }: Given) {
  const { grants } = operator
  return (
    <Section title="Grants">
      {grants.length === 0 ? (
        <Empty>It has no grant: it may log in, and do nothing. Give it a role below.</Empty>
      ) : (
        <Table
          label="Grants"
          rows={grants}
          keyOf={({ scope, source }) => JSON.stringify([scope, source])}
          columns={[
            { head: 'At', isShort: true, cell: ({ scope }) => <Shown text={scopeText(scope)} /> },
            { head: 'Role', isShort: true, cell: roleText },
            { head: 'Given by', isShort: true, cell: ({ source }) => SOURCES[source] },
            {
              head: 'Capabilities',
              cell: ({ capabilities }) => <Capabilities capabilities={capabilities} />,
            },
            {
              head: 'Change',
              cell: (grant) => <Revoke operator={operator} grant={grant} reload={reload} />,
            },
          ]}
        />
      )}
      <h3>Give a role, or change one</h3>
      <GrantForm operator={operator} reload={reload} />
    </Section>
  )
}

function Capabilities({ capabilities }: Pick<GrantField, 'capabilities'>) {
  return (
    <details>
      <summary class="nowrap">{capabilities.length} capabilities</summary>
      <Shown text={capabilities.join(', ')} max={1_000} />
    </details>
  )
}

const isOwn = ({ operatorId }: OperatorRecord): boolean => operatorId === about.value?.operatorId

const OWN = 'It is your own grant: this page, and you, lose what it gives at once.'

function Revoke({ operator, grant, reload }: Given & { grant: GrantField }) {
  const { operatorId, operatorName } = operator
  const { scope, source } = grant
  if (source === 'managed') return <span class="quiet">at its source alone</span>
  const at = scopeText(scope)
  const revoke = (): void =>
    ask({
      title: `Revoke the grant of ${operatorName} at ${at}?`,
      effects: [
        `${operatorName} (${operatorId}) is ${roleText(grant)} there. It loses that at once, ` +
          'also in sessions that are open. Its other grants stay.',
        ...(isOwn(operator) ? [OWN] : []),
      ],
      command: `svc grants revoke ${operatorId} ${scopeOptions(scope)}`,
      label: 'Revoke the grant',
      act: () => change(operator, scope, null),
      done: reload,
    })
  return (
    <button type="button" class="danger" aria-label={`Revoke … ${at}`} onClick={revoke}>
      Revoke …
    </button>
  )
}

function capabilitiesAt({ grants }: OperatorRecord, scope: Scope) {
  const text = JSON.stringify(keyOf(scope))
  return (
    grants.find((each) => each.source !== 'managed' && JSON.stringify(keyOf(each.scope)) === text)
      ?.capabilities ?? null
  )
}

const keyOf = ({ kind, projectId, environmentId }: Scope) => [kind, projectId, environmentId]

/** The server rejects it where the operator has another grant there than the page shows. */
function change(operator: OperatorRecord, scope: Scope, role: Role | null) {
  const { operatorId } = operator
  const expectedCapabilities = capabilitiesAt(operator, scope)
  return call('changeGrant', environmentId.value, {
    params: { operatorId },
    body: { scope, role, expectedCapabilities },
  })
}

function GrantForm({ operator, reload }: Given) {
  const { operatorId, operatorName } = operator
  const [role, setRole] = useState<Role>('observer')
  const [scopeIndex, setScopeIndex] = useState(0)
  const scopes = scopesOf(operator)
  const scope = scopes[scopeIndex] ?? scopes[0]!
  const at = scopeText(scope)
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const held = capabilitiesAt(operator, scope)
    const before = held === null ? 'nothing' : roleText({ capabilities: held })
    ask({
      title: `Make ${operatorName} ${role} at ${at}?`,
      effects: [
        `${operatorName} (${operatorId}) has ${before} there. The role takes its place at once, ` +
          'also in sessions that are open. You can give what you may do yourself there.',
        ...(isOwn(operator) && held !== null ? [OWN] : []),
      ],
      command: `svc grants change ${operatorId} --role ${role} ${scopeOptions(scope)}`,
      label: 'Give the role',
      act: () => change(operator, scope, role),
      done: reload,
    })
  }
  return (
    <form onSubmit={submit}>
      <RoleChoice value={role} onChange={setRole} />
      <ScopeChoice scopes={scopes} value={scopeIndex} onChange={setScopeIndex} />
      <button type="submit">Give the role …</button>
    </form>
  )
}

/** The scopes of this page, and those of grants elsewhere. */
function scopesOf({ grants }: OperatorRecord): Scope[] {
  const here = scopesHere()
  const known = new Set(here.map((each) => JSON.stringify(keyOf(each))))
  const others = grants
    .filter(({ source, scope }) => source !== 'managed' && !known.has(JSON.stringify(keyOf(scope))))
    .map(({ scope }) => scope)
  return [...here, ...others]
}
