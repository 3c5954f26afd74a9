/** Configuration: variables and secrets of the Environment, one of them, and who changed what. */
import type { ConfigurationList, EntryField } from '../../../wire/configuration.ts'
import { timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Operator, useOperatorNames } from '../../parts/operator.tsx'
import { Badge, Empty, Page, Reload, Result, Section } from '../../parts/page.tsx'
import { Block, Shown } from '../../parts/shown.tsx'
import { Table } from '../../parts/table.tsx'
import { call, Failure, nowMicros } from '../../requests.ts'
import { ask, environmentId, go, hrefOf, may, route, svcCommand } from '../../state.ts'
import { isEditable, NewValue, ReplaceValue } from './values.tsx'

const CHANGES_MAX = 50

export function ConfigurationPage() {
  const id = environmentId.value
  const configuration = useLoaded(id, async () => checked(await call('listConfiguration', id)))
  const wanted = route.value.parameters.get('name')
  return (
    <Page title="Configuration" actions={<Reload of={[configuration]} />}>
      <Result of={configuration}>
        {(known) => {
          if (wanted === null) return <All known={known} reload={configuration.reload} />
          const entry = known.entries.find(({ name }) => name === wanted)
          return entry === undefined ? (
            <Empty>
              There is no such variable or secret. <a href={hrefOf('configuration')}>All values</a>
            </Empty>
          ) : (
            <One key={wanted} entry={entry} known={known} reload={configuration.reload} />
          )
        }}
      </Result>
    </Page>
  )
}

/** Throws a Failure for a secret with a value, which no server may send and no page may show. */
function checked(known: ConfigurationList): ConfigurationList {
  if (!known.entries.some((entry) => entry.kind === 'secret' && 'value' in entry)) return known
  throw new Failure({
    code: 'CLIENT_RESPONSE_INVALID',
    message: 'The server sent the value of a secret.',
    next: 'Replace the secret, and report the defect of the server.',
    requestId: null,
    violations: [],
  })
}

function All({ known, reload }: { known: ConfigurationList; reload: () => void }) {
  const { entries, revision } = known
  return (
    <>
      <Section title="Variables and secrets">
        <p class="quiet">
          Functions read them from their next call on. The configuration has revision {revision}.
        </p>
        {entries.length === 0 ? (
          <Empty>There is no variable and no secret yet.</Empty>
        ) : (
          <Table
            label="Variables and secrets"
            rows={entries}
            keyOf={({ name }) => name}
            columns={[
              {
                head: 'Name',
                cell: ({ name }) => (
                  <a class="cell" href={hrefOf('configuration', { name })}>
                    <Shown text={name} />
                  </a>
                ),
              },
              { head: 'Type', cell: ({ kind }) => <Badge text={kind} /> },
              { head: 'Value', cell: (entry) => <ValueCell entry={entry} /> },
              { head: 'Revision', isNumber: true, cell: (entry) => entry.revision },
              { head: 'Updated', cell: ({ updatedAtMicros }) => timeText(updatedAtMicros) },
            ]}
          />
        )}
      </Section>
      {may('configuration:manage') && <NewValue known={known} reload={reload} />}
      <History revision={revision} />
    </>
  )
}

function ValueCell({ entry }: { entry: EntryField }) {
  if (entry.kind === 'secret') return <span class="quiet">sealed, never shown</span>
  if (entry.value === '') return <span class="quiet">empty</span>
  return (
    <span class="cell">
      <Shown text={entry.value} />
    </span>
  )
}

function One({
  entry,
  known,
  reload,
}: {
  entry: EntryField
  known: ConfigurationList
  reload: () => void
}) {
  const { name, kind, revision, createdAtMicros, updatedAtMicros } = entry
  const mayChange = may('configuration:manage')
  const remove = (): void =>
    ask({
      title: `Delete the ${kind} ${name}?`,
      effects: [
        kind === 'secret'
          ? 'Actions that read it fail from their next call on. Nothing shows its value again.'
          : 'Functions that read it get null from their next call on.',
      ],
      command: svcCommand(`config unset ${name} --expected ${known.revision}`),
      label: `Delete the ${kind}`,
      act: () =>
        call('deleteConfiguration', environmentId.value, {
          params: { name },
          body: { expectedRevision: known.revision, changedAtMicros: nowMicros() },
        }),
      done: () => {
        go('configuration')
        reload()
      },
    })
  return (
    <Section title={name}>
      <p>
        <a href={hrefOf('configuration')}>All values</a>
      </p>
      <p class="facts">
        <Badge text={kind} />
        <span>revision {revision}</span>
        <span>created {timeText(createdAtMicros)}</span>
        <span>updated {timeText(updatedAtMicros)}</span>
      </p>
      {kind === 'secret' && (
        <p>
          The value is sealed. Only Actions that name this secret can read it, and nothing shows it.
        </p>
      )}
      {entry.kind === 'variable' && !(mayChange && isEditable(entry)) && (
        <Block text={entry.value} label="Value" />
      )}
      {mayChange && (
        <>
          <ReplaceValue entry={entry} known={known} reload={reload} />
          <div class="buttons">
            <button type="button" class="danger" onClick={remove}>
              Delete …
            </button>
          </div>
        </>
      )}
    </Section>
  )
}

/** Changes without values, the newest first. A change of the configuration loads them again. */
function History({ revision }: { revision: string }) {
  const id = environmentId.value
  const after = route.value.parameters.get('after')
  const changes = useLoaded(`${id} ${revision} ${after}`, () =>
    call('listConfigurationChanges', id, {
      query: { limit: CHANGES_MAX, ...(after !== null && { after }) },
    }),
  )
  const names = useOperatorNames()
  return (
    <Section title="History">
      <Result of={changes}>
        {({ entries, next }) => (
          <>
            {entries.length === 0 ? (
              <Empty>Nothing was changed yet.</Empty>
            ) : (
              <Table
                label="History"
                rows={entries}
                keyOf={(each) => each.revision}
                columns={[
                  { head: 'Revision', isNumber: true, cell: (each) => each.revision },
                  { head: 'Change', cell: ({ action }) => action },
                  {
                    head: 'Name',
                    cell: ({ name }) => (
                      <span class="cell">
                        <Shown text={name} />
                      </span>
                    ),
                  },
                  { head: 'Type', cell: ({ kind }) => <span class="nowrap">{kind}</span> },
                  {
                    head: 'Time',
                    cell: ({ changedAtMicros }) => (
                      <span class="cell">{timeText(changedAtMicros)}</span>
                    ),
                  },
                  {
                    head: 'Operator',
                    cell: ({ operatorId }) => (
                      <Operator id={operatorId} name={names.value?.get(operatorId)} />
                    ),
                  },
                ]}
              />
            )}
            <p class="buttons">
              {after !== null && <a href={hrefOf('configuration')}>First page</a>}
              {next !== null && <a href={hrefOf('configuration', { after: next })}>Next page</a>}
            </p>
          </>
        )}
      </Result>
    </Section>
  )
}
