/** The application origin: Function calls and probes, with exact browser origins. */
import { type Context, Hono } from 'hono'
import type { ComponentHealth } from '../../engine/usage/health.ts'
import { Fault } from '../../errors/fault.ts'
import { andThen, type MaybePromise } from '../../system/maybe-promise.ts'
import type { LogFields } from '../../telemetry/log.ts'
import type { RequestId } from '../../value/ids.ts'
import type { Live, Ready } from '../../wire/health.ts'
import { compressionFor } from '../content-codings.ts'
import { APPLICATION_CODES, errorResponse, toFault } from '../errors.ts'
import { frontPage } from '../front-page.ts'
import { probeResponse } from '../probes.ts'
import type { PeerBinding } from '../rate-limits.ts'
import type { RejectedRequest } from '../rejection-log.ts'
import { countedStatus, type RouteClass } from '../request-counts.ts'
import { type AnswerBody, answerBody } from '../transfers/answers.ts'
import { allowOrigin, originDenied } from './browser-origins.ts'
import { authenticate, chargeBody } from './callers.ts'
import { Call, type CallResponse, invokeInTurn, readEnvelope } from './calls.ts'
import { callerMessage } from './development-targets.ts'
import { endExchange, startSpan } from './exchanges.ts'
import { DOCUMENT_PATH, functionAt } from './functions/paths.ts'
import type { Gateway } from './gateway.ts'
import { type ApplicationBinding, createIncoming, type Incoming } from './incoming.ts'
import { allowedRequests, MUTATING_METHODS, methodsAt } from './methods.ts'
import { answerMounted } from './mounted-requests.ts'
import { isMountPath } from './mounts/mount-urls.ts'
import { invokePlain, readUrlArguments } from './plain-calls.ts'
import type { Realtime } from './realtime/realtime.ts'
import {
  DEVELOPMENT_ROUTES,
  FILE_TRANSFERS,
  FUNCTIONS_DOCUMENT,
  INVOCATIONS,
  type Invocation,
  PLAIN_CALLS,
  PROBES,
  REALTIME,
  UNSENT,
} from './routes.ts'
import { isS3Url } from './s3/requests.ts'
import { answerS3 } from './s3/s3-api.ts'

/** Seconds for which a browser may cache a preflight response. */
const PREFLIGHT_SECONDS = 600
/** The close code of a connection that ended without a close frame (RFC 6455, 7.1.5). */
const NO_CLOSE_FRAME = 1006
const INVOCATION_AT = new Map(INVOCATIONS.map((invocation) => [invocation.path, invocation]))
/** The path of a file transfer. Its handler validates the last segment. */
const FILE_PATH = /^(\/v1\/files\/(?:uploads|downloads|signed-downloads)\/)([^/]+)$/

export interface ApplicationOrigin {
  fetch(request: Request, binding?: Partial<ApplicationBinding>): Response | Promise<Response>
  /** Health of Realtime. */
  health(): ComponentHealth
  /** Requests Realtime clients to reconnect elsewhere. Resolves once all connections are closed. */
  drain(): Promise<void>
  /** Returns whether `fetch` handles HEAD itself. Other HEAD requests run as GET without body. */
  answersHead(request: Request): boolean
  /** Returns the response to a request that the listener rejects. */
  reject(binding: Partial<ApplicationBinding>, fault: Fault): Response
}

/** Mounts the origin. Function calls bypass the router, which would cost 2 us for each call. */
export function mountApplication(gateway: Gateway, realtime: Realtime): ApplicationOrigin {
  const hono = router(gateway, realtime)
  return {
    fetch(request, binding) {
      const { url } = request
      const path = url.slice(url.indexOf('/', url.indexOf('://') + 3))
      const isS3 = isS3Url(url, gateway.s3Host)
      const invocation = isS3 ? undefined : INVOCATION_AT.get(path)
      if (invocation !== undefined && request.method === 'POST') {
        return handleCall(gateway, request, binding, invocation)
      }
      if (isS3 && request.method !== 'OPTIONS') {
        return answerS3(gateway, createIncoming(gateway, request, binding ?? {}))
      }
      if (isMountPath(path)) {
        const incoming = createIncoming(gateway, request, binding ?? {})
        return answerMounted(gateway, incoming, (error) => failRequest(gateway, error, incoming))
      }
      const plain = isS3 ? null : plainCallOf(request.method, path)
      if (plain !== null) return handleCall(gateway, request, binding, plain)
      const transfer = documentOf(gateway, request, path) ?? transferOf(gateway, request, path)
      if (transfer === null) return hono.fetch(request, binding)
      return answerExchange(gateway, request, binding, transfer)
    },
    answersHead: ({ url }) => {
      const { pathname } = new URL(url)
      const isOwn = pathname.startsWith('/v1/files/') || isMountPath(pathname)
      return isS3Url(url, gateway.s3Host) || isOwn
    },
    health: () => realtime.health(),
    drain: () => realtime.drain(),
    reject(binding, fault) {
      const response = rejectRequest(gateway, unreadRequest(gateway, binding), fault)
      gateway.counts.answered(response.status)
      return response
    },
  }
}

function router(gateway: Gateway, realtime: Realtime): Hono {
  const hono = new Hono({ strict: true })
  const counted = ({ req }: Context, response: Response): Response => {
    gateway.counts.answered(response.status)
    allowOrigin(gateway.allowedOrigins, response, req.raw.headers.get('origin'))
    return response
  }
  for (const invocation of INVOCATIONS) {
    // Only calls whose URL has a query or a fragment arrive here, which are rejected.
    hono.post(invocation.path, ({ req, env }) => {
      return handleCall(gateway, req.raw, env as ApplicationBinding, invocation)
    })
  }
  for (const { path, checks } of PROBES) {
    const answered = checks === 'liveness' ? () => probe(gateway, 'live') : readiness
    hono.get(path, async (context) => counted(context, await answered(gateway)))
  }
  for (const { method, path, answer } of DEVELOPMENT_ROUTES) {
    hono.on(method, path, ({ req, env }) => {
      const workspace = req.param('workspace') ?? ''
      return answerExchange(gateway, req.raw, env as ApplicationBinding, {
        route: { path, method },
        routeClass: 'development',
        // A Workspace may be synchronized before anything is served.
        needsService: false,
        answer: (incoming) => answer(gateway, incoming, workspace),
      })
    })
  }
  hono.get(REALTIME.path, ({ req, env }) => {
    return openRealtime(gateway, realtime, req.raw, env as ApplicationBinding)
  })
  // Unknown paths too: after a failed preflight, the browser would hide the 404 of the call.
  hono.options('*', (context) => counted(context, preflight(gateway, context)))
  hono.notFound((context) => {
    const { raw } = context.req
    // The path of the router is decoded, and another path than that of the request.
    const path = new URL(raw.url).pathname
    const page = frontPage(raw, gateway.system.ids.make('req'), 'application')
    if (page !== null) return counted(context, page)
    const allow = methodsAt(path)
    const code = allow === undefined ? 'ROUTE_NOT_FOUND' : 'METHOD_NOT_ALLOWED'
    return counted(context, rejectPath(gateway, context, code, allow))
  })
  return hono
}

/** A call of either form. */
interface Called extends Pick<Invocation, 'path' | 'invoke' | 'unsent' | 'compresses'> {
  readonly method: string
  /** Reads the arguments from the URL; absent where the body has them. */
  readonly readUrl?: typeof readUrlArguments
}

/** Returns the plain call that the request names; null for any other request. */
function plainCallOf(method: string, url: string): Called | null {
  const [path = ''] = url.split('?', 1)
  const route = PLAIN_CALLS.find((each) => each.method === method)
  const name = route === undefined ? null : functionAt(path)
  if (name === null || (method === 'GET' && path === DOCUMENT_PATH)) return null
  return {
    path: route!.path,
    method,
    invoke: (call) => invokePlain(call, name, UNSENT),
    unsent: UNSENT.query,
    compresses: route!.compresses,
    ...(method === 'GET' && { readUrl: readUrlArguments }),
  }
}

async function handleCall(
  gateway: Gateway,
  request: Request,
  binding: Partial<ApplicationBinding> = {},
  invocation: Called,
): Promise<Response> {
  const started = gateway.system.monotonicMillis()
  const origin = request.headers.get('origin')
  const incoming = createIncoming(gateway, request, binding)
  let response: Response
  try {
    const { readUrl } = invocation
    checkOrigin(gateway, origin)
    if (readUrl === undefined) checkUrl(request)
    requireService(gateway)
    const caller = authenticate(gateway, incoming)
    gateway.transfers.turns.called(started)
    if (gateway.traces) startSpan(gateway, incoming, { ...invocation, started })
    const bytes = await (readUrl ?? readEnvelope)(gateway, incoming)
    chargeBody(gateway, caller, bytes.length)
    const invoked = invokeInTurn(new Call(gateway, incoming, caller, bytes), invocation.invoke)
    const answered = invoked instanceof Promise ? await invoked : invoked
    const succeeded = successResponse(gateway, incoming, answered, invocation)
    response = succeeded instanceof Promise ? await succeeded : succeeded
  } catch (error) {
    incoming.bodyMemory?.release()
    response = failRequest(gateway, error, incoming)
  }
  return endExchange(gateway, incoming, { response, origin, started, routeClass: 'call' })
}

/** A request whose handler makes its own response, unlike a call. */
interface Exchange {
  readonly route: { readonly path: string; readonly method: string }
  readonly routeClass: RouteClass
  /** True if the request fails with UNAVAILABLE while no Release is served. */
  readonly needsService: boolean
  /** True if the handler reads the query of the URL. Any other URL with one is rejected. */
  readonly takesQuery?: boolean
  readonly answer: (incoming: Incoming) => Promise<Response>
}

/** Returns the document of Functions, where the request names it; null for any other request. */
function documentOf(gateway: Gateway, { method }: Request, url: string): Exchange | null {
  const { path, answer } = FUNCTIONS_DOCUMENT
  if (method !== 'GET' || url.split('?', 1)[0] !== path) return null
  return {
    route: FUNCTIONS_DOCUMENT,
    routeClass: 'call',
    needsService: true,
    takesQuery: true,
    answer: (incoming) => answer(gateway, incoming),
  }
}

/** Returns the file transfer that the request names; null for any other request. */
function transferOf(gateway: Gateway, { method }: Request, url: string): Exchange | null {
  const [, prefix, id] = FILE_PATH.exec(url.split('?', 1)[0]!) ?? []
  const route = FILE_TRANSFERS.find((each) => {
    return each.method === method && each.path.slice(0, each.path.indexOf(':')) === prefix
  })
  if (route === undefined || id === undefined) return null
  return {
    route,
    routeClass: method === 'PUT' ? 'upload' : 'download',
    needsService: true,
    answer: (incoming) => route.transfer(gateway, incoming, id),
  }
}

async function answerExchange(
  gateway: Gateway,
  request: Request,
  binding: Partial<ApplicationBinding> = {},
  { route, routeClass, needsService, takesQuery, answer }: Exchange,
): Promise<Response> {
  const started = gateway.system.monotonicMillis()
  const origin = request.headers.get('origin')
  const incoming = createIncoming(gateway, request, binding)
  let response: Response
  try {
    checkOrigin(gateway, origin)
    if (takesQuery !== true) checkUrl(request)
    if (needsService) requireService(gateway)
    response = await answer(incoming)
    const { headers } = response
    for (const [name, value] of Object.entries(commonHeaders(incoming.requestId))) {
      headers.set(name, value)
    }
  } catch (error) {
    response = failRequest(gateway, error, incoming)
  }
  // The handler checks the grant when it uses it, so only an admitted exchange has a span.
  const isAdmitted = countedStatus(request, response.status) < 400
  if (gateway.traces && isAdmitted) startSpan(gateway, incoming, { ...route, started })
  return endExchange(gateway, incoming, { response, origin, started, routeClass })
}

/** Opens a Realtime connection. The listener ignores the response of one that it has upgraded. */
function openRealtime(
  gateway: Gateway,
  realtime: Realtime,
  request: Request,
  binding: Partial<ApplicationBinding> = {},
): Response {
  const origin = request.headers.get('origin')
  const incoming = createIncoming(gateway, request, binding)
  let response: Response
  try {
    checkRequest(gateway, request, origin)
    const upgrade = realtime.upgrade(incoming)
    if (binding.upgrade?.(upgrade) !== true) {
      upgrade.session.closed(NO_CLOSE_FRAME)
      throw new Fault('REQUEST_INVALID', { detail: 'sec-websocket-key' })
    }
    response = new Response(null, { status: 101 })
  } catch (error) {
    response = failRequest(gateway, error, incoming)
    if (response.status === 426) {
      response.headers.set('upgrade', 'websocket')
      response.headers.set('sec-websocket-version', '13')
    }
    allowOrigin(gateway.allowedOrigins, response, origin)
  }
  gateway.counts.answered(response.status)
  return response
}

function isReady({ engine, unservedReason }: Gateway): boolean {
  return engine.ready() && unservedReason() === null
}

/** Checks origin, URL and readiness. */
function checkRequest(gateway: Gateway, request: Request, origin: string | null): void {
  checkOrigin(gateway, origin)
  checkUrl(request)
  requireService(gateway)
}

function checkOrigin({ allowedOrigins }: Gateway, origin: string | null): void {
  if (origin !== null && !allowedOrigins.has(origin)) throw originDenied(origin)
}

/** Rejects query parameters, since logs of proxies show URLs. */
function checkUrl({ url }: Request): void {
  if (!url.includes('?')) return
  throw new Fault('REQUEST_INVALID', { detail: 'query parameters are not accepted' })
}

function requireService(gateway: Gateway): void {
  if (isReady(gateway)) return
  const detail = gateway.unservedReason() ?? 'the engine is not ready yet'
  throw new Fault('UNAVAILABLE', { detail })
}

/** Headers of every response; errors.ts adds those of failures. */
function commonHeaders(requestId: RequestId) {
  return { 'x-content-type-options': 'nosniff', 'x-service-request-id': requestId }
}

function successResponse(
  { transfers }: Gateway,
  incoming: Incoming,
  response: CallResponse,
  { unsent: ofRoute, compresses }: Pick<Called, 'unsent' | 'compresses'>,
): MaybePromise<Response> {
  const { body, compressible, unsent = ofRoute } = response
  const compression =
    compresses && compressible !== undefined
      ? compressionFor(incoming.request, compressible.forms)
      : null
  return andThen(answerBody(body, transfers, incoming, compression), (answer) => {
    if (answer !== null) return answered(incoming, response, answer)
    const detail = 'the memory for unsent responses is exhausted'
    throw new Fault(unsent.code, { retryable: unsent.retryable, detail })
  })
}

function answered(
  { requestId }: Incoming,
  response: CallResponse,
  { body, headers }: AnswerBody,
): Response {
  return new Response(body, {
    headers: {
      ...commonHeaders(requestId),
      ...headers,
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      'x-service-invocation-id': response.invocationId,
      'x-service-release-id': response.releaseId,
    },
  })
}

/** Returns whether the request was rejected before its Function ran. */
function isRejection({ code, status, cause }: Fault, { caller }: Incoming): boolean {
  if (status < 500) return !code.startsWith('APP_')
  // No Release is served: unauthenticated peers can cause this, so its records are bounded too.
  return code === 'BUSY' || (code === 'UNAVAILABLE' && caller === null && cause === undefined)
}

function failRequest(gateway: Gateway, error: unknown, incoming: Incoming): Response {
  const { request, requestId, invocationId, caller } = incoming
  const fault = toFault(error, APPLICATION_CODES)
  incoming.trace?.set({ 'svc.error.code': fault.code })
  if (isRejection(fault, incoming)) return rejectRequest(gateway, incoming, fault)
  gateway.counts.failed(fault)
  const entry: LogFields = {
    requestId,
    invocationId: invocationId ?? undefined,
    releaseId: incoming.releaseId ?? undefined,
    function: incoming.function ?? undefined,
    clientId: caller?.clientId,
    credentialId: caller?.credentialId,
    ...incoming.trace?.logFields,
    errorCode: fault.code,
    detail: fault.detail,
    error: fault.cause,
  }
  const level = countedStatus(request, fault.status) >= 500 ? 'error' : 'debug'
  gateway.log[level]('invocation.failed', entry)
  return failureResponse(incoming, fault)
}

type FailedRequest = RejectedRequest & Partial<Pick<Incoming, 'target'>>

/** Returns the response to a rejected request, and logs the rule that it broke. */
function rejectRequest(gateway: Gateway, request: FailedRequest, fault: Fault): Response {
  gateway.counts.failed(fault)
  gateway.rejections.add(request, fault)
  return failureResponse(request, fault)
}

function failureResponse(request: FailedRequest, fault: Fault): Response {
  const { requestId, invocationId, target = null } = request
  const message = callerMessage(fault, target)
  const response = errorResponse(fault, requestId, APPLICATION_CODES, message)
  if (invocationId) response.headers.set('x-service-invocation-id', invocationId)
  // The path of a Function has GET for Queries alone.
  if (fault.code === 'METHOD_NOT_ALLOWED') response.headers.set('allow', MUTATING_METHODS)
  return response
}

/** Creates the log subject of a request whose key was not read: only its peer is known. */
function unreadRequest({ system }: Gateway, binding: unknown): RejectedRequest {
  return { requestId: system.ids.make('req'), binding: (binding ?? {}) as PeerBinding }
}

function rejectPath(
  gateway: Gateway,
  context: Context,
  code: 'METHOD_NOT_ALLOWED' | 'ROUTE_NOT_FOUND',
  allow?: string,
): Response {
  const response = rejectRequest(gateway, unreadRequest(gateway, context.env), new Fault(code))
  if (allow !== undefined) response.headers.set('allow', allow)
  return response
}

function preflight(gateway: Gateway, context: Context): Response {
  const origin = context.req.raw.headers.get('origin')
  const request = unreadRequest(gateway, context.env)
  if (origin === null || !gateway.allowedOrigins.has(origin)) {
    return rejectRequest(gateway, request, originDenied(origin))
  }
  const headers = new Headers({
    ...commonHeaders(request.requestId),
    ...allowedRequests(context.req.raw, context.req.path, isS3Url(context.req.url, gateway.s3Host)),
    'access-control-max-age': String(PREFLIGHT_SECONDS),
  })
  return new Response(null, { status: 204, headers })
}

/** Checks Releases and documents too. Calls skip this check: each reports its own failure. */
async function readiness(gateway: Gateway): Promise<Response> {
  const canServe = isReady(gateway) && gateway.canServe()
  const ready = canServe && (await gateway.engine.canReadDocuments())
  return probe(gateway, ready ? 'ready' : 'unavailable')
}

function probe({ system }: Gateway, status: (Live | Ready)['status']): Response {
  return probeResponse(system.ids.make('req'), status)
}
