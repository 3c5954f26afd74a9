/** Data: the documents of a table in the order of an index, and one document to edit. */
import type { TableCatalog } from '../../../wire/catalogs.ts'
import type { DocumentField } from '../../../wire/data.ts'
import { timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Empty, Page, Reload, Result, Section } from '../../parts/page.tsx'
import { Shown } from '../../parts/shown.tsx'
import { Table } from '../../parts/table.tsx'
import { TargetChoice, useTarget } from '../../parts/targets.tsx'
import { plainOfFields } from '../../plain-values.ts'
import { call } from '../../requests.ts'
import { environmentId, go, hrefOf, may, route } from '../../state.ts'
import { boundsOf, type IndexChoice, IndexForm, parametersOf } from './bounds.tsx'
import { DocumentEditor, NewDocument } from './documents.tsx'
import { Transfers } from './transfers.tsx'

const PAGE_DOCUMENTS = 50

type TableField = TableCatalog['tables'][number]

export function DataPage() {
  const { targets, target } = useTarget()
  return (
    <Page title="Data">
      <Result of={targets}>
        {(known) =>
          target === null ? (
            <Section title="Tables">
              <Empty>Nothing is released here yet, so there is no schema.</Empty>
            </Section>
          ) : (
            <Tables targets={known} target={target} />
          )
        }
      </Result>
    </Page>
  )
}

function Tables({ targets, target }: { targets: readonly string[]; target: string }) {
  const id = environmentId.value
  const catalog = useLoaded(`${id} ${target}`, () => call('listTables', id, { query: { target } }))
  const { parameters } = route.value
  const wanted = parameters.get('table')
  return (
    <Result of={catalog}>
      {({ tables }) => {
        const table = tables.find(({ name }) => name === wanted) ?? tables[0]
        return (
          <>
            <Section title="Table">
              <div class="filters">
                <TargetChoice targets={targets} target={target} />
                <TableChoice tables={tables} name={table?.name ?? ''} target={target} />
              </div>
            </Section>
            {table === undefined ? (
              <Empty>The Release of this target has no tables.</Empty>
            ) : (
              <OneOrAll target={target} table={table} />
            )}
          </>
        )
      }}
    </Result>
  )
}

function TableChoice({
  tables,
  name,
  target,
}: {
  tables: readonly TableField[]
  name: string
  target: string
}) {
  return (
    <label class="field">
      <span class="label">Table</span>
      <select
        value={name}
        onChange={(event) => go('data', { target, table: event.currentTarget.value })}
      >
        {tables.map((each) => (
          <option key={each.name} value={each.name}>
            {each.name}
          </option>
        ))}
      </select>
    </label>
  )
}

/** The document of the address, a new one, or the list. */
function OneOrAll({ target, table }: { target: string; table: TableField }) {
  const { parameters } = route.value
  const documentId = parameters.get('document')
  if (documentId === 'new') return <NewDocument key={table.name} target={target} table={table} />
  if (documentId !== null) {
    return <DocumentEditor key={documentId} target={target} table={table} documentId={documentId} />
  }
  return <Documents target={target} table={table} />
}

function Documents({ target, table }: { target: string; table: TableField }) {
  const id = environmentId.value
  const { parameters } = route.value
  const choice: IndexChoice = {
    index: parameters.get('index') ?? '',
    order: parameters.get('order') === 'asc' ? 'asc' : 'desc',
    bounds: parameters.getAll('bound'),
  }
  const after = parameters.get('after')
  const key = JSON.stringify([id, target, table.name, choice, after])
  const page = useLoaded(key, async () =>
    call('queryDocuments', id, {
      body: {
        target,
        table: table.name,
        ...(choice.index !== '' && { index: choice.index }),
        range: boundsOf(choice, table),
        order: choice.order,
        limit: PAGE_DOCUMENTS,
        ...(after !== null && { after }),
      },
    }),
  )
  const at = { target, table: table.name }
  return (
    <>
      <Section
        title={`Documents of ${table.name}`}
        actions={
          <>
            {may('data:write') && (
              <a href={hrefOf('data', { ...at, document: 'new' })}>New document</a>
            )}
            <Reload of={[page]} />
          </>
        }
      >
        <IndexForm
          key={key}
          table={table}
          choice={choice}
          onChoose={(chosen) => {
            location.hash = `#/data?${parametersOf(chosen, at)}`
          }}
        />
        <Result of={page}>
          {({ items, next }) => (
            <>
              <Rows items={items} table={table} target={target} />
              <p class="buttons">
                {after !== null && <a href={`#/data?${parametersOf(choice, at)}`}>First page</a>}
                {next !== null && (
                  <a href={`#/data?${parametersOf(choice, { ...at, after: next })}`}>Next page</a>
                )}
              </p>
            </>
          )}
        </Result>
      </Section>
      <Transfers
        key={`${id} ${target} ${table.name}`}
        target={target}
        table={table}
        choice={choice}
        onImported={page.reload}
      />
    </>
  )
}

function Rows({
  items,
  table,
  target,
}: {
  items: readonly DocumentField[]
  table: TableField
  target: string
}) {
  if (items.length === 0) return <Empty>No document is in this range.</Empty>
  const fields = Object.keys(table.fields)
  const rows = items.map((item) => ({
    ...item,
    plain: plainOfFields(item.value, table.fields) as Readonly<Record<string, unknown>>,
  }))
  return (
    <Table
      label={`Documents of ${table.name}`}
      rows={rows}
      keyOf={({ id }) => id}
      columns={[
        {
          head: 'Document',
          cell: ({ id }) => (
            <a href={hrefOf('data', { target, table: table.name, document: id })}>
              <code>{id}</code>
            </a>
          ),
        },
        ...fields.map((name) => ({
          head: name,
          cell: ({ plain }: (typeof rows)[number]) => <FieldCell value={plain[name]} />,
        })),
        { head: '_createdAt', cell: ({ createdAtMicros }) => timeText(createdAtMicros) },
      ]}
    />
  )
}

function FieldCell({ value }: { value: unknown }) {
  if (value === undefined) return <span class="quiet">absent</span>
  return <Shown text={typeof value === 'string' ? value : JSON.stringify(value)} />
}
