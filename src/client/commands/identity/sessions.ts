/** `svc sessions`: lists the operator's sessions and revokes a session. */
import { isFault } from '../../../errors/fault.ts'
import { isId } from '../../../value/ids.ts'
import { formatTimestamp } from '../../../value/plain.ts'
import { PAGE_MAX } from '../../../wire/fields.ts'
import type { SessionField, Sessions } from '../../../wire/identity/auth.ts'
import { listSessions, revokeSession } from '../../../wire/operations/identity/sessions.ts'
import { type CommandSpec, command } from '../../contexts.ts'
import { readPages } from '../../network/pages.ts'
import type { Output } from '../../output.ts'
import { OperatorSession } from '../../sessions/sessions.ts'
import { usage } from '../../usage.ts'
import { forget } from '../logout.ts'

const list = command({
  name: 'sessions list',
  alias: 'sessions',
  summary: "List the operator's sessions",
  details: ['`svc sessions` alone does the same.'],
  options: {},
  async run(context) {
    const pages = readSessions(await OperatorSession.open(context))
    const sessions = await context.output.progress('reading the sessions', pages)
    const found: Sessions = { version: 1, sessions, next: null }
    await context.output.result(found, sessionTable(context.output, sessions))
  },
})

export function sessionTable(output: Output, sessions: readonly SessionField[]): string[] {
  const rows = sessions.map((session) => [
    session.sessionId,
    session.deviceName ?? '-',
    formatTimestamp(BigInt(session.createdAtMicros)),
    formatTimestamp(BigInt(session.lastUsedAtMicros)),
    formatTimestamp(BigInt(session.refreshExpiresAtMicros)),
    session.current ? 'this one' : '',
  ])
  return output.table(['SESSION', 'DEVICE', 'CREATED', 'LAST USED', 'UNTIL', ''], rows)
}

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
  positionals: [{ name: 'SESSION', description: 'Its ops_ identifier', required: true }],
  options: {},
  examples: ['svc sessions revoke ops_...'],
  async run(context, _, [sessionId]) {
    if (!isId('ops', sessionId)) throw usage('SESSION needs an ops_ identifier.', revoke)
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

export const sessionCommands: readonly CommandSpec[] = [list, revoke]
