/**
 * The steps of every management request, in this order: request ID, rate, headers, authentication,
 * scope of the URL, capability, configured Environment, parameters, Operation ID, body, handler,
 * rendering. Grants are checked before any access to the Product, so that a 404 tells an
 * unauthorized caller nothing.
 */
import { type Context, Hono } from 'hono'
import { Fault } from '../../errors/fault.ts'
import {
  type Actor,
  type RecordedActor,
  requireCapability,
  requireCapabilitySomewhere,
} from '../../identity/actor.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Span, Traces } from '../../telemetry/traces/spans.ts'
import { isId, type RequestId } from '../../value/ids.ts'
import { environmentScope } from '../../value/scope.ts'
import { BUILD_VERSION } from '../../value/version.ts'
import { ANY_MEDIA_TYPE, JSON_MEDIA_TYPE } from '../../wire/media-types.ts'
import { type ManagementAccess, VERSION_HEADER } from '../../wire/operations/operation.ts'
import { AuthenticationAttempt } from '../authentication-attempts.ts'
import { compressionFor } from '../content-codings.ts'
import { errorResponse, MANAGEMENT_CODES, toFault } from '../errors.ts'
import { frontPage } from '../front-page.ts'
import { preferredType } from '../media-types.ts'
import { routePattern } from '../parameters.ts'
import { type ManagementLimits, type PeerBinding, peerOf } from '../rate-limits.ts'
import { type RejectionLog, sessionFields } from '../rejection-log.ts'
import type { RequestCounts } from '../request-counts.ts'
import { endTrace, startTrace } from '../request-traces.ts'
import { answerBody } from '../transfers/answers.ts'
import { lineStream } from '../transfers/line-streams.ts'
import type { Sender } from '../transfers/senders.ts'
import { Transfers } from '../transfers/transfers.ts'
import {
  checkParams,
  readHeaders,
  readOperationId,
  readQuery,
  readRouteBody,
  requireEncodedPath,
} from './inputs.ts'
import type { ConnectionTimes, ManagementCore, Reply, Route } from './route.ts'

const ACCESS_TOKEN = /^Bearer (rk_at_v1_[A-Za-z0-9_-]{43})$/
/** Bytes of the Authorization header (contract/management.md, Limits). */
const AUTHORIZATION_BYTES_MAX = 16 * 1024
/** A longer wait for a body makes the authorization of the request be checked again. */
const BODY_MILLIS_MAX = 1_000

export interface MountOptions<A> {
  readonly app: A & ManagementCore
  readonly system: System
  readonly log: Logger
  readonly rejections: Pick<RejectionLog, 'add'>
  readonly routes: readonly Route<A>[]
  /** Null disables rate limits. */
  readonly limits?: ManagementLimits | null
  /** Shared with the application origin. By default, this origin has its own budgets. */
  readonly transfers?: Transfers
  readonly counts?: RequestCounts
  /** Null or absent where nothing is traced. */
  readonly traces?: Traces | null
}

type Mounted<A> = MountOptions<A> & { readonly transfers: Transfers }

/** The management origin. Every failure has the error envelope. */
export interface ManagementOrigin {
  fetch(request: Request, binding?: PeerBinding): Response | Promise<Response>
  /** Returns the response to a request that the listener rejects. */
  reject(binding: PeerBinding, fault: Fault): Response
}

export function mountManagement<A>(input: MountOptions<A>): ManagementOrigin {
  const options = { ...input, transfers: input.transfers ?? new Transfers(input.system) }
  const hono = new Hono({ strict: true })
  const methodsByPath = Map.groupBy(options.routes, (route) => route.path)
  for (const [path, routes] of methodsByPath) {
    const pattern = routePattern(path)
    for (const route of routes) {
      hono.on(route.method, pattern, (context) => handleRequest(options, context, route))
    }
    const allow = routes.map((route) => route.method).join(', ')
    hono.all(pattern, (context) =>
      rejectPath(options, context, 'PLATFORM_METHOD_NOT_ALLOWED', allow),
    )
  }
  hono.notFound((context) => {
    const page = frontPage(context.req.raw, input.system.ids.make('req'), 'management')
    if (page === null) return rejectPath(options, context, 'PLATFORM_NOT_FOUND')
    input.counts?.answered(page.status)
    return page
  })
  return {
    fetch: (request, binding) => hono.fetch(request, binding),
    reject: (binding, fault) => rejectUnread(options, binding, fault),
  }
}

function rejectPath<A>(
  options: MountOptions<A>,
  { env }: Context,
  code: 'PLATFORM_METHOD_NOT_ALLOWED' | 'PLATFORM_NOT_FOUND',
  allow?: string,
): Response {
  const response = rejectUnread(options, env as PeerBinding | undefined, new Fault(code))
  if (allow !== undefined) response.headers.set('allow', allow)
  return response
}

/** Rejects a request of which only the peer is known. */
function rejectUnread<A>(
  { system, rejections, counts }: MountOptions<A>,
  binding: PeerBinding | undefined,
  fault: Fault,
): Response {
  const requestId = system.ids.make('req')
  counts?.failed(fault)
  rejections.add({ requestId, binding }, fault)
  const response = errorResponse(fault, requestId, MANAGEMENT_CODES)
  counts?.answered(response.status)
  return response
}

async function handleRequest<A>(
  options: Mounted<A>,
  context: Context,
  route: Route<A>,
): Promise<Response> {
  const { system } = options
  const requestId = system.ids.make('req')
  const started = system.monotonicMillis()
  const binding = context.env as PeerBinding | undefined
  const attempt = new AuthenticationAttempt(options.limits ?? null, peerOf(binding))
  const known = { requestId, started, attempt, binding }
  const received: Received = {
    ...known,
    method: route.method,
    route: route.path,
    caller: null,
    session: null,
    trace: null,
    bodyMemory: null,
  }
  let status = 500
  let fault: Fault | null = null
  try {
    const reply = await runSteps(options, context, route, received)
    const response = await render(reply, route, options.transfers, received, context.req.raw)
    status = response.status
    return withVersion(response, received)
  } catch (error) {
    fault = attempt.failed(faultOf(error, context.req.raw.signal))
    options.counts?.failed(fault)
    status = fault.status
    return withVersion(errorResponse(fault, requestId, MANAGEMENT_CODES), received)
  } finally {
    received.bodyMemory?.release()
    const millis = system.monotonicMillis() - started
    const routeClass = route.method === 'GET' ? 'managementRead' : 'managementChange'
    options.counts?.answered(status, routeClass, millis)
    logRequest(options, received, { status, fault, millis })
    endTrace(received.trace, status, fault?.code)
  }
}

/** Names the version to authenticated operators only: strangers choose their attack by it. */
function withVersion(response: Response, { caller }: Received): Response {
  if (caller !== null) response.headers.set(VERSION_HEADER, BUILD_VERSION)
  return response
}

interface Outcome {
  readonly status: number
  /** Null for a request that did not fail. */
  readonly fault: Fault | null
  readonly millis: number
}

/**
 * Logs a request with a session, or its failure. Requests without a session need no authorization
 * and have no bound, so they leave nothing but the bounded records of rejections.
 */
function logRequest<A>(
  { log, rejections }: MountOptions<A>,
  received: Received,
  { status, fault, millis }: Outcome,
): void {
  const { requestId, binding, method, route, session, trace } = received
  if (fault !== null && (session === null || status < 500)) {
    rejections.add({ requestId, binding, method, route, session, trace }, fault)
    return
  }
  if (session === null) return
  const errorCode = fault?.code
  if (fault !== null) {
    log.error('http.failed', { requestId, errorCode, detail: fault.detail, error: fault.cause })
  }
  log.info('http.request', {
    requestId,
    method,
    route,
    status,
    errorCode,
    durationMicros: Math.round(millis * 1000),
    ...sessionFields(session),
    ...trace?.logFields,
  })
}

/**
 * Maps an error to a Fault. A client that disconnects while it sends the body is not a bug here.
 */
function faultOf(error: unknown, { aborted }: AbortSignal): Fault {
  const isDisconnected = aborted && error instanceof DOMException && error.name === 'AbortError'
  return isDisconnected
    ? new Fault(MANAGEMENT_CODES.invalid, {
        detail: 'the client disconnected while it sent the body',
        cause: error,
      })
    : toFault(error, MANAGEMENT_CODES)
}

/** State of one request. */
interface Received extends Sender {
  readonly requestId: RequestId
  readonly method: string
  readonly route: string
  /** Monotonic milliseconds. */
  readonly started: number
  readonly attempt: AuthenticationAttempt
  caller: Sender['caller']
  session: RecordedActor | null
  /** The span of the request, once its session is authenticated; null if nothing is traced. */
  trace: Span | null
}

async function runSteps<A>(
  { app, system, transfers, traces }: Mounted<A>,
  context: Context,
  route: Route<A>,
  received: Received,
): Promise<Reply> {
  const { requestId, attempt } = received
  const { rate, recognize } = route
  if (rate === 'peer' && recognize === null) attempt.asPeer()
  const request = context.req.raw
  checkAccept(request, route)
  route.admit?.({ app, request })
  let actor = route.access.kind === 'public' ? null : await authenticate(app, request, attempt)
  if (actor !== null) {
    const { operatorId, sessionId, purpose } = actor
    received.caller = { credentialId: sessionId }
    received.session = { operatorId, sessionId, purpose }
    received.trace = startTrace(traces, { path: route.path, headers: request.headers, ...received })
  }
  requireEncodedPath(request)
  const params = context.req.param() as Record<string, string>
  checkAccess(app, route.access, actor, params)
  checkParams(params)
  const query = readQuery(request, route)
  const headers = readHeaders(request, route)
  const operationId = readOperationId(request, route)!
  const authorized = <T>(work: (current: Actor) => T): Promise<T> =>
    app.sessions.whileAuthorized(actor!, (current) => {
      checkAccess(app, route.access, current, params)
      return work(current)
    })
  const startedAt = system.monotonicMillis()
  const body = await readRouteBody(request, route, transfers, received)
  const isSlow = system.monotonicMillis() - startedAt > BODY_MILLIS_MAX
  if (actor !== null && isSlow) actor = await authorized((current) => current)
  if (recognize !== null) attempt.asCaller(recognize({ app, body }))
  return route.handle({
    app,
    actor: actor!,
    params,
    query,
    headers,
    operationId,
    body,
    request,
    requestId,
    authorized,
    connection: connectionOf(received.binding),
    pace: transfers.pace,
    turns: transfers.turns,
    trace: received.trace,
  })
}

/** The listener gives each request more than the peer that limits need. */
function connectionOf(binding: Sender['binding']): ConnectionTimes {
  const { takeTime, returnTime } = (binding ?? {}) as ConnectionTimes
  return {
    ...(takeTime !== undefined && { takeTime: () => takeTime.call(binding) }),
    ...(returnTime !== undefined && { returnTime: () => returnTime.call(binding) }),
  }
}

function checkAccept<A>(request: Request, { mediaTypes }: Route<A>): void {
  if (mediaTypes.includes(ANY_MEDIA_TYPE)) return
  // Every client may ask for JSON: failures have that form on every route.
  const accepted = [...mediaTypes, JSON_MEDIA_TYPE]
  if (preferredType(request.headers.get('accept'), accepted) === null) {
    throw new Fault('PLATFORM_NOT_ACCEPTABLE')
  }
}

/** Throws if two headers arrive joined, since the grammar of a token has no comma. */
async function authenticate(
  app: ManagementCore,
  request: Request,
  attempt: AuthenticationAttempt,
): Promise<Actor> {
  const header = request.headers.get('authorization') ?? ''
  const token = header.length > AUTHORIZATION_BYTES_MAX ? null : ACCESS_TOKEN.exec(header)
  if (token === null)
    throw new Fault('PLATFORM_AUTHENTICATION_FAILED', {
      detail: 'no valid bearer token in the authorization header',
    })
  attempt.asSession(app.sessions.recognize(token[1]!))
  return app.sessions.authenticate(token[1]!)
}

function checkAccess(
  app: ManagementCore,
  access: ManagementAccess,
  actor: Actor | null,
  params: Record<string, string>,
): void {
  if (access.kind === 'environment') checkEnvironment(app, actor!, access.capability, params)
  if (access.kind === 'operator' && access.capability !== null) {
    requireCapabilitySomewhere(actor!, access.capability)
  }
}

function checkEnvironment(
  app: ManagementCore,
  actor: Actor,
  capability: Parameters<typeof requireCapability>[1],
  params: Record<string, string>,
): void {
  const { projectId, environmentId } = params
  if (!isId('prj', projectId) || !isId('env', environmentId)) {
    throw new Fault('PLATFORM_REQUEST_INVALID', {
      violations: [{ path: 'url', rule: 'canonical IDs' }],
    })
  }
  requireCapability(actor, capability, environmentScope(projectId, environmentId))
  const configured = app.environment
  if (configured?.projectId !== projectId || configured.environmentId !== environmentId) {
    throw new Fault('PRODUCT_NOT_FOUND', {
      detail: 'not the configured Environment',
      violations: [{ path: 'environment', rule: 'the Environment that this server serves' }],
    })
  }
}

async function render<A>(
  reply: Reply,
  route: Route<A>,
  transfers: Transfers,
  received: Received,
  request: Request,
): Promise<Response> {
  const headers = new Headers({
    'cache-control': route.cache,
    'x-content-type-options': 'nosniff',
    'x-service-request-id': received.requestId,
  })
  const { status, lines, file, contentType = 'application/json; charset=utf-8' } = reply
  // The answer of the readiness probe, which is not an error.
  if (status === 503) headers.set('retry-after', '1')
  if (file !== undefined) {
    for (const [name, value] of headers) file.headers.set(name, value)
    return file
  }
  if (lines !== undefined) {
    headers.set('content-type', contentType)
    return new Response(lineStream(lines, transfers.pace), { status, headers })
  }
  const text = reply.text ?? (reply.body === undefined ? null : JSON.stringify(reply.body))
  if (text === null) return new Response(null, { status, headers })
  headers.set('content-type', contentType)
  const compression = route.compresses ? compressionFor(request, reply.compressed) : null
  const answer = await answerBody(['', text, ''], transfers, received, compression)
  if (answer !== null) {
    for (const [name, value] of Object.entries(answer.headers)) headers.set(name, value)
    return new Response(answer.body, { status, headers })
  }
  const detail = 'the memory for unsent responses is exhausted'
  throw new Fault(MANAGEMENT_CODES.busy, { detail })
}
