/** One Application Client: its keys, a new one, and the rotation of an old one. */
import { useState } from 'preact/hooks'
import type { CredentialId } from '../../../value/ids.ts'
import type {
  ClientField,
  CredentialCreated,
  CredentialField,
} from '../../../wire/application-clients.ts'
import { timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Badge, Empty, FailureNote, Reload, Result, Section } from '../../parts/page.tsx'
import { Identifier, Shown } from '../../parts/shown.tsx'
import { Table } from '../../parts/table.tsx'
import { call, Failure, failureOf, newId, nowMicros } from '../../requests.ts'
import { ask, environmentId, hrefOf, may, notice, svcCommand } from '../../state.ts'
import { type Issued, IssuedKey } from './issued-key.tsx'
import { DEFAULT_SCOPES, NameInput, ScopeChoice, scopesOf } from './scopes.tsx'

/** Calls a second that a key without a rate of its own may make. */
const RATE_DEFAULT = 2_000
const RATE_MAX = 1_000_000
/** Failures after which the credential may exist although its key was not received. */
const UNCERTAIN = ['CLIENT_RESULT_UNCERTAIN', 'CLIENT_CHANGE_INTERRUPTED', 'CONSOLE_ENDED']

export function ClientKeys({ client }: { client: ClientField }) {
  const { clientId, name, kind, maximumScopes, createdAtMicros } = client
  const id = environmentId.value
  const keys = useLoaded(`${id} ${clientId}`, () =>
    call('listCredentials', id, { params: { clientId } }),
  )
  const [issued, setIssued] = useState<Issued | null>(null)
  const receive: Receive = ({ credential, key, secretShownOnce }) => {
    if (key !== null) setIssued({ credential, key, secretShownOnce })
    keys.reload()
  }
  return (
    <>
      <Section title={name}>
        <p>
          <a href={hrefOf('clients')}>All clients</a>
        </p>
        <p class="facts">
          <Identifier id={clientId} />
          <span>{kind}</span>
          <span>scopes at most: {maximumScopes.join(', ')}</span>
          <span>created {timeText(createdAtMicros)}</span>
        </p>
      </Section>
      {issued !== null && <IssuedKey issued={issued} kind={kind} close={() => setIssued(null)} />}
      <Section title="Keys" actions={<Reload of={[keys]} />}>
        <p class="quiet">
          A key works until it is revoked; it does not expire. Its last use is recorded once a
          minute.
        </p>
        <Result of={keys}>
          {({ credentials }) => (
            <Keys
              client={client}
              credentials={credentials}
              reload={keys.reload}
              receive={receive}
            />
          )}
        </Result>
      </Section>
      {may('credentials:manage') && (
        <NewKey client={client} reload={keys.reload} receive={receive} />
      )}
    </>
  )
}

type Receive = (created: CredentialCreated) => void

interface KeysOf {
  readonly client: ClientField
  readonly credentials: readonly CredentialField[]
  readonly reload: () => void
  readonly receive: Receive
}

function Keys({ client, credentials, reload, receive }: KeysOf) {
  if (credentials.length === 0) return <Empty>This client has no key yet. Create one below.</Empty>
  const newest = credentials.toSorted((a, b) => (a.credentialId < b.credentialId ? 1 : -1))
  const deleted = newest.filter(({ state }) => state === 'deleted')
  const table = (label: string, rows: readonly CredentialField[]) => (
    <Table
      label={label}
      rows={rows}
      keyOf={({ credentialId }) => credentialId}
      columns={[
        {
          head: 'Name',
          cell: ({ credentialId, name }) => (
            <>
              <Shown text={name} />
              <div class="nowrap">
                <Identifier id={credentialId} />
              </div>
            </>
          ),
        },
        { head: 'State', cell: (key) => <State credential={key} all={credentials} /> },
        { head: 'Scopes', cell: ({ scopes }) => <span class="nowrap">{scopes.join(', ')}</span> },
        {
          head: 'Calls a second',
          isNumber: true,
          cell: ({ rateLimit }) => (rateLimit ?? RATE_DEFAULT).toLocaleString('en-US'),
        },
        { head: 'Created', cell: ({ createdAtMicros }) => timeText(createdAtMicros) },
        { head: 'Last used', cell: ({ lastUsedAtMicros }) => timeText(lastUsedAtMicros) },
        {
          head: 'Change',
          cell: (credential) => (
            <Acts client={client} credential={credential} reload={reload} receive={receive} />
          ),
        },
      ]}
    />
  )
  return (
    <>
      {newest.length > deleted.length &&
        table(
          'Keys',
          newest.filter(({ state }) => state !== 'deleted'),
        )}
      {deleted.length > 0 && (
        <details>
          <summary>Deleted keys ({deleted.length}), whose IDs stay reserved</summary>
          {table('Deleted keys', deleted)}
        </details>
      )}
    </>
  )
}

/** The state, and for a rotated key what its replacement says about when to revoke it. */
function State({
  credential: { credentialId, state, revokedAtMicros, replaces },
  all,
}: {
  credential: CredentialField
  all: readonly CredentialField[]
}) {
  const replacement = all.find((each) => each.replaces === credentialId && each.state === 'active')
  const replaced = all.find((each) => each.credentialId === replaces)
  return (
    <>
      <Badge text={state} />
      {revokedAtMicros !== null && <div class="cell hint">since {timeText(revokedAtMicros)}</div>}
      {replaced !== undefined && (
        <div class="cell hint">
          replaces <Shown text={replaced.name} max={40} />
        </div>
      )}
      {replacement !== undefined && state === 'active' && (
        <div class="cell hint">
          {replacement.lastUsedAtMicros === null
            ? 'its replacement was not used yet'
            : 'its replacement is used: revoke this one once no program has it'}
        </div>
      )}
    </>
  )
}

function Acts({
  client: { clientId, kind },
  credential: { credentialId, name, state },
  reload,
  receive,
}: Omit<KeysOf, 'credentials'> & { readonly credential: CredentialField }) {
  const params = { clientId, credentialId }
  const at = `--client ${clientId} --credential ${credentialId}`
  const [failure, setFailure] = useState<Failure | null>(null)
  const rotate = (): void => {
    let created: CredentialCreated | null = null
    ask({
      title: `Rotate the key ${name}?`,
      effects: [
        'A second key is made, with the same name, scopes and rate. It is shown after this.',
        `${credentialId} stays valid beside it until you revoke it. Give programs the new key, ` +
          'wait until the list shows that it is used, then revoke the old one.',
      ],
      command: svcCommand(`credentials rotate ${at}`),
      label: 'Make the second key',
      act: async () => {
        created = await issue(reload, (replacementId) =>
          call('rotateCredential', environmentId.value, {
            params,
            body: { credentialId: replacementId, createdAtMicros: nowMicros() },
          }),
        )
      },
      done: () => receive(created!),
    })
  }
  const revoke = (): void =>
    ask({
      title: `Revoke the key ${name}?`,
      effects: [
        `${credentialId} is rejected permanently, from its next call on. Programs that still ` +
          'have it cannot call anything.',
      ],
      command: svcCommand(`credentials revoke ${at}`),
      label: 'Revoke the key',
      act: () => call('revokeCredential', environmentId.value, { params }),
      done: reload,
    })
  const remove = (): void =>
    ask({
      title: `Delete the revoked key ${name}?`,
      effects: [`${credentialId} leaves the list of keys. Its ID stays reserved.`],
      command: svcCommand(`credentials delete ${at}`),
      label: 'Delete the key',
      act: () => call('deleteCredential', environmentId.value, { params }),
      done: reload,
    })
  const reveal = async (): Promise<void> => {
    setFailure(null)
    try {
      receive(await call('revealKey', environmentId.value, { params }))
    } catch (error) {
      setFailure(failureOf(error))
    }
  }
  const mayManage = may('credentials:manage')
  return (
    <span class="actions">
      {state === 'active' && kind === 'public' && (
        <button type="button" aria-label={`Reveal ${credentialId}`} onClick={() => void reveal()}>
          Reveal
        </button>
      )}
      {state === 'active' && mayManage && (
        <>
          <button type="button" aria-label={`Rotate … ${credentialId}`} onClick={rotate}>
            Rotate …
          </button>
          <button
            type="button"
            class="danger"
            aria-label={`Revoke … ${credentialId}`}
            onClick={revoke}
          >
            Revoke …
          </button>
        </>
      )}
      {state === 'revoked' && mayManage && (
        <button
          type="button"
          class="danger"
          aria-label={`Delete … ${credentialId}`}
          onClick={remove}
        >
          Delete …
        </button>
      )}
      {failure !== null && <FailureNote failure={failure} />}
    </span>
  )
}

/**
 * Sends a request that makes a credential with a new ID. Throws a Failure; one that leaves open
 * whether the credential exists names it, since its key is lost.
 */
async function issue(
  reload: () => void,
  request: (credentialId: CredentialId) => Promise<CredentialCreated>,
): Promise<CredentialCreated> {
  const credentialId = newId('crd') as CredentialId
  try {
    return await request(credentialId)
  } catch (error) {
    const failure = failureOf(error)
    if (!UNCERTAIN.includes(failure.code)) throw failure
    reload()
    const { code, message, requestId, violations } = failure
    const next = `If the list of keys has ${credentialId}, revoke that and create another one.`
    throw new Failure({ code, message, requestId, violations, next })
  }
}

function NewKey({ client, reload, receive }: Omit<KeysOf, 'credentials'>) {
  const { clientId, maximumScopes } = client
  const [failure, setFailure] = useState<Failure | null>(null)
  const [isBusy, setBusy] = useState(false)
  const usual = DEFAULT_SCOPES.filter((each) => maximumScopes.includes(each))
  const create = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    const element = event.currentTarget as HTMLFormElement
    const form = new FormData(element)
    const name = String(form.get('name')).normalize('NFC')
    const rate = String(form.get('rate'))
    setBusy(true)
    setFailure(null)
    try {
      const created = await issue(reload, (credentialId) =>
        call('createCredential', environmentId.value, {
          params: { clientId },
          body: {
            credentialId,
            name,
            scopes: scopesOf(form),
            createdAtMicros: nowMicros(),
            ...(rate !== '' && { rateLimit: Number(rate) }),
          },
        }),
      )
      element.reset()
      notice.value = `Created the key ${name}`
      receive(created)
    } catch (error) {
      setFailure(failureOf(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <Section title="New key">
      <form onSubmit={(event) => void create(event)}>
        <NameInput label="Name, such as the program that has it" />
        <label class="field">
          <span class="label">Calls a second, by default {RATE_DEFAULT}</span>
          <input name="rate" type="number" min="1" max={RATE_MAX} step="1" />
        </label>
        <ScopeChoice
          legend="Scopes of the key"
          scopes={maximumScopes}
          chosen={usual.length === 0 ? maximumScopes : usual}
        />
        {failure !== null && <FailureNote failure={failure} />}
        <button type="submit" class="main" disabled={isBusy}>
          Create the key
        </button>
      </form>
    </Section>
  )
}
