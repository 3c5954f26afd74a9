/** Sessions of an operator, and the end of one. */
import type { SessionField } from '../../../wire/identity/auth.ts'
import { timeText } from '../../formats.ts'
import { Empty } from '../../parts/page.tsx'
import { Identifier, Shown } from '../../parts/shown.tsx'
import { Table } from '../../parts/table.tsx'
import { call } from '../../requests.ts'
import { about, ask, environmentId } from '../../state.ts'

export function SessionTable({
  sessions,
  owner,
  reload,
}: {
  sessions: readonly SessionField[]
  /** The name of the operator that the sessions belong to. */
  owner: string
  reload: () => void
}) {
  if (sessions.length === 0) return <Empty>No session of it can be used.</Empty>
  const canEnd = about.value?.managesInstallation === true
  return (
    <Table
      label="Sessions"
      rows={sessions}
      keyOf={({ sessionId }) => sessionId}
      columns={[
        { head: 'Session', isShort: true, cell: ({ sessionId }) => <Identifier id={sessionId} /> },
        { head: 'Kind', cell: (session) => <Shown text={kindOf(session)} /> },
        {
          head: 'Device',
          cell: ({ deviceName }) =>
            deviceName === null ? <span class="quiet">–</span> : <Shown text={deviceName} />,
        },
        {
          head: 'Created',
          isShort: true,
          cell: ({ createdAtMicros }) => timeText(createdAtMicros),
        },
        {
          head: 'Last used',
          isShort: true,
          cell: ({ lastUsedAtMicros }) => timeText(lastUsedAtMicros),
        },
        { head: 'Until', isShort: true, cell: ({ refreshExpiresAtMicros: at }) => timeText(at) },
        ...(canEnd
          ? [
              {
                head: 'Change',
                cell: (session: SessionField) => (
                  <End session={session} owner={owner} reload={reload} />
                ),
              },
            ]
          : []),
      ]}
    />
  )
}

/** The session that the derived ones of this page, and others, end with. */
const isLogin = ({ sessionId }: SessionField): boolean => sessionId === about.value?.sessionId

const isOfPage = ({ purpose, parentSessionId }: SessionField): boolean =>
  purpose === 'console' && parentSessionId === about.value?.sessionId

function kindOf(session: SessionField): string {
  if (isLogin(session)) return 'login, which this console runs on'
  if (isOfPage(session)) return 'derived for this console'
  const { purpose, parentSessionId } = session
  return purpose === undefined ? 'login' : `derived for ${purpose}, from ${parentSessionId}`
}

function End({
  session,
  owner,
  reload,
}: {
  session: SessionField
  owner: string
  reload: () => void
}) {
  const { sessionId } = session
  const end = (): void =>
    ask({
      title: `End the session ${sessionId} of ${owner}?`,
      effects: [
        'Its tokens are rejected at once, and the sessions that were derived from it end with it.',
        ...warningsOf(session),
      ],
      command: `svc sessions revoke ${sessionId}`,
      label: 'End the session',
      act: () => call('revokeSession', environmentId.value, { params: { sessionId } }),
      done: reload,
    })
  return (
    <button type="button" class="danger" aria-label={`End … ${sessionId}`} onClick={end}>
      End …
    </button>
  )
}

function warningsOf(session: SessionField): string[] {
  if (isLogin(session)) {
    return [
      'This console runs on it: the page stops working, and this machine is logged out. Run svc ' +
        'login, then svc console again.',
    ]
  }
  return isOfPage(session) ? ['This console derives another one when it needs it.'] : []
}
