/** The application origin: Function calls and probes, with exact browser origins. */
import { type Context, Hono } from 'hono'
import { Fault } from '../../errors/fault.ts'
import type { LogFields } from '../../telemetry/log.ts'
import type { RequestId } from '../../value/ids.ts'
import { APPLICATION_CODES, errorResponse, toFault } from '../errors.ts'
import type { PeerBinding } from '../rate-limits.ts'
import { answerBody } from '../transfers/answers.ts'
import { authenticate, chargeBody } from './callers.ts'
import type { ApplicationBinding, Gateway, Incoming } from './gateway.ts'
import { Call, type Invoked, invokeInTurn, readEnvelope } from './invoke.ts'
import type { RejectedRequest } from './rejection-log.ts'
import {
  FILE_TRANSFERS,
  type FileTransfer,
  INVOCATIONS,
  type Invocation,
  PROBES,
} from './routes.ts'

/** Seconds that a browser may keep a preflight answer. */
const PREFLIGHT_SECONDS = 600
/** Whoever is gone made the call fail; proxies write 499 for it. It is never sent. */
const CALLER_GONE = 499
const EXPOSED = [
  ...['Retry-After', 'X-Service-Request-Id', 'X-Service-Invocation-Id', 'X-Service-Release-Id'],
  ...['ETag', 'Content-Range', 'Content-Length', 'X-Service-File-Id'],
].join(', ')
/** Headers that pages may send. */
const REQUEST_HEADERS = [
  ...['Content-Type', 'Accept', 'Authorization', 'X-Service-Key', 'X-Service-Affinity'],
  ...['Range', 'If-Range', 'If-None-Match', 'If-Match'],
].join(', ')

const INVOCATION_AT = new Map(INVOCATIONS.map((invocation) => [invocation.path, invocation]))
/** Methods of each path, for the answer to any other. */
const ALLOW: ReadonlyMap<string, string> = new Map(
  [...INVOCATIONS, ...PROBES].map(({ path, method }) => [path, `${method}, OPTIONS`]),
)
/** The path of a transfer of a file, whose ID its handler checks. */
const FILE_PATH = /^(\/v1\/files\/(?:uploads|downloads)\/)([^/]+)$/

export interface ApplicationOrigin {
  fetch(request: Request, binding?: Partial<ApplicationBinding>): Response | Promise<Response>
  /** Whether `fetch` answers the HEAD request itself, rather than as a GET without its body. */
  answersHead(request: Request): boolean
  /** Answers a request that the listener rejects. */
  reject(binding: Partial<ApplicationBinding>, fault: Fault): Response
}

/** Calls of Functions go straight to their handler: a router would cost each of them 2 us. */
export function mountApplication(gateway: Gateway): ApplicationOrigin {
  const hono = router(gateway)
  return {
    fetch(request, binding) {
      const { url } = request
      const path = url.slice(url.indexOf('/', url.indexOf('://') + 3))
      const invocation = INVOCATION_AT.get(path)
      if (invocation !== undefined && request.method === 'POST') {
        return answer(gateway, request, binding, invocation)
      }
      const transfer = transferOf(request, path)
      if (transfer === null) return hono.fetch(request, binding)
      return answerTransfer(gateway, request, binding, transfer)
    },
    answersHead: (request) => new URL(request.url).pathname.startsWith('/v1/files/'),
    reject(binding, fault) {
      const response = rejected(gateway, unreadRequest(gateway, binding), fault)
      gateway.counts.answered(response.status)
      return response
    },
  }
}

function router(gateway: Gateway): Hono {
  const hono = new Hono({ strict: true })
  const counted = ({ req }: Context, response: Response): Response => {
    gateway.counts.answered(response.status)
    allowOrigin(gateway, response, req.raw.headers.get('origin'))
    return response
  }
  for (const invocation of INVOCATIONS) {
    // Those whose URL has more than this path.
    hono.post(invocation.path, ({ req, env }) => {
      return answer(gateway, req.raw, env as ApplicationBinding, invocation)
    })
  }
  for (const { path, asks } of PROBES) {
    const answered = asks === 'liveness' ? () => probe(gateway, 200, 'live') : readiness
    hono.get(path, async (context) => counted(context, await answered(gateway)))
  }
  // Of any path: a browser tells nobody what became of a call whose preflight was not found.
  hono.options('*', (context) => counted(context, preflight(gateway, context)))
  hono.notFound((context) => {
    const { path } = context.req
    const allow = ALLOW.get(path) ?? methodsOfFiles(path)
    const code = allow === undefined ? 'ROUTE_NOT_FOUND' : 'METHOD_NOT_ALLOWED'
    return counted(context, refuse(gateway, context, code, allow))
  })
  return hono
}

async function answer(
  gateway: Gateway,
  request: Request,
  binding: Partial<ApplicationBinding> = {},
  invocation: Invocation,
): Promise<Response> {
  const origin = request.headers.get('origin')
  const incoming = newIncoming(gateway, request, binding)
  let response: Response
  try {
    checkRequest(gateway, request, origin)
    const caller = authenticate(gateway, incoming)
    const bytes = await readEnvelope(gateway, incoming)
    chargeBody(gateway, caller, bytes.length)
    const invoked = invokeInTurn(new Call(gateway, incoming, caller, bytes), invocation.invoke)
    const answered = invoked instanceof Promise ? await invoked : invoked
    response = rendered(gateway, incoming, answered, invocation)
  } catch (error) {
    incoming.bodyMemory?.release()
    response = failed(gateway, error, incoming)
  }
  allowOrigin(gateway, response, origin)
  const status = countedStatus(request, response.status)
  gateway.counts.answered(status)
  if (incoming.caller !== null) gateway.keyUsage.answered(incoming.caller, status)
  return response
}

interface TransferCall {
  readonly route: FileTransfer
  readonly id: string
}

/** Returns the transfer that is requested, with or without a query; null for anything else. */
function transferOf({ method }: Request, url: string): TransferCall | null {
  const [, prefix, id] = FILE_PATH.exec(url.split('?', 1)[0]!) ?? []
  const route = FILE_TRANSFERS.find((each) => {
    return each.method === method && each.path.slice(0, each.path.indexOf(':')) === prefix
  })
  return route === undefined || id === undefined ? null : { route, id }
}

async function answerTransfer(
  gateway: Gateway,
  request: Request,
  binding: Partial<ApplicationBinding> = {},
  { route, id }: TransferCall,
): Promise<Response> {
  const origin = request.headers.get('origin')
  const incoming = newIncoming(gateway, request, binding)
  let response: Response
  try {
    checkRequest(gateway, request, origin)
    response = await route.transfer(gateway, incoming, id)
    const { headers } = response
    for (const [name, value] of Object.entries(commonHeaders(incoming.requestId))) {
      headers.set(name, value)
    }
  } catch (error) {
    response = failed(gateway, error, incoming)
  }
  allowOrigin(gateway, response, origin)
  gateway.counts.answered(countedStatus(request, response.status))
  return response
}

function newIncoming(
  { system }: Gateway,
  request: Request,
  binding: Partial<ApplicationBinding>,
): Incoming {
  return {
    request,
    requestId: system.ids.make('req'),
    binding,
    caller: null,
    bodyMemory: null,
    invocationId: null,
    releaseId: null,
    function: null,
  }
}

/** What an answer counts as: a failure of the server only where its caller is still there. */
function countedStatus(request: Request, status: number): number {
  return status >= 500 && request.signal.aborted ? CALLER_GONE : status
}

function isReady({ engine, serving }: Gateway): boolean {
  return engine.ready() && serving()
}

/** No parameter belongs in the URL: it would end in logs. */
function checkRequest(gateway: Gateway, request: Request, origin: string | null): void {
  if (origin !== null && !gateway.allowedOrigins.has(origin)) throw originDenied(origin)
  if (request.url.includes('?')) {
    throw new Fault('REQUEST_INVALID', { detail: 'query parameters are not accepted' })
  }
  if (!isReady(gateway)) throw new Fault('UNAVAILABLE', { detail: 'nothing is served yet' })
}

/** Of every answer; those of failures are in errors.ts. */
function commonHeaders(requestId: RequestId) {
  return { 'x-content-type-options': 'nosniff', 'x-service-request-id': requestId }
}

function rendered(
  { transfers }: Gateway,
  incoming: Incoming,
  answer: Invoked,
  { unsent }: Invocation,
): Response {
  const body = answerBody(answer.body, transfers, incoming)
  if (body === null) {
    const detail = 'unsent responses have no room for another'
    throw new Fault(unsent.code, { retryable: unsent.retryable, detail })
  }
  return new Response(body, {
    headers: {
      ...commonHeaders(incoming.requestId),
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      'x-service-invocation-id': answer.invocationId,
      'x-service-release-id': answer.releaseId,
    },
  })
}

/** An origin as a browser sends it; any other text may be a secret in the wrong place. */
const BROWSER_ORIGIN =
  /^(?:null|[a-z][a-z0-9+.-]{0,31}:\/\/(?:[a-z0-9-]{1,63}\.){0,8}[a-z0-9-]{1,63}(?::[0-9]{1,5})?)$/

function originDenied(origin: string | null): Fault {
  const isShown = origin !== null && BROWSER_ORIGIN.test(origin)
  const which = isShown ? `the origin ${origin}` : 'the origin'
  const detail = `${which} is not listed in SERVICE_PRODUCT_ALLOWED_ORIGINS`
  return new Fault('ORIGIN_DENIED', { detail })
}

/** Returns whether the request was turned away, rather than failed or answered by its Function. */
function isRejection({ code, status, cause }: Fault, { caller }: Incoming): boolean {
  if (status < 500) return !code.startsWith('APP_')
  // Nothing is served: anybody may ask, so these too have a bound.
  return code === 'BUSY' || (code === 'UNAVAILABLE' && caller === null && cause === undefined)
}

function failed(gateway: Gateway, error: unknown, incoming: Incoming): Response {
  const { request, requestId, invocationId, caller } = incoming
  const fault = toFault(error, APPLICATION_CODES)
  if (isRejection(fault, incoming)) return rejected(gateway, incoming, fault)
  gateway.counts.failed(fault)
  const entry: LogFields = {
    requestId,
    invocationId: invocationId ?? undefined,
    releaseId: incoming.releaseId ?? undefined,
    function: incoming.function ?? undefined,
    clientId: caller?.clientId,
    credentialId: caller?.credentialId,
    errorCode: fault.code,
    detail: fault.detail,
    error: fault.cause,
  }
  const level = countedStatus(request, fault.status) >= 500 ? 'error' : 'debug'
  gateway.log[level]('invocation.failed', entry)
  return failureResponse(incoming, fault)
}

/** Answers a request that broke a rule, and leaves a record of which. */
function rejected(gateway: Gateway, request: RejectedRequest, fault: Fault): Response {
  gateway.counts.failed(fault)
  gateway.rejections.add(request, fault)
  return failureResponse(request, fault)
}

function failureResponse({ requestId, invocationId }: RejectedRequest, fault: Fault): Response {
  const response = errorResponse(fault, requestId, APPLICATION_CODES)
  if (invocationId) response.headers.set('x-service-invocation-id', invocationId)
  return response
}

/** A request of which nothing but its peer is known. */
function unreadRequest({ system }: Gateway, binding: unknown): RejectedRequest {
  return { requestId: system.ids.make('req'), binding: (binding ?? {}) as PeerBinding }
}

function refuse(
  gateway: Gateway,
  context: Context,
  code: 'METHOD_NOT_ALLOWED' | 'ROUTE_NOT_FOUND',
  allow?: string,
): Response {
  const response = rejected(gateway, unreadRequest(gateway, context.env), new Fault(code))
  if (allow !== undefined) response.headers.set('allow', allow)
  return response
}

/** Returns the methods of a path of files; undefined for any other path. */
function methodsOfFiles(path: string): string | undefined {
  const [, prefix] = FILE_PATH.exec(path) ?? []
  if (prefix === undefined) return undefined
  const methods = FILE_TRANSFERS.filter((each) => each.path.startsWith(prefix))
  return [...methods.map(({ method }) => method), 'OPTIONS'].join(', ')
}

function preflight(gateway: Gateway, context: Context): Response {
  const origin = context.req.raw.headers.get('origin')
  const request = unreadRequest(gateway, context.env)
  if (origin === null || !gateway.allowedOrigins.has(origin)) {
    return rejected(gateway, request, originDenied(origin))
  }
  const headers = new Headers({
    ...commonHeaders(request.requestId),
    'access-control-allow-methods': methodsOfFiles(context.req.path) ?? 'POST',
    'access-control-allow-headers': REQUEST_HEADERS,
    'access-control-max-age': String(PREFLIGHT_SECONDS),
  })
  return new Response(null, { status: 204, headers })
}

/** Lets the pages of a listed origin read the answer, whatever it is. */
function allowOrigin(gateway: Gateway, response: Response, origin: string | null): void {
  if (origin === null || !gateway.allowedOrigins.has(origin)) return
  const { headers } = response
  headers.set('access-control-allow-origin', origin)
  headers.set('access-control-expose-headers', EXPOSED)
  headers.append('vary', 'Origin')
}

/** Calls ask less: what becomes of each is its own answer. */
async function readiness(gateway: Gateway): Promise<Response> {
  const ready = isReady(gateway) && (await gateway.engine.canReadDocuments())
  return ready ? probe(gateway, 200, 'ready') : probe(gateway, 503, 'unavailable')
}

function probe({ system }: Gateway, status: 200 | 503, text: string): Response {
  const headers = { ...commonHeaders(system.ids.make('req')), 'cache-control': 'no-store' }
  return Response.json({ status: text }, { status, headers })
}
