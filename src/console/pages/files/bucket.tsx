/** One bucket: what it holds and admits, other bounds, and its archival. */
import type { BucketRead } from '../../../wire/files/buckets.ts'
import { bytesText, timeText } from '../../formats.ts'
import { Badge, Section } from '../../parts/page.tsx'
import { Identifier, Shown } from '../../parts/shown.tsx'
import { call, nowMicros } from '../../requests.ts'
import { ask, environmentId, hrefOf, may, notice, svcCommand } from '../../state.ts'
import { ActForm, BoundFields, boundsOf, boundText } from './bucket-form.tsx'

export function BucketSection({ bucket, reload }: { bucket: BucketRead; reload: () => void }) {
  const { bucketId, lifecycle, revision, configuration, usage } = bucket
  const { name, quotaBytes, maximumObjectBytes } = configuration
  const params = { bucketId }
  const replace = async (form: FormData): Promise<void> => {
    const body = {
      configuration: { name, ...boundsOf(form) },
      expectedRevision: revision,
      changedAtMicros: nowMicros(),
    }
    await call('replaceBucket', environmentId.value, { params, body })
    notice.value = `Changed the bounds of ${name}`
    reload()
  }
  const archive = (): void =>
    ask({
      title: `Archive the bucket ${name}?`,
      effects: [
        `Its files stay and can be read and deleted${filesText(usage)}. It admits no new file, ` +
          'and its storage keys stop working at once. There is no way back, and the name is ' +
          'never used again.',
      ],
      command: svcCommand(`buckets archive ${name} --expected ${revision}`),
      label: 'Archive the bucket',
      act: () => {
        const body = { expectedRevision: revision, changedAtMicros: nowMicros() }
        return call('archiveBucket', environmentId.value, { params, body })
      },
      done: reload,
    })
  const isActive = lifecycle === 'active'
  return (
    <Section
      title={`Bucket ${name}`}
      actions={
        may('storage:manage') &&
        isActive && (
          <button type="button" class="danger" onClick={archive}>
            Archive …
          </button>
        )
      }
    >
      <p>
        <a href={hrefOf('files')}>All buckets</a>
      </p>
      <p class="facts">
        <Identifier id={bucketId} />
        <Badge text={lifecycle} />
        <span>
          {usage === null ? 'counting' : `${filesCount(usage.files)}, ${bytesText(usage.bytes)}`}
        </span>
        <span>quota: {boundText(quotaBytes)}</span>
        <span>largest object: {boundText(maximumObjectBytes)}</span>
        <span>created {timeText(bucket.createdAtMicros)}</span>
        <span>
          revision <Shown text={revision} />
        </span>
      </p>
      {may('storage:manage') && isActive && (
        <details>
          <summary>Change the bounds</summary>
          <p class="quiet">Files stay even if they exceed the new bounds.</p>
          <ActForm act={replace}>
            <BoundFields bounds={configuration} />
            <button type="submit" class="main">
              Replace the bounds
            </button>
          </ActForm>
        </details>
      )}
    </Section>
  )
}

function filesText(usage: BucketRead['usage']): string {
  return usage === null ? '' : ` (${usage.files}, ${bytesText(usage.bytes)})`
}

function filesCount(count: number | string): string {
  return `${count} ${Number(count) === 1 ? 'file' : 'files'}`
}
