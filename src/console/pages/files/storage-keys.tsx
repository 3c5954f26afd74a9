/** Storage keys of a bucket, with which S3 clients use it. A secret is shown once. */
import { useState } from 'preact/hooks'
import type { BucketRead, StorageKeyField, StorageKeyIssued } from '../../../wire/files/buckets.ts'
import { timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Badge, Empty, Reload, Result, Section } from '../../parts/page.tsx'
import { OneTimeSecret } from '../../parts/secret.tsx'
import { Identifier, Shown } from '../../parts/shown.tsx'
import { Table } from '../../parts/table.tsx'
import { call, nowMicros } from '../../requests.ts'
import { ask, environmentId, hrefOf, may, route, svcCommand } from '../../state.ts'
import { ActForm } from './bucket-form.tsx'

const KEYS_MAX = 100

export function StorageKeysSection({ bucket }: { bucket: BucketRead }) {
  const id = environmentId.value
  const { bucketId } = bucket
  const after = route.value.parameters.get('keysAfter')
  const [issued, setIssued] = useState<StorageKeyIssued | null>(null)
  const keys = useLoaded(`${id} ${bucketId} ${after}`, () => {
    const query = { limit: KEYS_MAX, ...(after !== null && { after }) } as never
    return call('listStorageKeys', id, { params: { bucketId }, query })
  })
  const shown = (key: StorageKeyIssued): void => {
    setIssued(key)
    keys.reload()
  }
  const isActive = bucket.lifecycle === 'active' && may('storage:manage')
  return (
    <Section title="Storage keys" actions={<Reload of={[keys]} />}>
      <p class="quiet">S3 clients use the bucket with such a key.</p>
      {issued !== null && <Issued issued={issued} close={() => setIssued(null)} />}
      <Result of={keys}>
        {({ items, next }) => (
          <>
            <Keys items={items} bucket={bucket} reload={keys.reload} onIssued={shown} />
            <p class="buttons">
              {after !== null && <a href={hrefOf('files', { bucket: bucketId })}>First page</a>}
              {next !== null && (
                <a href={hrefOf('files', { bucket: bucketId, keysAfter: next })}>Next page</a>
              )}
            </p>
          </>
        )}
      </Result>
      {isActive && <NewKey bucketId={bucketId} onIssued={shown} />}
    </Section>
  )
}

/** Shows a secret until the person closes it or leaves the page, which forgets it. */
function Issued({ issued, close }: { issued: StorageKeyIssued; close: () => void }) {
  const { accessKeyId, secretAccessKey } = issued
  return (
    <section aria-label="New storage key">
      <p>
        <strong>Copy the secret. It is shown once.</strong> The key is{' '}
        <Identifier id={accessKeyId} />.
      </p>
      {secretAccessKey === null ? (
        <p>The key was issued earlier. Its secret cannot be shown again: rotate it.</p>
      ) : (
        <OneTimeSecret text={secretAccessKey} label="Secret access key" />
      )}
      <p class="buttons">
        <button type="button" onClick={close}>
          Forget the secret
        </button>
      </p>
    </section>
  )
}

interface KeyActs {
  readonly bucket: BucketRead
  readonly reload: () => void
  readonly onIssued: (issued: StorageKeyIssued) => void
}

function Keys({ items, ...acts }: KeyActs & { items: readonly StorageKeyField[] }) {
  if (items.length === 0) return <Empty>The bucket has no storage key.</Empty>
  return (
    <Table
      label="Storage keys"
      rows={items}
      keyOf={({ storageKeyId }) => storageKeyId}
      columns={[
        { head: 'Key', cell: ({ storageKeyId }) => <Identifier id={storageKeyId} /> },
        { head: 'Name', cell: ({ name }) => <Shown text={name} /> },
        { head: 'Access', cell: ({ access }) => access },
        { head: 'State', cell: ({ state }) => <Badge text={state} /> },
        { head: 'Issued', cell: ({ createdAtMicros }) => timeText(createdAtMicros) },
        {
          head: 'Change',
          cell: (key) =>
            may('storage:manage') && key.state === 'active' && <Acts storageKey={key} {...acts} />,
        },
      ]}
    />
  )
}

function Acts({ storageKey, bucket, reload, onIssued }: KeyActs & { storageKey: StorageKeyField }) {
  const { storageKeyId, name, access } = storageKey
  const { bucketId, configuration } = bucket
  const params = { bucketId, storageKeyId }
  const body = () => ({ changedAtMicros: nowMicros() })
  const rotate = (): void => {
    let issued: StorageKeyIssued | null = null
    ask({
      title: `Issue a second key like ${name}?`,
      effects: [
        `The new key has the access ${access}. ${storageKeyId} stays active until you revoke it.`,
      ],
      command: svcCommand(`buckets keys rotate ${configuration.name} --key ${storageKeyId}`),
      label: 'Issue the second key',
      act: async () => {
        issued = await call('rotateStorageKey', environmentId.value, { params, body: body() })
      },
      done: () => issued !== null && onIssued(issued),
    })
  }
  const revoke = (): void =>
    ask({
      title: `Revoke the storage key ${name}?`,
      effects: [
        `Requests with ${storageKeyId} are rejected from the next one on. It cannot be undone.`,
      ],
      command: svcCommand(`buckets keys revoke ${configuration.name} --key ${storageKeyId}`),
      label: 'Revoke the key',
      act: () => call('revokeStorageKey', environmentId.value, { params, body: body() }),
      done: reload,
    })
  return (
    <span class="actions">
      {bucket.lifecycle === 'active' && (
        <button type="button" aria-label={`Rotate … ${storageKeyId}`} onClick={rotate}>
          Rotate …
        </button>
      )}
      <button type="button" class="danger" aria-label={`Revoke … ${storageKeyId}`} onClick={revoke}>
        Revoke …
      </button>
    </span>
  )
}

function NewKey({
  bucketId,
  onIssued,
}: {
  bucketId: string
  onIssued: (issued: StorageKeyIssued) => void
}) {
  const issue = async (form: FormData, element: HTMLFormElement): Promise<void> => {
    const access = form.get('access') === 'write' ? 'write' : 'read'
    const body = { name: String(form.get('name')).trim(), access, changedAtMicros: nowMicros() }
    onIssued(
      await call('issueStorageKey', environmentId.value, { params: { bucketId }, body } as never),
    )
    element.reset()
  }
  return (
    <ActForm act={issue}>
      <label class="field">
        <span class="label">Name of a new key</span>
        <input name="name" required autocomplete="off" spellcheck={false} />
      </label>
      <label class="field">
        <span class="label">Access; write includes reading</span>
        <select name="access">
          <option value="read">read</option>
          <option value="write">write</option>
        </select>
      </label>
      <button type="submit" class="main">
        Issue the key
      </button>
    </ActForm>
  )
}
