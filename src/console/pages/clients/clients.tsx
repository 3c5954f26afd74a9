/** Clients and keys: the Application Clients of an Environment, and a new one. */
import { useState } from 'preact/hooks'
import { APPLICATION_SCOPES, type ApplicationScope } from '../../../value/application-scopes.ts'
import type { ClientId } from '../../../value/ids.ts'
import type { ClientField } from '../../../wire/application-clients.ts'
import { timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Empty, FailureNote, Page, Reload, Result, Section } from '../../parts/page.tsx'
import { Identifier, Shown } from '../../parts/shown.tsx'
import { Table } from '../../parts/table.tsx'
import { call, type Failure, failureOf, newId, nowMicros } from '../../requests.ts'
import { environmentId, go, hrefOf, may, notice, route } from '../../state.ts'
import { ClientKeys } from './client-keys.tsx'
import { DEFAULT_SCOPES, NameInput, ScopeChoice, scopesOf } from './scopes.tsx'

type Kind = ClientField['kind']

/** The holder of the keys of a Client of each kind. */
const HOLDERS: Readonly<Record<Kind, string>> = {
  public: 'a web page or an app, whose users can read the key',
  confidential: 'a server, a pipeline or an agent, which keeps the key secret',
  development: 'a developer or a pipeline that publishes Workspaces and calls no Function',
}
const KINDS = Object.keys(HOLDERS) as readonly Kind[]

export function ClientsPage() {
  const id = environmentId.value
  const clients = useLoaded(id, () => call('listApplicationClients', id))
  const wanted = route.value.parameters.get('client')
  return (
    <Page title="Clients and keys">
      <Result of={clients}>
        {({ clients: all }) => {
          if (wanted === null) return <Clients clients={all} reload={clients.reload} />
          const client = all.find(({ clientId }) => clientId === wanted)
          return client === undefined ? (
            <Empty>
              There is no such Application Client here. <a href={hrefOf('clients')}>All clients</a>
            </Empty>
          ) : (
            <ClientKeys key={client.clientId} client={client} />
          )
        }}
      </Result>
    </Page>
  )
}

function Clients({ clients, reload }: { clients: readonly ClientField[]; reload: () => void }) {
  return (
    <>
      <Section title="Application Clients" actions={<Reload of={[{ reload }]} />}>
        <p class="quiet">
          An Application Client is a program that calls Functions. Its keys say who it is and what
          it may do.
        </p>
        {clients.length === 0 ? (
          <Empty>There is no Application Client yet. Create one below, then a key of it.</Empty>
        ) : (
          <Table
            label="Application Clients"
            rows={clients}
            keyOf={({ clientId }) => clientId}
            columns={[
              {
                head: 'Name',
                cell: ({ clientId, name }) => (
                  <a class="cell" href={hrefOf('clients', { client: clientId })}>
                    <Shown text={name} />
                  </a>
                ),
              },
              { head: 'Kind', cell: ({ kind }) => <span class="nowrap">{kind}</span> },
              {
                head: 'Scopes of its keys, at most',
                cell: ({ maximumScopes }) => <span class="nowrap">{maximumScopes.join(', ')}</span>,
              },
              { head: 'Created', cell: ({ createdAtMicros }) => timeText(createdAtMicros) },
              {
                head: 'ID',
                cell: ({ clientId }) => (
                  <span class="nowrap">
                    <Identifier id={clientId} />
                  </span>
                ),
              },
            ]}
          />
        )}
      </Section>
      {may('credentials:manage') && <NewClient reload={reload} />}
    </>
  )
}

function NewClient({ reload }: { reload: () => void }) {
  const [kind, setKind] = useState<Kind>('confidential')
  const [failure, setFailure] = useState<Failure | null>(null)
  const [isBusy, setBusy] = useState(false)
  const scopes: readonly ApplicationScope[] =
    kind === 'development' ? ['workspace'] : APPLICATION_SCOPES
  const create = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const clientId = newId('app') as ClientId
    const name = String(form.get('name')).normalize('NFC')
    setBusy(true)
    setFailure(null)
    try {
      await call('createApplicationClient', environmentId.value, {
        body: { clientId, name, kind, maximumScopes: scopesOf(form), createdAtMicros: nowMicros() },
      })
      notice.value = `Created the client ${name}`
      reload()
      go('clients', { client: clientId })
    } catch (error) {
      setFailure(failureOf(error))
      setBusy(false)
    }
  }
  return (
    <Section title="New Application Client">
      <form onSubmit={(event) => void create(event)}>
        <NameInput label="Name of the client" />
        <label class="field">
          <span class="label">Kind</span>
          <select
            name="kind"
            aria-describedby="kind"
            value={kind}
            onChange={(event) => setKind(event.currentTarget.value as Kind)}
          >
            {KINDS.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
        <span id="kind" class="field wide hint">
          Keys of a {kind} client belong to {HOLDERS[kind]}.
        </span>
        <ScopeChoice
          key={kind}
          legend="Its keys may have these scopes"
          scopes={scopes}
          chosen={kind === 'development' ? scopes : DEFAULT_SCOPES}
        />
        {failure !== null && <FailureNote failure={failure} />}
        <button type="submit" class="main" disabled={isBusy}>
          Create the client
        </button>
      </form>
    </Section>
  )
}
