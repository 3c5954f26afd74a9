/** The steps that all logins share: discovery, exchange, storage of the session. */
import { isFault } from '../../errors/fault.ts'
import { formatTimestamp } from '../../value/plain.ts'
import type { AuthConfig, Login } from '../../wire/identity/auth.ts'
import { readAuthConfig } from '../../wire/operations/identity/auth.ts'
import { revokeSession } from '../../wire/operations/identity/sessions.ts'
import type { Context } from '../contexts.ts'
import type { ClientEnvironment } from '../environment.ts'
import { parseOrigin } from '../origins.ts'
import { type OperationRequest, requestOf } from '../requests/operation-requests.ts'
import { type Call, type Network, send } from '../requests/requests.ts'
import { usage } from '../usage.ts'
import { printable } from '../visible-text.ts'
import { type Profile, ProfileStore } from './profiles.ts'
import { type LoginOrigins, profileOf } from './sessions.ts'

export type LoginMethod = AuthConfig['methods'][number]

const LOGIN_COMMAND = { name: 'login' }
const METHOD_NAMES: Readonly<Record<LoginMethod, string>> = {
  invitation: 'invitation codes',
  browser_oidc: 'a login in the browser',
  helper_token: 'tokens of an identity provider',
}

/** Asks for the accepted login methods and the Management origin, which may be another one. */
export async function discover(
  context: Context,
  origin: string,
  method: LoginMethod,
): Promise<LoginOrigins> {
  const config = await context.output.progress(
    'asking the server',
    send(context, { ...requestOf(readAuthConfig), origin }),
  )
  if (!config.methods.includes(method)) {
    const accepted = config.methods.map((each) => METHOD_NAMES[each]).join(', ')
    throw usage(
      `${origin} does not accept ${METHOD_NAMES[method]}; it accepts ${accepted}.`,
      LOGIN_COMMAND,
    )
  }
  const management = config.managementOrigin
  return {
    authenticationOrigin: origin,
    managementOrigin: management === null ? origin : parseOrigin(context.environment, management),
  }
}

export type LoginCall = OperationRequest<Login> & Pick<Call<Login>, 'bearer'>

/**
 * Exchanges a code or a token for a session and stores it. The lock is held before the exchange,
 * which is never interrupted: a code works once, so its session must not be lost.
 */
export async function logIn(
  context: Context,
  origins: LoginOrigins,
  call: LoginCall,
): Promise<void> {
  const store = new ProfileStore(context)
  const network = { environment: context.environment, signal: new AbortController().signal }
  const login = await context.uninterrupted(
    store.change(context.signal, async (stored) => {
      const response = await send(network, { ...call, origin: origins.authenticationOrigin })
      const profile = profileOf(response, origins)
      if (replacesPerson(context.environment, stored, profile)) {
        await revokeUnstored(network, profile)
        throw usage(keptSession(stored))
      }
      store.write(profile)
      return response
    }),
  )
  const { operator, session, grants } = login
  await context.output.result(
    { version: 1, ...origins, operator, session, grants, credentialsFile: store.path },
    [
      `Logged in to ${origins.managementOrigin} as ${printable(operator.operatorName)}.`,
      `The session ${session.sessionId} is stored in ${store.path}.`,
      ...(login.refreshToken === null ? [workloadNote(session.refreshExpiresAtMicros)] : []),
    ],
  )
}

function workloadNote(endsAtMicros: string): string {
  const at = formatTimestamp(BigInt(endsAtMicros))
  return `It is the session of a workload: it ends at ${at}. After that, log in with a new token.`
}

/**
 * Tells whether the session of a workload would take the place of a person's on a machine that is
 * no runner: a job that is tried out by hand must not log its author out.
 */
function replacesPerson(
  environment: ClientEnvironment,
  stored: Profile | null,
  { refreshToken }: Profile,
): stored is Profile {
  if (refreshToken !== null || stored === null || stored.refreshToken === null) return false
  return !environment.variable('SERVICE_CONFIG_HOME') && !environment.variable('CI')
}

function keptSession({ operatorName }: Profile): string {
  return (
    `The session of ${operatorName} is stored here, and that of a workload does not replace it. ` +
    'Set SERVICE_CONFIG_HOME to a directory of the job, then log in with a new token.'
  )
}

/** Revokes a session that nothing will use. It ends within minutes where that fails. */
async function revokeUnstored(network: Network, profile: Profile): Promise<void> {
  const revocation = send(network, {
    ...requestOf(revokeSession, { params: { sessionId: profile.sessionId } }),
    origin: profile.authenticationOrigin,
    bearer: profile.accessToken,
  })
  await revocation.catch((error: unknown) => {
    if (!isFault(error)) throw error
  })
}
