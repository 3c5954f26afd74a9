/**
 * The management API of `svc dev`: the routes of its Environment on a loopback address, for the
 * commands that this user runs in another terminal. One access token, which is valid as long as the
 * process runs, replaces operators and logins; commands derive sessions from it as at a server.
 */
import { Fault } from '../../errors/fault.ts'
import { MANAGEMENT_CODES } from '../../http/errors.ts'
import { selfRoutes } from '../../http/management/identity/auth.ts'
import { type ResourcesApp, resourceRoutes } from '../../http/management/identity/resources.ts'
import { mountManagement } from '../../http/management/mount.ts'
import type { Route } from '../../http/management/route.ts'
import { type EnvironmentApp, routesOfEnvironment } from '../../http/management/routes.ts'
import { managementLimits } from '../../http/rate-limits.ts'
import { requestCounts } from '../../http/request-counts.ts'
import { environmentApp } from '../../server/environments.ts'
import { openListener } from '../../server/listeners.ts'
import type { Secret } from '../../value/secret.ts'
import type { LocalEnvironment, LocalOptions } from './local-environments.ts'
import { LocalSessions, type LocalSessionsApp, localSessionRoutes } from './local-sessions.ts'
import { hostRule } from './request-hosts.ts'

export interface LocalManagement {
  /** The origin of the management API. */
  readonly url: string
  readonly accessToken: Secret
}

const HOST = '127.0.0.1'

type LocalApp = EnvironmentApp & LocalSessionsApp & ResourcesApp

const routes: readonly Route<LocalApp>[] = [
  ...(selfRoutes as readonly Route<LocalApp>[]),
  ...(localSessionRoutes as readonly Route<LocalApp>[]),
  ...(resourceRoutes as readonly Route<LocalApp>[]),
  ...(routesOfEnvironment as readonly Route<LocalApp>[]),
]

/** Opens the address. Throws SERVER_LISTEN_FAILED. */
export function openLocalManagement(
  environment: LocalEnvironment,
  { system, log, closing }: Pick<LocalOptions, 'system' | 'log' | 'closing'>,
): LocalManagement {
  const { product, application, metrics, transfers, rejections } = environment
  const { projectId, environmentId, name, slug } = product.root.descriptor
  const sessions = new LocalSessions(system, { projectId, environmentId })
  const app = mountManagement({
    system,
    log,
    transfers,
    rejections,
    limits: managementLimits(system),
    routes,
    counts: requestCounts(metrics, 'management'),
    app: {
      ...environmentApp(environment, application, {
        metrics,
        doctor: noDoctor,
        certificateHealth: () => [],
      }),
      environment: { projectId, environmentId },
      sessions,
      localSessions: sessions,
      linkableEnvironments: async () => [
        { projectId, environmentId, name, slug, managementOrigin: null },
      ],
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
    hostRule,
  })
  closing.add(() => listener.cut())
  return { url: `http://${listener.address}`, accessToken: sessions.accessToken }
}

/** A development server has no settings of a server, and none of its databases. */
async function noDoctor(): Promise<never> {
  throw new Fault('PLATFORM_NOT_FOUND', { detail: 'svc dev has no doctor' })
}
