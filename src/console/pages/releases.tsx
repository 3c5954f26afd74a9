/** Releases: what serves, what was published, and the changes of Channels. */
import type { Status } from '../../wire/status.ts'
import { timeText } from '../formats.ts'
import { useLoaded } from '../loading.ts'
import { Badge, Empty, Page, Reload, Result, Section } from '../parts/page.tsx'
import { Identifier, Shown } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { call } from '../requests.ts'
import { ask, environmentId, hrefOf, may, svcCommand } from '../state.ts'
import { NewChannel } from './new-channel.tsx'
import { DryRun } from './release-checks.tsx'
import { ReleaseDiff } from './release-diff.tsx'
import { ServingSection } from './serving.tsx'

type Release = Status['releases'][number]
type Channel = Status['channels'][number]

/** Releases that the table shows; the newest of what the server lists. */
const RELEASES_MAX = 100

export function ReleasesPage() {
  const id = environmentId.value
  const status = useLoaded(id, () => call('readStatus', id))
  return (
    <Page title="Releases" actions={<Reload of={[status]} />}>
      <Result of={status}>
        {(known) => (
          <>
            <Channels status={known} reload={status.reload} />
            <ServingSection status={known} reload={status.reload} />
            <Published status={known} reload={status.reload} />
            <ReleaseDiff status={known} />
            <DryRun status={known} />
          </>
        )}
      </Result>
    </Page>
  )
}

function Channels({ status, reload }: { status: Status; reload: () => void }) {
  return (
    <Section title="Channels">
      {status.channels.length === 0 ? (
        <Empty>There is no Channel yet. A promotion creates one.</Empty>
      ) : (
        <Table
          label="Channels"
          rows={status.channels}
          keyOf={({ channel }) => channel}
          columns={[
            { head: 'Channel', cell: ({ channel }) => <Shown text={channel} /> },
            {
              head: 'Release',
              cell: ({ releaseId }) => <Known releaseId={releaseId} status={status} />,
            },
            { head: 'Revision', isNumber: true, cell: ({ revision }) => revision },
            {
              head: 'Release before',
              cell: (channel) => <Rollback channel={channel} status={status} reload={reload} />,
            },
          ]}
        />
      )}
      {may('channels:promote') && <NewChannel status={status} reload={reload} />}
    </Section>
  )
}

/** A Release with its message, by which people know it. */
function Known({ releaseId, status }: { releaseId: string; status: Status }) {
  const release = status.releases.find((each) => each.releaseId === releaseId)
  const message = release?.provenance?.message
  return (
    <>
      <Identifier id={releaseId} />
      {message != null && (
        <div class="hint">
          <Shown text={message} max={80} />
        </div>
      )}
    </>
  )
}

/** After a rollback the Release before is the newer one, to which the Channel can return. */
function Rollback({
  channel,
  status,
  reload,
}: {
  channel: Channel
  status: Status
  reload: () => void
}) {
  const before = channel.history.find((each) => each !== channel.releaseId)
  if (before === undefined) return <span class="quiet">no other Release</span>
  if (!may('channels:promote')) return <Known releaseId={before} status={status} />
  const places = status.releases.map(({ releaseId }) => releaseId as string)
  const isNewer = places.indexOf(before) < places.indexOf(channel.releaseId)
  const label = isNewer ? 'Roll forward' : 'Roll back'
  const rollBack = (): void =>
    ask({
      title: `Roll the Channel ${channel.channel} ${isNewer ? 'forward' : 'back'}?`,
      effects: [
        `Callers of channel:${channel.channel} reach ${before} in place of ${channel.releaseId}.`,
        'Documents stay as they are. That Release must read them, which the server checks.',
      ],
      command: svcCommand(
        `rollback --channel ${channel.channel} --expected ${channel.releaseId} --to ${before}`,
      ),
      label,
      act: () =>
        call('rollbackChannel', environmentId.value, {
          params: { channel: channel.channel },
          body: { targetReleaseId: before, expectedReleaseId: channel.releaseId },
        }),
      done: reload,
    })
  return (
    <>
      <Known releaseId={before} status={status} />{' '}
      <button
        type="button"
        aria-label={`${label} … ${channel.channel} to ${before}`}
        onClick={rollBack}
      >
        {label} …
      </button>
    </>
  )
}

function Published({ status, reload }: { status: Status; reload: () => void }) {
  const rows = status.releases.slice(0, RELEASES_MAX)
  if (rows.length === 0) {
    return (
      <Section title="Published">
        <Empty>Nothing was published yet. Run svc release in a Workspace.</Empty>
      </Section>
    )
  }
  return (
    <Section title="Published">
      <Table
        label="Releases"
        rows={rows}
        keyOf={({ releaseId }) => releaseId}
        columns={[
          {
            head: 'Release',
            cell: ({ releaseId }) => (
              <a href={hrefOf('functions', { target: `release:${releaseId}` })}>
                <code>{releaseId}</code>
              </a>
            ),
          },
          { head: 'State', cell: ({ state }) => <Badge text={state} /> },
          { head: 'Published', cell: ({ createdAtMicros }) => timeText(createdAtMicros) },
          {
            head: 'Serves',
            cell: ({ releaseId }) => <Uses status={status} releaseId={releaseId} />,
          },
          { head: 'Source', cell: (release) => <Source release={release} /> },
          {
            head: 'Change',
            cell: (release) => <Acts status={status} release={release} reload={reload} />,
          },
        ]}
      />
    </Section>
  )
}

function usesOf({ channels, workspaces }: Status, releaseId: string): string[] {
  return [
    ...channels.filter((each) => each.releaseId === releaseId).map((each) => each.channel),
    ...workspaces
      .filter((each) => each.releaseId === releaseId)
      .map((each) => `HEAD of the Workspace ${each.name}`),
  ]
}

function Uses({ status, releaseId }: { status: Status; releaseId: string }) {
  const uses = usesOf(status, releaseId)
  return uses.length === 0 ? <span class="quiet">–</span> : <Shown text={uses.join(', ')} />
}

function Source({ release: { provenance } }: { release: Release }) {
  if (provenance === null) return <span class="quiet">not declared</span>
  const { message, commit, branch, dirty } = provenance
  const parts = [commit?.slice(0, 10), branch, dirty === true ? 'changed files' : null, message]
  return <Shown text={parts.filter((part) => part != null).join(' · ') || '–'} />
}

function Acts({
  status,
  release: { releaseId, state },
  reload,
}: {
  status: Status
  release: Release
  reload: () => void
}) {
  const isUsed = usesOf(status, releaseId).length > 0
  const retire = (): void =>
    ask({
      title: `Retire the Release ${releaseId}?`,
      effects: [
        'Its code is never served again, and no Channel can be rolled back to it. The server ' +
          'rejects this while a Channel or the serving policy uses it.',
      ],
      command: svcCommand(`releases retire --release ${releaseId}`),
      label: 'Retire the Release',
      act: () => call('retireRelease', environmentId.value, { params: { releaseId } }),
      done: reload,
    })
  const validate = (): void =>
    ask({
      title: `Validate the Release ${releaseId}?`,
      effects: [
        'The server loads its code, and checks its schema and the stored documents. Then it can ' +
          'be promoted. Code that does not fit its manifest rejects it for good.',
      ],
      command: svcCommand(`release --release ${releaseId}`),
      label: 'Validate',
      act: () => call('validateRelease', environmentId.value, { params: { releaseId }, body: {} }),
      done: reload,
    })
  return (
    <span class="actions">
      {may('releases:publish') && state === 'published' && (
        <button type="button" aria-label={`Validate … ${releaseId}`} onClick={validate}>
          Validate …
        </button>
      )}
      {may('channels:promote') && state === 'validated' && (
        <Promote status={status} releaseId={releaseId} reload={reload} />
      )}
      {may('releases:publish') && state !== 'retired' && !isUsed && (
        <button type="button" class="danger" aria-label={`Retire … ${releaseId}`} onClick={retire}>
          Retire …
        </button>
      )}
    </span>
  )
}

function Promote({
  status,
  releaseId,
  reload,
}: {
  status: Status
  releaseId: string
  reload: () => void
}) {
  const others = status.channels.filter((each) => each.releaseId !== releaseId)
  return (
    <>
      {others.map(({ channel, releaseId: current }) => {
        const promote = (): void =>
          ask({
            title: `Promote ${releaseId} to ${channel}?`,
            effects: [`Callers of channel:${channel} reach it in place of ${current}.`],
            command: svcCommand(
              `promote --channel ${channel} --release ${releaseId} --expected ${current}`,
            ),
            label: 'Promote',
            act: () =>
              call('promoteRelease', environmentId.value, {
                params: { channel },
                body: { releaseId, expectedReleaseId: current } as never,
              }),
            done: reload,
          })
        return (
          <button
            key={channel}
            type="button"
            aria-label={`To ${channel} … ${releaseId}`}
            onClick={promote}
          >
            To {channel} …
          </button>
        )
      })}
    </>
  )
}
