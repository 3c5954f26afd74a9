/** The objects of a bucket: a prefix filter with pages, and the upload of a file. */
import { CONSOLE_OBJECT_BYTES_MAX } from '../../../value/files/buckets.ts'
import { shellQuoted } from '../../../value/shell/shell-words.ts'
import type { BucketRead, ObjectField } from '../../../wire/files/buckets.ts'
import { bytesText, timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Empty, Reload, Result, Section } from '../../parts/page.tsx'
import { Shown } from '../../parts/shown.tsx'
import { Table } from '../../parts/table.tsx'
import { call, Failure, upload } from '../../requests.ts'
import { ask, environmentId, go, hrefOf, may, notice, route, svcCommand } from '../../state.ts'
import { ActForm } from './bucket-form.tsx'

const OBJECTS_MAX = 100

/** Returns the object of a key; null if there is none. */
export async function findObject(
  environment: string,
  bucketId: string,
  key: string,
): Promise<ObjectField | null> {
  const query = { prefix: key, limit: 1 }
  const { items } = await call('listObjects', environment, { params: { bucketId }, query })
  // The shortest key with a prefix is the first one.
  return items[0]?.key === key ? items[0] : null
}

export function ObjectsSection({ bucket, changed }: { bucket: BucketRead; changed: () => void }) {
  const id = environmentId.value
  const { bucketId } = bucket
  const { parameters } = route.value
  const prefix = parameters.get('prefix') ?? ''
  const after = parameters.get('after')
  const at = { bucket: bucketId, prefix }
  const page = useLoaded(JSON.stringify([id, bucketId, prefix, after]), () =>
    call('listObjects', id, {
      params: { bucketId },
      query: {
        limit: OBJECTS_MAX,
        ...(prefix !== '' && { prefix }),
        ...(after !== null && { after }),
      },
    }),
  )
  const filter = (event: SubmitEvent): void => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    go('files', { bucket: bucketId, prefix: String(form.get('prefix')) })
  }
  const stored = (): void => {
    page.reload()
    changed()
  }
  return (
    <>
      <Section title="Objects" actions={<Reload of={[page]} />}>
        <form key={prefix} onSubmit={filter}>
          <label class="field">
            <span class="label">Beginning of the key</span>
            <input name="prefix" defaultValue={prefix} autocomplete="off" spellcheck={false} />
          </label>
          <button type="submit" class="main">
            Filter
          </button>
          <a href={hrefOf('files', { bucket: bucketId })}>All objects</a>
        </form>
        <Result of={page}>
          {({ items, next }) => (
            <>
              <Objects items={items} bucketId={bucketId} isFiltered={prefix !== ''} />
              <p class="buttons">
                {after !== null && <a href={hrefOf('files', at)}>First page</a>}
                {next !== null && <a href={hrefOf('files', { ...at, after: next })}>Next page</a>}
              </p>
            </>
          )}
        </Result>
      </Section>
      {may('storage:manage') && bucket.lifecycle === 'active' && (
        <Upload bucket={bucket} prefix={prefix} done={stored} />
      )}
    </>
  )
}

function Objects({
  items,
  bucketId,
  isFiltered,
}: {
  items: readonly ObjectField[]
  bucketId: string
  isFiltered: boolean
}) {
  if (items.length === 0) {
    return (
      <Empty>
        {isFiltered
          ? 'No key begins with this.'
          : 'The bucket is empty. Upload a file below, or use svc files put or an S3 client.'}
      </Empty>
    )
  }
  return (
    <Table
      label="Objects"
      rows={items}
      keyOf={({ fileId }) => fileId}
      columns={[
        {
          head: 'Key',
          cell: ({ key }) => (
            <a href={hrefOf('files', { bucket: bucketId, object: key })}>
              <Shown text={key} />
            </a>
          ),
        },
        { head: 'Size', isNumber: true, cell: ({ size }) => bytesText(size) },
        { head: 'Media type', cell: ({ contentType }) => <Shown text={contentType} /> },
        { head: 'Stored', cell: ({ createdAtMicros }) => timeText(createdAtMicros) },
      ]}
    />
  )
}

const BINARY = 'application/octet-stream'

/** The key and the media type that are used where a field is empty. */
function Upload({
  bucket,
  prefix,
  done,
}: {
  bucket: BucketRead
  prefix: string
  done: () => void
}) {
  const { bucketId } = bucket
  const store = async (form: FormData, element: HTMLFormElement): Promise<void> => {
    const file = form.get('file')
    if (!(file instanceof File) || file.name === '') throw rejected('No file is chosen.')
    if (file.size > CONSOLE_OBJECT_BYTES_MAX) {
      throw rejected(`The file has more than ${bytesText(CONSOLE_OBJECT_BYTES_MAX)}.`)
    }
    const key = String(form.get('key')) || `${prefix}${file.name}`
    const contentType = String(form.get('type')).trim() || file.type || BINARY
    if (key === '.' || key === '..') throw rejected('The keys "." and ".." have no address.')
    const id = environmentId.value
    const put = async (): Promise<void> => {
      const params = { bucketId, objectKey: key }
      await upload('putObject', id, { params, contentType }, file)
    }
    const stored = (): void => {
      notice.value = `Stored ${key} (${bytesText(file.size)})`
      element.reset()
      done()
    }
    const existing = await findObject(id, bucketId, key)
    if (existing === null) {
      await put()
      stored()
      return
    }
    ask({
      title: `Replace the object ${key}?`,
      effects: [
        `It has ${bytesText(existing.size)} of ${existing.contentType}, stored ` +
          `${timeText(existing.createdAtMicros)}. Only a backup has it afterwards.`,
      ],
      command: svcCommand(
        `files put ${shellQuoted(file.name)} --bucket ${bucket.configuration.name} ` +
          `--key ${shellQuoted(key)} --type ${shellQuoted(contentType)}`,
      ),
      label: 'Replace the object',
      act: put,
      done: stored,
    })
  }
  return (
    <Section title="Upload">
      <ActForm act={store}>
        <label class="field">
          <span class="label">File, at most {bytesText(CONSOLE_OBJECT_BYTES_MAX)}</span>
          <input type="file" name="file" required />
        </label>
        <label class="field">
          <span class="label">Key</span>
          <input name="key" placeholder="the name of the file" autocomplete="off" />
        </label>
        <label class="field">
          <span class="label">Media type</span>
          <input name="type" placeholder="that of the file" autocomplete="off" />
        </label>
        <button type="submit" class="main">
          Upload
        </button>
      </ActForm>
    </Section>
  )
}

function rejected(message: string): Failure {
  return new Failure({
    code: 'ARGUMENTS_INVALID',
    message,
    next: 'Choose another file or key. An S3 client with a storage key sends larger files.',
    requestId: null,
    violations: [],
  })
}
