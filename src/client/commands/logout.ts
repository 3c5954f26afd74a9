/** `svc logout`: ends the session on the server and forgets it here. */
import type { Code } from '../../errors/codes.ts'
import { isFault } from '../../errors/fault.ts'
import { type Context, command } from '../contexts.ts'
import { ProfileStore } from '../profiles.ts'
import { OperatorSession } from '../sessions.ts'

/** What ends the command; any other failure of the server leaves only the session there. */
const STOPS: readonly Code[] = [
  'CLIENT_INTERRUPTED',
  'CLIENT_CHANGE_INTERRUPTED',
  'CLIENT_ORIGIN_MISMATCH',
]

export const logoutCommand = command({
  name: 'logout',
  summary: 'Revoke the session on the server and remove it from this machine',
  details: ['Without a connection the session is removed here and ends on the server by itself.'],
  options: {},
  async run(context) {
    const session = await OperatorSession.open(context)
    const { sessionId, authenticationOrigin } = session.profile
    const revoked = await revoke(context, session)
    await forget(context, sessionId)
    await context.output.result({ version: 1, sessionId, revoked, removed: true }, [
      revoked ? `Logged out of ${authenticationOrigin}.` : 'Logged out on this machine.',
    ])
  },
})

/** False where the server could not be told. A session that it refuses is over already. */
async function revoke(context: Context, session: OperatorSession): Promise<boolean> {
  const { sessionId } = session.profile
  const revocation = session.authentication({
    method: 'DELETE',
    path: `/v1/auth/sessions/${sessionId}`,
    reply: null,
    replay: 'safe',
  })
  try {
    await context.output.progress('revoking the session', revocation)
    return true
  } catch (error) {
    if (isFault(error, 'PLATFORM_AUTHENTICATION_FAILED')) return true
    if (!isFault(error) || STOPS.includes(error.code)) throw error
    await context.output.warn(
      `warning: ${error.code}: the server was not told; the session ${sessionId} ends there when ` +
        'its tokens expire, or when an operator revokes it.',
    )
    return false
  }
}

/** Another login may have replaced the session meanwhile; that one stays. */
export async function forget(context: Context, sessionId: string): Promise<void> {
  const store = new ProfileStore(context)
  await store.change(context.signal, async (stored) => {
    if (stored?.sessionId === sessionId) store.remove()
  })
}
