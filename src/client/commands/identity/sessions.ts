/** `svc sessions`: lists the operator's sessions and revokes a session. */
import { isFault } from '../../../errors/fault.ts'
import { PAGE_MAX } from '../../../wire/fields.ts'
import type { SessionField, Sessions } from '../../../wire/identity/auth.ts'
import { listSessions, revokeSession } from '../../../wire/operations/identity/sessions.ts'
import { argument, type CommandSpec, command } from '../../contexts.ts'
import { readPages } from '../../network/pages.ts'
import type { Columns } from '../../output.ts'
import { requestCommand } from '../../request-commands.ts'
import { OperatorSession } from '../../sessions/sessions.ts'
import { requireId } from '../../usage.ts'
import { forget } from '../logout.ts'
import { deriveCommand } from './derive.ts'

export const SESSION_COLUMNS = {
  SESSION: 'sessionId',
  DEVICE: 'deviceName',
  PURPOSE: 'purpose',
  CREATED: 'createdAtMicros',
  'LAST USED': 'lastUsedAtMicros',
  UNTIL: 'refreshExpiresAtMicros',
  '': ({ current }) => (current ? 'this one' : ''),
} satisfies Columns<SessionField>

const list = requestCommand({
  name: 'sessions list',
  alias: 'sessions',
  summary: "List the operator's sessions",
  details: ['`svc sessions` alone does the same.'],
  options: {},
  open: OperatorSession.open,
  progress: 'reading the sessions',
  request: readSessions,
  document: (sessions) => ({ version: 1, sessions, next: null }) satisfies Sessions,
  rows: (sessions) => sessions,
  columns: SESSION_COLUMNS,
})

function readSessions(session: OperatorSession): Promise<SessionField[]> {
  return readPages(async (after) => {
    const query = { limit: PAGE_MAX, after: after ?? undefined }
    const { sessions, next } = await session.call(listSessions, { query })
    return { items: sessions, next }
  })
}

const revoke: CommandSpec = command({
  name: 'sessions revoke',
  summary: 'Revoke a session; its tokens are rejected at once',
  details: [
    'Revoking the session of another operator needs operators:manage at the installation. Revoking',
    'the session of this machine logs it out. The command may be repeated.',
  ],
  positionals: [argument('SESSION', 'Its ops_ identifier')],
  options: {},
  examples: ['svc sessions revoke ops_...'],
  async run(context, _, [given]) {
    const sessionId = requireId('ops', given, 'SESSION', revoke)
    const session = await OperatorSession.open(context)
    const own = session.profile.sessionId === sessionId
    const request = session
      .call(revokeSession, { params: { sessionId }, subjects: { scope: 'installation' } })
      .catch((error) => {
        // A rejected session is over already.
        if (!own || !isFault(error, 'PLATFORM_AUTHENTICATION_FAILED')) throw error
      })
    await context.output.progress('revoking the session', request)
    if (own) await forget(context, sessionId)
    await context.output.result({ version: 1, sessionId, revoked: true, loggedOut: own }, [
      own ? `Revoked ${sessionId}; this machine is logged out.` : `Revoked ${sessionId}.`,
    ])
  },
})

export const sessionCommands: readonly CommandSpec[] = [list, deriveCommand, revoke]
