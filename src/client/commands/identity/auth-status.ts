/** `svc auth status`: shows the stored session without a request to the server. */
import { Fault } from '../../../errors/fault.ts'
import { formatTimestamp } from '../../../value/plain.ts'
import { command } from '../../contexts.ts'
import { ProfileStore } from '../../sessions/profiles.ts'
import { printable } from '../../visible-text.ts'

export const authStatusCommand = command({
  name: 'auth status',
  summary: 'Show the stored session without a request to the server',
  details: [
    'Ends with 3 if no session is stored or if it has expired. The next command renews an access',
    'token that has expired; the session lasts as long as its refresh token.',
  ],
  options: {},
  async run({ environment, output }) {
    const store = new ProfileStore({ environment, output })
    const profile = await store.read()
    if (profile === null) throw new Fault('CLIENT_NOT_LOGGED_IN')
    const { accessExpiresAtMicros, refreshExpiresAtMicros } = profile
    const now = environment.system.nowMicros()
    if (refreshExpiresAtMicros <= now) {
      const at = formatTimestamp(refreshExpiresAtMicros)
      const detail = `The session of ${profile.operatorName} expired at ${at}.`
      throw new Fault('CLIENT_NOT_LOGGED_IN', { detail })
    }
    const { authenticationOrigin, managementOrigin, operatorId, operatorName, sessionId } = profile
    const name = output.bold(printable(operatorName))
    await output.result(
      {
        version: 1,
        loggedIn: true,
        authenticationOrigin,
        managementOrigin,
        operator: { operatorId, operatorName },
        sessionId,
        accessExpiresAtMicros: String(accessExpiresAtMicros),
        accessExpired: accessExpiresAtMicros <= now,
        refreshExpiresAtMicros: String(refreshExpiresAtMicros),
        credentialsFile: store.path,
      },
      [
        `Logged in to ${managementOrigin} as ${name} (${operatorId}).`,
        `Session ${sessionId} expires at ${formatTimestamp(refreshExpiresAtMicros)}.`,
        profile.refreshToken === null
          ? 'It is the session of a workload and ends with its access token.'
          : `Access token until ${formatTimestamp(accessExpiresAtMicros)}, then renewed.`,
      ],
    )
  },
})
