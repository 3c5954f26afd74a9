/** Files: buckets with their bounds and contents, and the objects and keys of one bucket. */
import type { BucketPage } from '../../../wire/files/buckets.ts'
import { bytesText, timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Badge, Empty, Page, Reload, Result, Section } from '../../parts/page.tsx'
import { Shown } from '../../parts/shown.tsx'
import { Table } from '../../parts/table.tsx'
import { call } from '../../requests.ts'
import { environmentId, hrefOf, may, route } from '../../state.ts'
import { BucketSection } from './bucket.tsx'
import { boundText, NewBucket } from './bucket-form.tsx'
import { ObjectSection } from './object.tsx'
import { ObjectsSection } from './objects.tsx'
import { StorageKeysSection } from './storage-keys.tsx'

const BUCKETS_MAX = 200

export type Bucket = BucketPage['items'][number]

export function FilesPage() {
  const { parameters } = route.value
  const bucketId = parameters.get('bucket')
  return (
    <Page title="Files">
      {bucketId === null ? (
        <Buckets after={parameters.get('after')} />
      ) : (
        <One key={bucketId} bucketId={bucketId} objectKey={parameters.get('object')} />
      )}
    </Page>
  )
}

function Buckets({ after }: { after: string | null }) {
  const id = environmentId.value
  const buckets = useLoaded(`${id} ${after}`, () => {
    const query = { limit: BUCKETS_MAX, ...(after !== null && { after }) } as never
    return call('listBuckets', id, { query })
  })
  return (
    <>
      <Section title="Buckets" actions={<Reload of={[buckets]} />}>
        <p class="quiet">
          Functions store files with ctx.storage, in the bucket “default” unless they name another.
          Those with a key are objects here. The table “files” has all of them.
        </p>
        <Result of={buckets}>
          {({ items, next }) => (
            <>
              <BucketTable items={items} />
              <p class="buttons">
                {after !== null && <a href={hrefOf('files')}>First page</a>}
                {next !== null && <a href={hrefOf('files', { after: next })}>Next page</a>}
              </p>
            </>
          )}
        </Result>
      </Section>
      {may('storage:manage') && <NewBucket done={buckets.reload} />}
    </>
  )
}

function BucketTable({ items }: { items: readonly Bucket[] }) {
  if (items.length === 0) return <Empty>There is no bucket.</Empty>
  return (
    <Table
      label="Buckets"
      rows={items}
      keyOf={({ bucketId }) => bucketId}
      columns={[
        {
          head: 'Bucket',
          cell: ({ bucketId, configuration }) => (
            <a href={hrefOf('files', { bucket: bucketId })}>
              <Shown text={configuration.name} />
            </a>
          ),
        },
        { head: 'State', cell: ({ lifecycle }) => <Badge text={lifecycle} /> },
        { head: 'Files', isNumber: true, cell: ({ usage }) => usage?.files ?? 'counting' },
        {
          head: 'Used',
          isNumber: true,
          cell: ({ usage }) => (usage === null ? 'counting' : bytesText(usage.bytes)),
        },
        {
          head: 'Quota',
          isNumber: true,
          cell: ({ configuration }) => boundText(configuration.quotaBytes),
        },
        {
          head: 'Largest object',
          isNumber: true,
          cell: ({ configuration }) => boundText(configuration.maximumObjectBytes),
        },
        { head: 'Created', cell: ({ createdAtMicros }) => timeText(createdAtMicros) },
      ]}
    />
  )
}

function One({ bucketId, objectKey }: { bucketId: string; objectKey: string | null }) {
  const id = environmentId.value
  const bucket = useLoaded(`${id} ${bucketId}`, () =>
    call('readBucket', id, { params: { bucketId } }),
  )
  return (
    <Result of={bucket}>
      {(known) =>
        objectKey === null ? (
          <>
            <BucketSection key={known.revision} bucket={known} reload={bucket.reload} />
            <ObjectsSection bucket={known} changed={bucket.reload} />
            <StorageKeysSection bucket={known} />
          </>
        ) : (
          <ObjectSection bucket={known} objectKey={objectKey} />
        )
      }
    </Result>
  )
}
