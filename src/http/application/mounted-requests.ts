/**
 * Requests below a mount (contract/wire.md, HTTP mounts): finds the mount, its Release and the
 * route, and passes the request to the hook or to the endpoint. The headers are those of all.
 */
import { Fault, isFault } from '../../errors/fault.ts'
import type { HttpRouteManifest } from '../../value/http/routes.ts'
import { isId } from '../../value/ids.ts'
import { OPERATION_ID_HEADER } from '../../wire/idempotency-records.ts'
import type { RouteClass } from '../request-counts.ts'
import { originDenied } from './browser-origins.ts'
import { resolveAffinity } from './callers.ts'
import {
  allowEndpointOrigin,
  checkEndpointOrigin,
  preflightResponse,
} from './endpoints/endpoint-origins.ts'
import { callEndpoint, mountCaller } from './endpoints/endpoints.ts'
import { endExchange } from './exchanges.ts'
import type { Gateway } from './gateway.ts'
import { receiveDelivery } from './hooks/hooks.ts'
import type { Incoming } from './incoming.ts'
import { mountUrlOf } from './mounts/mount-urls.ts'
import { findMount, findRoute, type Mounted, resolveMount } from './mounts/mounted-routes.ts'
import { MOUNT_HEADERS } from './mounts/results.ts'

/** The facts about a request that are known if it fails. */
interface Known {
  /** Methods of its path; null until a route was looked up. */
  methods: readonly string[] | null
  /** Null until the request has reached one. */
  route: HttpRouteManifest | null
}

/** Answers one request. `fail` renders and logs failures. Never rejects. */
export async function answerMounted(
  gateway: Gateway,
  incoming: Incoming,
  fail: (error: unknown) => Response,
): Promise<Response> {
  const started = gateway.system.monotonicMillis()
  const known: Known = { methods: null, route: null }
  let response: Response
  try {
    response = await answer(gateway, incoming, { started, known })
  } catch (error) {
    response = failed(error, fail(error), known)
  }
  incoming.bodyMemory?.release()
  const { headers } = response
  headers.set('x-service-request-id', incoming.requestId)
  for (const [name, value] of Object.entries(MOUNT_HEADERS)) headers.set(name, value)
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store')
  const { method, headers: given } = incoming.request
  const { route } = known
  if (route?.kind === 'endpoint') allowEndpointOrigin(route, headers, given.get('origin'))
  if (method === 'HEAD' && response.body !== null) {
    response = new Response(null, { status: response.status, headers })
  }
  const routeClass: RouteClass = route?.kind === 'endpoint' ? 'endpoint' : 'hook'
  // No origin: the origins that the server allows are those of calls with a key.
  return endExchange(gateway, incoming, { response, origin: null, started, routeClass })
}

function failed(error: unknown, response: Response, { methods }: Known): Response {
  // The body would tell a stranger what runs here.
  if (isFault(error, 'ROUTE_NOT_FOUND')) return new Response(null, { status: 404 })
  if (response.status === 405) response.headers.set('allow', methods?.join(', ') ?? '')
  return response
}

async function answer(
  gateway: Gateway,
  incoming: Incoming,
  { started, known }: { readonly started: number; readonly known: Known },
): Promise<Response> {
  const { hooks } = gateway
  if (hooks === null) throw new Fault('ROUTE_NOT_FOUND')
  const { request, requestId } = incoming
  const url = mountUrlOf(request.url)
  const { mount, path } = findMount(hooks, url)
  const caller = mountCaller(mount.name)
  const given = request.headers.get(OPERATION_ID_HEADER)
  // A repeat reaches the Release of its original. Services send hooks keys of their own.
  const fallback = given !== null && isId('opn', given) ? given : requestId
  const release = await resolveMount(gateway, mount, {
    affinity: () => resolveAffinity(gateway, incoming, caller, fallback),
  })
  incoming.releaseId = release.releaseId
  const asked = request.headers.get('access-control-request-method')
  const isPreflight = request.method === 'OPTIONS' && asked !== null
  const method = isPreflight ? asked : request.method
  const match = findRoute(release, { mount, path, method })
  known.methods = match.methods
  const { route } = match
  checkOrigin(gateway, route, request.headers.get('origin'))
  if (route === null || (isPreflight && route.kind === 'hook')) {
    throw new Fault('METHOD_NOT_ALLOWED')
  }
  known.route = route
  if (isPreflight) return preflightResponse(match.methods)
  incoming.function = route.function
  const mounted: Mounted = { mount, release, url, path, started }
  return route.kind === 'hook'
    ? receiveDelivery(gateway, incoming, mounted, route)
    : callEndpoint(gateway, incoming, mounted, route)
}

/** Throws ORIGIN_DENIED. An endpoint declares its origins; all else has those of the server. */
function checkOrigin(
  { allowedOrigins }: Gateway,
  route: HttpRouteManifest | null,
  origin: string | null,
): void {
  if (route?.kind === 'endpoint') checkEndpointOrigin(route, origin)
  else if (origin !== null && !allowedOrigins.has(origin)) throw originDenied(origin)
}
