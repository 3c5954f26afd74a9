/**
 * Calls of Functions by the endpoints of `http.ts` (contract/wire.md, HTTP mounts): the steps of a
 * plain call with a mount in place of a key. The Function decides the kind and who may call.
 */
import type { QueryRequest } from '../../../engine/invocations/requests.ts'
import { Fault } from '../../../errors/fault.ts'
import type { CompressedForms } from '../../../system/compression.ts'
import { pathParameters } from '../../../value/http/paths.ts'
import { cachingOf, type HttpAnswer } from '../../../value/http/response-rules.ts'
import type { EndpointManifest } from '../../../value/http/routes.ts'
import type { ClientId, CredentialId } from '../../../value/ids.ts'
import type { FunctionManifest } from '../../../value/manifest.ts'
import type { ValueObject } from '../../../value/values.ts'
import { OPERATION_ID_HEADER } from '../../../wire/idempotency-records.ts'
import { isCompressed, readBody, requireJson } from '../../bodies.ts'
import { compressionFor } from '../../content-codings.ts'
import { APPLICATION_CODES } from '../../errors.ts'
import { answerBody, answerBytes } from '../../transfers/answers.ts'
import { identify } from '../callers.ts'
import { Call, invokeInTurn, type Unsent } from '../calls.ts'
import { startSpan } from '../exchanges.ts'
import type { Gateway } from '../gateway.ts'
import type { ApplicationCaller, Incoming } from '../incoming.ts'
import { isCompressible, runAction, runMutation } from '../invoke.ts'
import { chargeMountBody, type Mounted, takeRate } from '../mounts/mounted-routes.ts'
import { renderResult } from '../mounts/results.ts'
import { INTEGERS_HEADER, integersOf, operationIdOf } from '../plain-calls.ts'
import { UNSENT } from '../routes.ts'
import { parseBody, readArguments } from './endpoint-arguments.ts'

/** Methods whose requests have no body. */
const BODILESS: readonly string[] = ['GET', 'HEAD']

/** A response that is not sent yet. */
interface Answer {
  readonly content: HttpAnswer
  /** True if the response may be compressed. */
  readonly compresses: boolean
  /** The compressed forms that are kept; null for none. */
  readonly forms: CompressedForms | null
  readonly unsent: Unsent
}

/** Returns the caller of all requests of a mount. No Application Client has such names. */
export function mountCaller(mount: string): ApplicationCaller {
  return {
    credentialId: `http:${mount}` as CredentialId,
    clientId: `http:${mount}` as ClientId,
    kind: 'public',
    scopes: ['query', 'mutation', 'action'],
    rateLimit: null,
  }
}

/** Answers a request that has reached an endpoint. Throws what a plain call throws. */
export async function callEndpoint(
  gateway: Gateway,
  incoming: Incoming,
  mounted: Mounted,
  endpoint: EndpointManifest,
): Promise<Response> {
  const { mount, release, started } = mounted
  const definition = release.functions.get(endpoint.function)!
  takeRate(gateway, mount)
  gateway.transfers.turns.called(started)
  if (gateway.traces) {
    const route = { path: '/v1/http/:mount', method: incoming.request.method, started }
    startSpan(gateway, incoming, route, { 'svc.http.mount': mount.name })
  }
  const bytes = await readEndpointBody(gateway, incoming, endpoint)
  chargeMountBody(gateway, mount, bytes.length)
  const call = new Call(gateway, incoming, mountCaller(mount.name), bytes)
  call.definition = definition
  const answer = await invokeInTurn(call, () => {
    return invoke(new EndpointCall(call, mounted, endpoint, definition))
  })
  return send(gateway, incoming, definition, answer)
}

/** Throws MEDIA_TYPE_UNSUPPORTED, LIMIT_EXCEEDED, REQUEST_INVALID and BUSY. */
async function readEndpointBody(
  { transfers }: Gateway,
  incoming: Incoming,
  { maximumBytes }: EndpointManifest,
): Promise<Uint8Array> {
  const { request } = incoming
  const bytesMax = BODILESS.includes(request.method) ? 0 : maximumBytes
  if (isCompressed(request.headers)) {
    throw new Fault('MEDIA_TYPE_UNSUPPORTED', { detail: 'content-encoding: identity' })
  }
  const bytes = await readBody(request, bytesMax, APPLICATION_CODES, transfers, incoming)
  if (bytes.length > 0) requireJson(request, APPLICATION_CODES)
  return bytes
}

/** A call as its URL, headers and body name it. */
class EndpointCall {
  readonly call: Call
  readonly mounted: Mounted
  readonly definition: FunctionManifest
  readonly integers: ReturnType<typeof integersOf>
  /** Null where the caller gave none. */
  readonly operationId: ReturnType<typeof operationIdOf>
  readonly #endpoint: EndpointManifest
  readonly #json: ReturnType<typeof parseBody>

  /** Throws REQUEST_INVALID, and ValidationError for invalid JSON. */
  constructor(
    call: Call,
    mounted: Mounted,
    endpoint: EndpointManifest,
    definition: FunctionManifest,
  ) {
    const { headers } = call.incoming.request
    this.call = call
    this.mounted = mounted
    this.definition = definition
    this.#endpoint = endpoint
    this.integers = integersOf(headers.get(INTEGERS_HEADER))
    this.operationId = operationIdOf(headers.get(OPERATION_ID_HEADER))
    call.operationId = this.operationId
    if (this.operationId !== null && definition.kind !== 'mutation') {
      const detail = `${OPERATION_ID_HEADER}: a ${definition.kind} has no operation ID`
      throw new Fault('REQUEST_INVALID', { detail })
    }
    this.#json = parseBody(call.bytes)
  }

  /** Throws ARGUMENTS_INVALID and REQUEST_INVALID. */
  read(): ValueObject {
    const { path, url } = this.mounted
    return readArguments(this.call.gateway.plainForms, this.definition, {
      path: pathParameters(this.#endpoint.path, path),
      search: url.search,
      json: this.#json,
    })
  }

  /** Identifies the caller, then reads the arguments, as a plain call does. */
  async admit(): Promise<QueryRequest> {
    const { gateway, incoming, caller } = this.call
    const { definition, mounted } = this
    const principal = await identify(gateway, incoming, caller, definition.auth)
    const given = this.read()
    const invocationId = gateway.system.ids.make('ivc')
    incoming.invocationId = invocationId
    return {
      release: mounted.release,
      definition,
      arguments: given,
      principal,
      context: { requestId: incoming.requestId, invocationId },
      trace: incoming.trace,
      signal: this.call,
    }
  }
}

async function invoke(asked: EndpointCall): Promise<Answer> {
  let request: QueryRequest
  try {
    request = await asked.admit()
  } catch (rejection) {
    // The current Release may reject an exact repeat, whose outcome is recorded.
    if (asked.operationId === null) throw rejection
    return mutation(asked, asked.read(), () => {
      throw rejection
    })
  }
  switch (request.definition.kind) {
    case 'query':
      return query(asked, request)
    case 'mutation':
      return mutation(asked, request.arguments, () => request)
    case 'action': {
      const { resultText } = await runAction(asked.call, request)
      return alone(asked, resultText, UNSENT.action)
    }
  }
}

async function query({ call, integers }: EndpointCall, request: QueryRequest): Promise<Answer> {
  const { engine, plainForms } = call.gateway
  const { definition } = request
  const outcome = engine.query(request)
  // Only a cached outcome needs no wait.
  const isCached = !(outcome instanceof Promise)
  const found = await outcome
  let forms: CompressedForms | null = null
  const write = (...given: Parameters<typeof plainForms.write>): string => {
    if (!isCached) return plainForms.write(...given)
    const kept = plainForms.writeCached(...given)
    forms = kept.forms
    return kept.text
  }
  const rendering = { plainForms: { write }, definition, caching: cachingOf(definition), integers }
  const content = renderResult(found.resultText, rendering)
  return { content, compresses: isCompressible(request, found), forms, unsent: UNSENT.query }
}

async function mutation(
  asked: EndpointCall,
  given: ValueObject,
  admit: () => QueryRequest,
): Promise<Answer> {
  const { call, mounted, definition } = asked
  const operationId = asked.operationId ?? call.gateway.system.ids.make('opn')
  const { target } = mounted.mount
  const envelope = { target, function: definition.name, arguments: given, operationId }
  const { resultText } = await runMutation(call, envelope, admit)
  return alone(asked, resultText, UNSENT.mutation)
}

/** Returns a response that no cache keeps and that is not compressed. */
function alone({ call, definition, integers }: EndpointCall, text: string, unsent: Unsent): Answer {
  const { plainForms } = call.gateway
  const content = renderResult(text, { plainForms, definition, caching: 'none', integers })
  return { content, compresses: false, forms: null, unsent }
}

async function send(
  { transfers }: Gateway,
  incoming: Incoming,
  definition: FunctionManifest,
  { content, compresses, forms, unsent }: Answer,
): Promise<Response> {
  const { status, body } = content
  const headers = new Headers([...content.headers])
  if (definition.auth !== 'none') headers.append('vary', 'Authorization')
  if (incoming.request.method === 'HEAD' || body === null) {
    if (body !== null) headers.set('content-length', String(Buffer.byteLength(body)))
    return new Response(null, { status, headers })
  }
  const compression = compresses ? compressionFor(incoming.request, forms) : null
  const sent = await (typeof body === 'string'
    ? answerBody(['', body, ''], transfers, incoming, compression)
    : answerBytes(body, transfers, incoming))
  if (sent === null) {
    const detail = 'the memory for unsent responses is exhausted'
    throw new Fault(unsent.code, { retryable: unsent.retryable, detail })
  }
  for (const [name, value] of Object.entries(sent.headers)) headers.append(name, value)
  return new Response(sent.body, { status, headers })
}
