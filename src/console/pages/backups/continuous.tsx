/** Continuous backups: their health, the newest state that can be restored, and rehearsals. */
import { useState } from 'preact/hooks'
import type { Health } from '../../../wire/health.ts'
import type { MetricsReport } from '../../../wire/metrics.ts'
import { durationText, timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Checks } from '../../parts/checks.tsx'
import { Badge, Empty, Result, Section } from '../../parts/page.tsx'
import { call } from '../../requests.ts'
import { environmentId, may } from '../../state.ts'

const HEALTH_MS = 5_000

type Component = Health['components'][number]

export function ContinuousSection() {
  const id = environmentId.value
  const read = (background: boolean) =>
    Promise.all([
      call('readHealth', id, {}, { background }),
      may('usage:read') ? call('readMetrics', id, {}, { background }) : null,
    ])
  const loaded = useLoaded(id, read, { everyMs: HEALTH_MS })
  return (
    <Section title="Continuous backups">
      <Result of={loaded}>
        {([{ components }, metrics]) => {
          const found = components.find(({ name }) => name === 'backups')
          return found === undefined ? (
            <Empty>
              This server ships no commits to a target: what was written since the newest whole
              backup is lost with its disk. Set SERVICE_BACKUP_RECIPIENTS, and
              SERVICE_BACKUP_DIRECTORY or SERVICE_BACKUP_S3_*: svc docs backup.
            </Empty>
          ) : (
            <Facts component={found} metrics={metrics} />
          )
        }}
      </Result>
      {may('environments:manage') && <DoctorChecks />}
    </Section>
  )
}

function Facts({
  component: { status, lastRehearsal },
  metrics,
}: {
  component: Component
  metrics: MetricsReport | null
}) {
  return (
    <dl>
      <dt>Health</dt>
      <dd>
        <Badge text={status} />
      </dd>
      {metrics !== null && <Restorable metrics={metrics} />}
      <dt>Last rehearsal</dt>
      <dd>
        {lastRehearsal === undefined ? (
          'none: the server rehearses no restore, or has not yet'
        ) : (
          <>
            <Badge text={lastRehearsal.outcome} /> {timeText(lastRehearsal.atMicros)}
          </>
        )}
      </dd>
    </dl>
  )
}

function Restorable({ metrics: { gauges, collectedAtMicros } }: { metrics: MetricsReport }) {
  const { backupSequence, backupFilesSequence, backupBehindMicros } = gauges
  const behind = Number(backupBehindMicros ?? 0)
  if (backupSequence === undefined) return null
  return (
    <>
      <dt>Restorable up to</dt>
      <dd>
        {behind === 0
          ? `${timeText(collectedAtMicros)}: every commit is in a backup`
          : `${timeText(String(BigInt(collectedAtMicros) - BigInt(behind)))}: the oldest commit ` +
            `that no backup has is ${durationText(behind)} old`}
      </dd>
      <dt>Last commit in a backup</dt>
      <dd>
        {Number(backupSequence).toLocaleString('en-US')}
        {backupFilesSequence !== undefined && (
          <>; with the bytes of all files {Number(backupFilesSequence).toLocaleString('en-US')}</>
        )}
      </dd>
    </>
  )
}

/** The doctor knows the recipients and the target, which no other route tells. */
function DoctorChecks() {
  const [isWanted, setWanted] = useState(false)
  if (!isWanted) {
    return (
      <p class="buttons">
        <button type="button" onClick={() => setWanted(true)}>
          Check recipients, target and rehearsal
        </button>
      </p>
    )
  }
  return <Checked />
}

function Checked() {
  const id = environmentId.value
  const report = useLoaded(id, () => call('runDoctor', id))
  return (
    <Result of={report}>
      {({ checks }) => <Checks checks={checks.filter(({ name }) => name.startsWith('backup-'))} />}
    </Result>
  )
}
