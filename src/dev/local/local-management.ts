/**
 * The management API of `svc dev`: the routes of its Environment on a loopback address, for the
 * commands that this user runs in another terminal. One access token, which is valid as long as the
 * process runs, replaces operators, logins and sessions.
 */
import { Fault } from '../../errors/fault.ts'
import { MANAGEMENT_CODES } from '../../http/errors.ts'
import { mountManagement } from '../../http/management/mount.ts'
import type { Sessions } from '../../http/management/route.ts'
import { routesOfEnvironment } from '../../http/management/routes.ts'
import { managementLimits } from '../../http/rate-limits.ts'
import { requestCounts } from '../../http/request-counts.ts'
import type { Actor } from '../../identity/actor.ts'
import { Credentials } from '../../identity/credentials.ts'
import { environmentApp } from '../../server/environments.ts'
import { openListener } from '../../server/listeners.ts'
import { LOCAL_CAPABILITIES } from '../../value/capabilities.ts'
import type { EnvironmentId, ProjectId } from '../../value/ids.ts'
import { localAuthor } from '../../value/product-root.ts'
import { environmentScope } from '../../value/scope.ts'
import type { Secret } from '../../value/secret.ts'
import type { LocalEnvironment, LocalOptions } from './local-environments.ts'

export interface LocalManagement {
  /** The origin of the management API. */
  readonly url: string
  readonly accessToken: Secret
}

const HOST = '127.0.0.1'
const PEPPER_BYTES = 32
/** Expiry of the session, the last second of the year 9999: it is valid while the process runs. */
const NEVER_MICROS = 253_402_300_799_000_000n

/** Opens the address. Throws SERVER_LISTEN_FAILED. */
export function openLocalManagement(
  environment: LocalEnvironment,
  { system, log, closing }: Pick<LocalOptions, 'system' | 'log' | 'closing'>,
): LocalManagement {
  const { product, application, metrics, transfers, rejections } = environment
  const { projectId, environmentId } = product.root.descriptor
  // The pepper exists in memory alone, so the token is invalid once the process has ended.
  const credentials = new Credentials(system.randomBytes(PEPPER_BYTES), system)
  const { secret: accessToken } = credentials.issueAccessToken()
  const actor = localActor({ projectId, environmentId })
  const app = mountManagement({
    system,
    log,
    transfers,
    rejections,
    limits: managementLimits(system),
    routes: routesOfEnvironment,
    counts: requestCounts(metrics, 'management'),
    app: {
      ...environmentApp(environment, application, metrics, noDoctor),
      environment: { projectId, environmentId },
      sessions: sessionsOf(credentials, actor),
    },
  })
  const listener = openListener({
    surface: 'management',
    app,
    codes: MANAGEMENT_CODES,
    system,
    log,
    listen: { host: HOST, port: 0, loopback: true },
    tlsTerminated: false,
  })
  closing.add(() => listener.cut())
  return { url: `http://${listener.address}`, accessToken }
}

function sessionsOf(credentials: Credentials, actor: Actor): Sessions {
  const recognize = (token: string): string | null =>
    credentials.recognizeAccessToken(token)?.toString('hex') ?? null
  return {
    recognize,
    authenticate: async (token) => {
      if (recognize(token) === null) throw new Fault('PLATFORM_AUTHENTICATION_FAILED')
      return actor
    },
    whileAuthorized: async (_, work) => work(actor),
  }
}

function localActor(scope: {
  readonly projectId: ProjectId
  readonly environmentId: EnvironmentId
}): Actor {
  const author = localAuthor(scope.environmentId)
  const operatorName = 'svc dev'
  const times = { createdAtMicros: 0n, lastUsedAtMicros: 0n }
  const ends = { accessExpiresAtMicros: NEVER_MICROS, refreshExpiresAtMicros: NEVER_MICROS }
  const { operatorId, sessionId } = author
  const names = { operatorId, sessionId, deviceName: null }
  return {
    ...author,
    operatorName,
    operator: { operatorId, operatorName, createdAtMicros: 0n, authorizationRevision: 1n },
    session: { ...names, ...times, ...ends, derivation: null },
    grants: [
      {
        scope: environmentScope(scope.projectId, scope.environmentId),
        capabilities: LOCAL_CAPABILITIES,
        source: 'bootstrap',
      },
    ],
  }
}

/** A development server has no settings of a server, and none of its databases. */
async function noDoctor(): Promise<never> {
  throw new Fault('PLATFORM_NOT_FOUND', { detail: 'svc dev has no doctor' })
}
