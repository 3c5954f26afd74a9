/** `svc sessions`: the operator's own sessions, and the end of one. */
import { isFault } from '../../../errors/fault.ts'
import { isId } from '../../../value/ids.ts'
import { formatTimestamp } from '../../../value/plain.ts'
import { Sessions } from '../../../wire/auth.ts'
import { usage } from '../../arguments.ts'
import { type CommandSpec, command } from '../../contexts.ts'
import { OperatorSession } from '../../sessions.ts'
import { forget } from '../logout.ts'

const list = command({
  name: 'sessions list',
  alias: 'sessions',
  summary: "List the operator's sessions",
  details: ['`svc sessions` alone does the same.'],
  options: {},
  async run(context) {
    const request = (await OperatorSession.open(context)).authentication({
      method: 'GET',
      path: '/v1/auth/sessions',
      reply: Sessions,
      replay: 'safe',
    })
    const found = await context.output.progress('reading the sessions', request)
    const rows = found.sessions.map((session) => [
      session.sessionId,
      session.deviceName ?? '-',
      formatTimestamp(BigInt(session.createdAtMicros)),
      formatTimestamp(BigInt(session.lastUsedAtMicros)),
      formatTimestamp(BigInt(session.refreshExpiresAtMicros)),
      session.current ? 'this one' : '',
    ])
    const head = ['SESSION', 'DEVICE', 'CREATED', 'LAST USED', 'UNTIL', '']
    await context.output.result(found, context.output.table(head, rows))
  },
})

const revoke: CommandSpec = command({
  name: 'sessions revoke',
  summary: 'End a session, so that its tokens are refused at once',
  details: [
    "Another operator's session needs operators:manage at the installation. Ending the session of",
    'this machine logs it out. May be repeated.',
  ],
  positionals: [{ name: 'SESSION', description: 'Its ops_ identifier', required: true }],
  options: {},
  examples: ['svc sessions revoke ops_...'],
  async run(context, _, [sessionId]) {
    if (!isId('ops', sessionId)) throw usage('SESSION is an ops_ identifier.', revoke)
    const session = await OperatorSession.open(context)
    const own = session.profile.sessionId === sessionId
    const request = session
      .authentication({
        method: 'DELETE',
        path: `/v1/auth/sessions/${sessionId}`,
        reply: null,
        replay: 'safe',
      })
      .catch((error) => {
        // Whoever is refused with it has no session left to end.
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
