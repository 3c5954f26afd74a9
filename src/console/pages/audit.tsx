/** Audit: who changed what, with which outcome, newest first. */
import type { AuditRecord } from '../../wire/identity/audit.ts'
import { microsOfLocal, timeText } from '../formats.ts'
import { useLoaded } from '../loading.ts'
import { Badge, Empty, Page, Reload, Result, Section } from '../parts/page.tsx'
import { PageLinks } from '../parts/pages.tsx'
import { Identifier, Shown } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { call } from '../requests.ts'
import { about, environmentId, go, hrefOf, may, route } from '../state.ts'

const PAGE_RECORDS = 100

/** Offered by the field; the audit has others. */
const OPERATIONS = [
  'session.create',
  'session.derive',
  'session.revoke',
  'session.reuse_detected',
  'invitation.create',
  'invitation.consume',
  'invitation.revoke',
  'grants.change',
  'grants.revoke',
  'operator.disable',
  'operator.enable',
  'product.release.publish',
  'product.channel.promote',
  'product.backup.create',
  'product.backup.read',
]

/** The filters of the address, as the form has them. */
interface Filters {
  readonly operator: string
  readonly operation: string
  readonly from: string
  readonly to: string
}

function filtersOf(parameters: URLSearchParams): Filters {
  const at = (name: string): string => parameters.get(name) ?? ''
  return { operator: at('operator'), operation: at('operation'), from: at('from'), to: at('to') }
}

function queryOf({ operator, operation, from, to }: Filters): Record<string, string> {
  const all = { operator, operation, from: microsOfLocal(from), to: microsOfLocal(to) }
  const given = Object.entries(all).filter(([, value]) => value !== null && value !== '')
  return Object.fromEntries(given) as Record<string, string>
}

export function AuditPage() {
  if (!about.value!.managesInstallation) {
    return (
      <Page title="Audit">
        <Section title="Records">
          <Empty>
            The audit has records of every scope: only owners of the installation read it.
          </Empty>
        </Section>
      </Page>
    )
  }
  return <Records />
}

function Records() {
  const id = environmentId.value
  const { parameters } = route.value
  const filters = filtersOf(parameters)
  const after = parameters.get('after')
  const key = JSON.stringify([id, filters, after])
  const page = useLoaded(key, () => {
    const query = { ...queryOf(filters), limit: PAGE_RECORDS, ...(after !== null && { after }) }
    return call('listAuditRecords', id, { query })
  })
  return (
    <Page title="Audit" actions={<Reload of={[page]} />}>
      <Section title="Filter">
        <FilterForm key={JSON.stringify(filters)} filters={filters} />
      </Section>
      <Section title="Records">
        <Result of={page}>
          {({ items, next }) => (
            <>
              {items.length === 0 ? (
                <Empty>
                  {next === null
                    ? 'No record matches the filter.'
                    : 'None of the newest records matches the filter: look at the next page.'}
                </Empty>
              ) : (
                <Rows items={items} />
              )}
              <PageLinks page="audit" at={{ ...filters }} after={after} next={next} />
            </>
          )}
        </Result>
      </Section>
    </Page>
  )
}

function FilterForm({ filters }: { filters: Filters }) {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    go('audit', Object.fromEntries([...form].map(([name, value]) => [name, String(value).trim()])))
  }
  return (
    <form onSubmit={submit}>
      <Input name="operator" label="Operator (opr_ID)" value={filters.operator} />
      <Input name="operation" label="Action" value={filters.operation} list="audit-operations" />
      <datalist id="audit-operations">
        {OPERATIONS.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <Input name="from" label="From" value={filters.from} type="datetime-local" />
      <Input name="to" label="Before" value={filters.to} type="datetime-local" />
      <button type="submit" class="main">
        Filter
      </button>
      <a href={hrefOf('audit')}>All records</a>
    </form>
  )
}

function Input({
  name,
  label,
  value,
  type = 'text',
  list,
}: {
  name: string
  label: string
  value: string
  type?: 'text' | 'datetime-local'
  list?: string
}) {
  return (
    <label class="field">
      <span class="label">{label}</span>
      <input
        name={name}
        type={type}
        {...(list !== undefined && { list })}
        defaultValue={value}
        autocomplete="off"
        spellcheck={false}
      />
    </label>
  )
}

function Rows({ items }: { items: readonly AuditRecord[] }) {
  return (
    <Table
      label="Records"
      rows={items}
      keyOf={({ auditId }) => auditId}
      columns={[
        {
          head: 'Time',
          isShort: true,
          cell: ({ atMicros }) => <time>{timeText(atMicros)}</time>,
        },
        { head: 'Action', isShort: true, cell: ({ operation }) => <Shown text={operation} /> },
        { head: 'Outcome', cell: ({ outcome }) => <Badge text={outcome} /> },
        { head: 'Actor', cell: (record) => <Actor record={record} /> },
        {
          head: 'Purpose',
          isShort: true,
          cell: ({ purpose }) => purpose ?? <span class="quiet">–</span>,
        },
        { head: 'Resource', cell: (record) => <Resource record={record} /> },
        { head: 'Request', isShort: true, cell: (record) => <Request record={record} /> },
      ]}
    />
  )
}

function Actor({ record: { actor, actorName, credentialId } }: { record: AuditRecord }) {
  if (actor !== null) {
    return (
      <a href={hrefOf('audit', { operator: actor })}>
        <Shown text={actorName ?? actor} />
      </a>
    )
  }
  if (credentialId !== null) return <Identifier id={credentialId} />
  return <span class="quiet">no operator</span>
}

/** The session of the page has no `releases:read`, so no record has the origin of a Release. */
function Resource({ record: { subject, subjectName } }: { record: AuditRecord }) {
  if (subject === null) return <span class="quiet">–</span>
  return (
    <>
      {subjectName !== null && (
        <>
          <Shown text={subjectName} />{' '}
        </>
      )}
      <code>
        <Shown text={subject} />
      </code>
    </>
  )
}

/** The log has the requests that act on an Environment, and none of logins and operators. */
function Request({ record: { requestId, operation } }: { record: AuditRecord }) {
  if (requestId === null) return <span class="quiet">–</span>
  const isLogged = operation.startsWith('product.') && may('logs:read')
  if (!isLogged) return <Identifier id={requestId} />
  return (
    <a href={hrefOf('logs', { request: requestId })}>
      <code>{requestId}</code>
    </a>
  )
}
