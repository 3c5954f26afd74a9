/**
 * Requests of other services (contract/wire.md, HTTP mounts): finds the mount and the route,
 * verifies the signature over the bytes as received, and stores the delivery. The service is
 * answered once the delivery is durable; the handler runs as scheduled work.
 */
import type { Release } from '../../../engine/releases/executable-release.ts'
import { Fault, isFault } from '../../../errors/fault.ts'
import type { HookPorts } from '../../../product/http-mounts/hook-ports.ts'
import type { StoredMount } from '../../../product/http-mounts/mount-directory.ts'
import { SIGNATURE_REJECTIONS } from '../../../product/http-mounts/signatures/signed-requests.ts'
import { verifySignature } from '../../../product/http-mounts/signatures/verification.ts'
import { withJson } from '../../../value/http/delivery-json.ts'
import { matchRoute } from '../../../value/http/paths.ts'
import type { HookManifest } from '../../../value/http/routes.ts'
import type { HookAccepted } from '../../../wire/http/deliveries.ts'
import { isCompressed, readBody } from '../../bodies.ts'
import { APPLICATION_CODES } from '../../errors.ts'
import { MOUNT_LIMIT, peerOf, requireNoWait } from '../../rate-limits.ts'
import { originDenied } from '../browser-origins.ts'
import { endExchange, startSpan } from '../exchanges.ts'
import type { Gateway } from '../gateway.ts'
import type { Incoming } from '../incoming.ts'
import {
  deliveryArguments,
  deliveryFields,
  digestEvent,
  type HookDelivery,
  type HookUrl,
  hookUrlOf,
} from './hook-requests.ts'

/** Operators mount targets, so that those of Workspaces need no scope of a key. */
const MOUNTED = { scopes: ['workspace'] } as const
/** Codes of a target that serves nothing now: the service should try again later. */
const UNSERVED = ['TARGET_NOT_FOUND', 'TARGET_DENIED', 'RELEASE_RETIRED'] as const

/** The facts about a request that are known if it fails. */
interface Known {
  /** Methods of its path; null until a route was looked up. */
  methods: readonly string[] | null
}

/** Answers one request. `fail` renders and logs failures. Never rejects. */
export async function answerHook(
  gateway: Gateway,
  incoming: Incoming,
  fail: (error: unknown) => Response,
): Promise<Response> {
  const started = gateway.system.monotonicMillis()
  const known: Known = { methods: null }
  let response: Response
  try {
    response = await receive(gateway, incoming, { started, known })
  } catch (error) {
    response = failed(error, fail(error), known)
  }
  incoming.bodyMemory?.release()
  const { headers } = response
  headers.set('x-service-request-id', incoming.requestId)
  headers.set('x-content-type-options', 'nosniff')
  headers.set('cache-control', 'no-store')
  // Nothing of this origin is ever a page.
  headers.set('content-security-policy', "sandbox; default-src 'none'")
  // No origin: pages of browsers read no answer to another service.
  const exchanged = { response, origin: null, started, routeClass: 'hook' } as const
  return endExchange(gateway, incoming, exchanged)
}

function failed(error: unknown, response: Response, { methods }: Known): Response {
  // The body would tell a stranger what runs here.
  if (isFault(error, 'ROUTE_NOT_FOUND')) return new Response(null, { status: 404 })
  if (response.status === 405) response.headers.set('allow', methods?.join(', ') ?? '')
  return response
}

async function receive(
  gateway: Gateway,
  incoming: Incoming,
  { started, known }: { readonly started: number; readonly known: Known },
): Promise<Response> {
  const { hooks } = gateway
  if (hooks === null) throw new Fault('ROUTE_NOT_FOUND')
  const { request } = incoming
  const origin = request.headers.get('origin')
  if (origin !== null && !gateway.allowedOrigins.has(origin)) throw originDenied(origin)
  const url = hookUrlOf(request.url)
  const { mount, path } = findMount(hooks, url)
  const peer = peerOf(incoming.binding)
  if (gateway.limits !== null) {
    const detail = 'failed verifications of this address'
    requireNoWait(gateway.limits.failures.wait(peer), 'RATE_LIMITED', detail)
  }
  const { release, hook } = await findHook(gateway, incoming, { mount, path, known })
  if (isCompressed(request.headers)) {
    throw new Fault('MEDIA_TYPE_UNSUPPORTED', { detail: 'content-encoding: identity' })
  }
  // Without a verification every body would be read.
  if (hook.verify === null) takeRate(gateway, mount)
  const body = await readBody(
    request,
    hook.maximumBytes,
    APPLICATION_CODES,
    gateway.transfers,
    incoming,
  )
  if (hook.verify !== null) {
    await verify(gateway, incoming, { mount, hook, url, body })
    takeRate(gateway, mount)
  }
  if (gateway.traces) {
    const route = { path: '/v1/http/:mount', method: request.method, started }
    startSpan(gateway, incoming, route, { 'svc.http.mount': mount.name })
  }
  const { method, headers } = request
  const delivery = { hook, method, path, search: url.search, headers, body }
  return store(gateway, incoming, { hooks, mount, release, delivery })
}

/** Throws ROUTE_NOT_FOUND for an unknown mount, and for a path without its secret part. */
function findMount({ mounts }: HookPorts, { mount: name, rest }: HookUrl) {
  const mount = mounts.find(name)
  if (mount === null) throw new Fault('ROUTE_NOT_FOUND', { detail: 'no such mount' })
  if (mount.token === null) return { mount, path: rest }
  const [, segment = ''] = rest.split('/', 2)
  if (mounts.isToken(mount, segment)) return { mount, path: rest.slice(segment.length + 1) }
  throw new Fault('ROUTE_NOT_FOUND', { detail: `no secret path of the mount ${mount.name}` })
}

/** Throws ROUTE_NOT_FOUND, METHOD_NOT_ALLOWED, and UNAVAILABLE while nothing is served. */
async function findHook(
  gateway: Gateway,
  incoming: Incoming,
  {
    mount,
    path,
    known,
  }: { readonly mount: StoredMount; readonly path: string; readonly known: Known },
): Promise<{ readonly release: Release; readonly hook: HookManifest }> {
  if (!gateway.engine.ready()) throw new Fault('UNAVAILABLE', { detail: 'the engine is not ready' })
  const release = await resolve(gateway, incoming, mount)
  incoming.releaseId = release.releaseId
  const { method } = incoming.request
  const hooks = (release.http ?? []).filter((route) => route.kind === 'hook')
  const match = matchRoute(hooks, method, path)
  if (match === null) {
    throw new Fault('ROUTE_NOT_FOUND', { detail: `no route of the mount ${mount.name}` })
  }
  known.methods = match.methods
  if (match.route === null) throw new Fault('METHOD_NOT_ALLOWED')
  incoming.function = match.route.function
  return { release, hook: match.route }
}

async function resolve(
  gateway: Gateway,
  { requestId }: Incoming,
  mount: StoredMount,
): Promise<Release> {
  try {
    const source = { affinity: () => requestId }
    return await gateway.resolveTarget(mount.target, MOUNTED, source)
  } catch (error) {
    if (!isFault(error, ...UNSERVED)) throw error
    const detail = `the mount ${mount.name} is of ${mount.target}: ${error.detail ?? error.code}`
    throw new Fault('UNAVAILABLE', { detail })
  }
}

function takeRate({ limits }: Gateway, { name, rateLimit }: StoredMount): void {
  if (limits === null) return
  const limit =
    rateLimit === null ? MOUNT_LIMIT : { perSecond: rateLimit, burst: Math.max(2 * rateLimit, 10) }
  requireNoWait(limits.mounts.take(name, limit), 'RATE_LIMITED', `the mount ${name}`)
}

interface Verified {
  readonly mount: StoredMount
  readonly hook: HookManifest
  readonly url: HookUrl
  readonly body: Uint8Array
}

/** Throws SIGNATURE_INVALID, and UNAVAILABLE where the server cannot tell. */
async function verify(
  { hooks, tokens, limits, system }: Gateway,
  { request, binding }: Incoming,
  { mount, hook, url, body }: Verified,
): Promise<void> {
  const { publicUrl } = mount
  const rejection = await verifySignature(
    { secret: (name) => hooks!.secret(name), verifyToken: (token) => tokens.verify(token) },
    hook.verify!,
    {
      headers: request.headers,
      body,
      url: publicUrl === null ? null : publicUrl + url.whole,
      nowMillis: system.nowMillis(),
    },
  )
  if (rejection === null) return
  limits?.failures.charge(peerOf(binding))
  const detail = `${hook.name} of the mount ${mount.name}: ${SIGNATURE_REJECTIONS[rejection]}`
  throw new Fault('SIGNATURE_INVALID', { detail })
}

interface Stored {
  readonly hooks: HookPorts
  readonly mount: StoredMount
  readonly release: Release
  readonly delivery: HookDelivery
}

async function store(
  { system, counts }: Gateway,
  incoming: Incoming,
  { hooks, mount, release, delivery }: Stored,
): Promise<Response> {
  const { requestId, trace, request } = incoming
  const { hook } = delivery
  const invocationId = system.ids.make('ivc')
  incoming.invocationId = invocationId
  const call = { release, hook, context: { requestId, invocationId }, trace }
  const fields = deliveryFields(delivery)
  const event = hook.hasOnce
    ? await hooks.inbox.eventOf({
        ...call,
        arguments: withJson(new Map([['delivery', fields]])),
        signal: request.signal,
      })
    : digestEvent(delivery)
  const scheduledId = system.ids.make('sch')
  const accepted = await hooks.inbox.accept({
    ...call,
    ...hooks.eventIds({ mount: mount.name, route: hook.name, event }),
    mount: mount.name,
    event,
    scheduledId,
    arguments: deliveryArguments(fields, { id: scheduledId, nowMicros: system.nowMicros() }),
  })
  counts.delivered(accepted.replayed)
  const body: HookAccepted = {
    version: 1,
    status: 'accepted',
    requestId,
    deliveryId: accepted.scheduledId as HookAccepted['deliveryId'],
  }
  return Response.json(body, { status: 202 })
}
