/** One object: its metadata, its download and its deletion. */
import { useState } from 'preact/hooks'
import { shellQuoted } from '../../../value/shell/shell-words.ts'
import type { BucketRead, ObjectField } from '../../../wire/files/buckets.ts'
import { bytesText, timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Empty, FailureNote, Reload, Result, Section } from '../../parts/page.tsx'
import { Block, Identifier, Shown } from '../../parts/shown.tsx'
import { call, download, type Failure, failureOf } from '../../requests.ts'
import { ask, environmentId, go, hrefOf, may, svcCommand } from '../../state.ts'
import { findObject } from './objects.tsx'

/** A URL has no segment that is a dot or two, however they are escaped. */
const WITHOUT_ADDRESS = ['.', '..']

export function ObjectSection({ bucket, objectKey }: { bucket: BucketRead; objectKey: string }) {
  const id = environmentId.value
  const { bucketId, configuration } = bucket
  const object = useLoaded(JSON.stringify([id, bucketId, objectKey]), async () => ({
    found: await findObject(id, bucketId, objectKey),
  }))
  return (
    <Section title="Object" actions={<Reload of={[object]} />}>
      <p>
        <a href={hrefOf('files', { bucket: bucketId })}>All objects of {configuration.name}</a>
      </p>
      <Result of={object}>
        {({ found }) =>
          found === null ? (
            <Empty>The bucket has no object with this key.</Empty>
          ) : (
            <Found key={found.fileId} bucket={bucket} object={found} />
          )
        }
      </Result>
    </Section>
  )
}

function Found({ bucket, object }: { bucket: BucketRead; object: ObjectField }) {
  const [failure, setFailure] = useState<Failure | null>(null)
  const { bucketId, configuration } = bucket
  const { key, fileId, size, sha256, contentType } = object
  const params = { bucketId, objectKey: key }
  const save = async (): Promise<void> => {
    setFailure(null)
    try {
      const name = key.slice(key.lastIndexOf('/') + 1)
      await download('readObject', environmentId.value, { params }, name)
    } catch (error) {
      setFailure(failureOf(error))
    }
  }
  const remove = (): void =>
    ask({
      title: `Delete the object ${key}?`,
      effects: [
        `${bytesText(size)} of the bucket ${configuration.name} are deleted, with the file ` +
          `${fileId}, to which documents may refer. Only a backup has it afterwards.`,
      ],
      command: svcCommand(`files delete ${shellQuoted(key)} --bucket ${configuration.name}`),
      label: 'Delete the object',
      act: () => call('deleteObject', environmentId.value, { params }),
      done: () => go('files', { bucket: bucketId }),
    })
  return (
    <>
      <Block text={key} label="Key" />
      <dl>
        <dt>Size</dt>
        <dd>
          {bytesText(size)}
          {Number(size) >= 1024 && ` (${size} bytes)`}
        </dd>
        <dt>Media type</dt>
        <dd>
          <Shown text={contentType} />
        </dd>
        <dt>Stored</dt>
        <dd>{timeText(object.createdAtMicros)}</dd>
        <dt>File</dt>
        <dd>
          <Identifier id={fileId} />
        </dd>
        <dt>SHA-256</dt>
        <dd>
          <Identifier id={sha256} />
        </dd>
      </dl>
      {failure !== null && <FailureNote failure={failure} />}
      {WITHOUT_ADDRESS.includes(key) ? (
        <p class="quiet">This key has no address. A Function deletes it with ctx.storage.</p>
      ) : (
        <div class="buttons">
          <button type="button" class="main" onClick={() => void save()}>
            Download
          </button>
          {may('storage:manage') && (
            <button type="button" class="danger" onClick={remove}>
              Delete …
            </button>
          )}
        </div>
      )}
    </>
  )
}
