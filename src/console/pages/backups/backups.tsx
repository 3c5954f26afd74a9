/** Backups: what can be restored up to when, the whole backups, and a new one. */
import { useState } from 'preact/hooks'
import type { BackupField } from '../../../wire/backups/backups.ts'
import { bytesText, durationText, timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Badge, Empty, Page, Reload, Result, Section } from '../../parts/page.tsx'
import { Block, Identifier, Shown } from '../../parts/shown.tsx'
import { Table } from '../../parts/table.tsx'
import { call, nowMicros } from '../../requests.ts'
import { ask, environmentId, may, svcCommand } from '../../state.ts'
import { ContinuousSection } from './continuous.tsx'

const BACKUPS_MS = 3_000

export function BackupsPage() {
  const id = environmentId.value
  const read = (background: boolean) => call('listBackups', id, {}, { background })
  const list = useLoaded(id, read, { everyMs: BACKUPS_MS })
  return (
    <Page title="Backups" actions={<Reload of={[list]} />}>
      {may('environments:read') && <ContinuousSection />}
      <Section title="Whole backups">
        <Result of={list}>{({ items }) => <Rows items={items} />}</Result>
      </Section>
      <Section title="Make a backup">
        <CreateForm reload={list.reload} />
      </Section>
      <Section title="Download and restore">
        <Commands items={list.value?.items ?? []} />
      </Section>
    </Page>
  )
}

function Rows({ items }: { items: readonly BackupField[] }) {
  if (items.length === 0) return <Empty>There is no backup yet. Make one below.</Empty>
  const count = (value: string | null): string =>
    value === null ? '–' : Number(value).toLocaleString('en-US')
  return (
    <Table
      label="Whole backups"
      rows={items}
      keyOf={({ backupId }) => backupId}
      columns={[
        { head: 'Backup', isShort: true, cell: ({ backupId }) => <Identifier id={backupId} /> },
        { head: 'State', cell: (backup) => <State backup={backup} /> },
        { head: 'Begun', isShort: true, cell: ({ createdAtMicros }) => timeText(createdAtMicros) },
        { head: 'Took', isNumber: true, cell: tookText },
        { head: 'Because', isShort: true, cell: ({ reason }) => reason },
        { head: 'Kept in', isShort: true, cell: ({ location }) => PLACES[location] },
        { head: 'Sequence', isNumber: true, cell: ({ sequence }) => count(sequence) },
        { head: 'Documents', isNumber: true, cell: ({ documents }) => count(documents) },
        {
          head: 'Written',
          isNumber: true,
          cell: ({ bytes }) => (bytes === null ? '–' : bytesText(bytes)),
        },
        {
          head: 'Files it lacks',
          isNumber: true,
          cell: ({ damaged }) =>
            damaged === null || damaged === '0' ? (
              count(damaged)
            ) : (
              <strong>{count(damaged)}</strong>
            ),
        },
      ]}
    />
  )
}

const PLACES: Readonly<Record<BackupField['location'], string>> = {
  root: 'the server',
  target: 'the target',
}

function State({ backup: { state, failureCode } }: { backup: BackupField }) {
  return (
    <>
      <Badge text={state} /> {failureCode !== null && <Shown text={failureCode} />}
    </>
  )
}

function tookText({ createdAtMicros, finishedAtMicros }: BackupField): string {
  if (finishedAtMicros === null) return '–'
  return durationText(Number(BigInt(finishedAtMicros) - BigInt(createdAtMicros)))
}

function CreateForm({ reload }: { reload: () => void }) {
  const [text, setText] = useState('')
  const recipients = text.split(/[\s,]+/).filter((each) => each !== '')
  const create = (event: SubmitEvent): void => {
    event.preventDefault()
    const options = recipients.map((each) => ` --recipient ${each}`).join('')
    ask({
      title: 'Start a whole backup?',
      effects: [
        'The server reads all documents and files beside its calls. A server without a target ' +
          'keeps the two newest whole backups: once this one begins, the older one is deleted.',
        recipients.length === 0
          ? 'The recipients that the settings of the server name can open it.'
          : `Who has the identity of one of these can open it: ${recipients.join(', ')}. It has ` +
            'every secret of the Environment.',
      ],
      command: svcCommand(`backup create${options}`),
      label: 'Make the backup',
      act: () =>
        call('createBackup', environmentId.value, {
          body: { changedAtMicros: nowMicros(), ...(recipients.length > 0 && { recipients }) },
        }),
      done: reload,
    })
  }
  return (
    <form onSubmit={create}>
      <label class="field wide">
        <span class="label">Recipients (age1…), only for a server whose settings name none</span>
        <input
          name="recipients"
          autocomplete="off"
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="main">
        Make a backup …
      </button>
      <p class="hint">
        svc backup keygen makes the key that opens backups, and prints its recipient.
      </p>
    </form>
  )
}

function Commands({ items }: { items: readonly BackupField[] }) {
  const newest = items.find(({ state }) => state === 'complete')?.backupId ?? 'BACKUP'
  return (
    <>
      <p>The newest complete backup as a tar archive, encrypted as it is:</p>
      <Block text={svcCommand(`backup download ${newest} --out backup.tar`)} label="Download" />
      <p>Prove that it can be restored, on a machine that is not the server:</p>
      <Block
        text="svc backup verify backup.tar --identity backup.key --restore"
        label="Verification"
      />
      <p>A new server from it, or from the target of continuous backups:</p>
      <Block
        text={
          'svc-server restore --from backup.tar --identity backup.key --root NEW_ROOT ' +
          '--database postgres://…'
        }
        label="Restore"
      />
      <p class="hint">svc docs disaster is the guide, svc docs backup explains the settings.</p>
    </>
  )
}
