/** Finds what a request below a mount reaches: the mount, the Release that it serves, the route. */
import type { Release } from '../../../engine/releases/executable-release.ts'
import { Fault, isFault } from '../../../errors/fault.ts'
import type { HookPorts } from '../../../product/http-mounts/hook-ports.ts'
import type { StoredMount } from '../../../product/http-mounts/mount-directory.ts'
import { matchRoute, type RouteMatch } from '../../../value/http/paths.ts'
import type { HttpRouteManifest } from '../../../value/http/routes.ts'
import { MOUNT_LIMIT, requireNoWait } from '../../rate-limits.ts'
import { callsOfBody } from '../callers.ts'
import type { AffinitySource, Gateway } from '../gateway.ts'
import type { MountUrl } from './mount-urls.ts'

/** Operators mount targets, so that those of Workspaces need no scope of a key. */
const MOUNTED = { scopes: ['workspace'] } as const
/** Codes of a target that serves nothing now: the service should try again later. */
const UNSERVED = ['TARGET_NOT_FOUND', 'TARGET_DENIED', 'RELEASE_RETIRED'] as const

/** A request that has reached a route. */
export interface Mounted {
  readonly mount: StoredMount
  readonly release: Release
  readonly url: MountUrl
  /** The path below the mount, without its secret part. */
  readonly path: string
  /** Monotonic milliseconds at which the request arrived. */
  readonly started: number
}

/** Throws ROUTE_NOT_FOUND for an unknown mount, and for a path without its secret part. */
export function findMount({ mounts }: HookPorts, { mount: name, rest }: MountUrl) {
  const mount = mounts.find(name)
  if (mount === null) throw new Fault('ROUTE_NOT_FOUND', { detail: 'no such mount' })
  if (mount.token === null) return { mount, path: rest }
  const [, segment = ''] = rest.split('/', 2)
  if (mounts.isToken(mount, segment)) return { mount, path: rest.slice(segment.length + 1) }
  throw new Fault('ROUTE_NOT_FOUND', { detail: `no secret path of the mount ${mount.name}` })
}

/** Returns the Release that the mount serves. Throws UNAVAILABLE while it serves none. */
export async function resolveMount(
  { engine, resolveTarget }: Gateway,
  mount: StoredMount,
  source: AffinitySource,
): Promise<Release> {
  if (!engine.ready()) throw new Fault('UNAVAILABLE', { detail: 'the engine is not ready' })
  try {
    return await resolveTarget(mount.target, MOUNTED, source)
  } catch (error) {
    if (!isFault(error, ...UNSERVED)) throw error
    const detail = `the mount ${mount.name} is of ${mount.target}: ${error.detail ?? error.code}`
    throw new Fault('UNAVAILABLE', { detail })
  }
}

/** A route with every method that is answered at its path. */
interface Answered {
  readonly path: string
  readonly methods: readonly string[]
  readonly route: HttpRouteManifest
}

const NO_ROUTES: readonly HttpRouteManifest[] = []
const answeredBy = new WeakMap<readonly HttpRouteManifest[], readonly Answered[]>()

/** Returns the routes of a Release, where GET of an endpoint answers HEAD too. */
function answeredRoutes(routes: readonly HttpRouteManifest[]): readonly Answered[] {
  const known = answeredBy.get(routes)
  if (known !== undefined) return known
  const answered = routes.map((route): Answered => {
    const { path, methods, kind } = route
    const hasHead = kind === 'endpoint' && methods.includes('GET')
    return { path, methods: hasHead ? [...methods, 'HEAD'] : methods, route }
  })
  answeredBy.set(routes, answered)
  return answered
}

/** Returns the route of a request. Throws ROUTE_NOT_FOUND for a path that no route has. */
export function findRoute(
  { http = NO_ROUTES }: Release,
  { mount, path, method }: Pick<Mounted, 'mount' | 'path'> & { readonly method: string },
): RouteMatch<HttpRouteManifest> {
  const match = matchRoute(answeredRoutes(http), method, path)
  if (match === null) {
    throw new Fault('ROUTE_NOT_FOUND', { detail: `no route of the mount ${mount.name}` })
  }
  return { route: match.route?.route ?? null, methods: match.methods }
}

function limitOf({ rateLimit }: StoredMount) {
  return rateLimit === null
    ? MOUNT_LIMIT
    : { perSecond: rateLimit, burst: Math.max(2 * rateLimit, 10) }
}

/** Charges a request to the rate of the mount. Throws RATE_LIMITED. */
export function takeRate({ limits }: Gateway, mount: StoredMount): void {
  if (limits === null) return
  const seconds = limits.mounts.take(mount.name, limitOf(mount))
  requireNoWait(seconds, 'RATE_LIMITED', `the mount ${mount.name}`)
}

/** Charges the rate of the mount for a long body that has arrived, as calls are charged. */
export function chargeMountBody({ limits }: Gateway, mount: StoredMount, bytes: number): void {
  const requests = callsOfBody(bytes)
  if (requests > 0) limits?.mounts.charge(mount.name, limitOf(mount), requests)
}
