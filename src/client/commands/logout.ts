/** `svc logout`: revokes the session on the server and removes it from this machine. */
import type { Code } from '../../errors/codes.ts'
import { isFault } from '../../errors/fault.ts'
import { revokeSession } from '../../wire/operations/identity/sessions.ts'
import { type Context, command } from '../contexts.ts'
import { ProfileStore } from '../sessions/profiles.ts'
import { OperatorSession } from '../sessions/sessions.ts'

/** Codes that stop the command. Other failures leave the session on the server only. */
const STOPS: readonly Code[] = [
  'CLIENT_INTERRUPTED',
  'CLIENT_CHANGE_INTERRUPTED',
  'CLIENT_ORIGIN_MISMATCH',
]

export const logoutCommand = command({
  name: 'logout',
  summary: 'Revoke the session on the server and remove it from this machine',
  details: [
    'If the server cannot be reached, the session is removed here and expires on the server.',
  ],
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

/** Returns false if the server did not confirm. A session that it rejects is over already. */
async function revoke(context: Context, session: OperatorSession): Promise<boolean> {
  const { sessionId } = session.profile
  const revocation = session.call(revokeSession, { params: { sessionId } })
  try {
    await context.output.progress('revoking the session', revocation)
    return true
  } catch (error) {
    if (isFault(error, 'PLATFORM_AUTHENTICATION_FAILED')) return true
    if (!isFault(error) || STOPS.includes(error.code)) throw error
    await context.output.warn(
      `warning: ${error.code}: the server did not revoke the session ${sessionId}. It ends when ` +
        'its refresh token expires, or when an operator revokes it.',
    )
    return false
  }
}

/** Removes the stored session, unless another login has replaced it meanwhile. */
export async function forget(context: Context, sessionId: string): Promise<void> {
  const store = new ProfileStore(context)
  await store.change(context.signal, async (stored) => {
    if (stored?.sessionId === sessionId) store.remove()
  })
}
