/**
 * Calls of Functions by name, with arguments and results as ordinary JSON. The Function decides the
 * kind of the call. Every step is that of the tagged routes; only the form differs, which
 * value/plain-json defines.
 */
import type { QueryOutcome } from '../../engine/invocations/queries.ts'
import type { QueryRequest } from '../../engine/invocations/requests.ts'
import { Fault } from '../../errors/fault.ts'
import { binaryBytes } from '../../system/binary-strings.ts'
import type { CompressedForms } from '../../system/compression.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import { isId, type OperationId } from '../../value/ids.ts'
import type { FunctionKind, FunctionManifest } from '../../value/manifest.ts'
import type { IntegerForm } from '../../value/plain-json/encoding.ts'
import { type Json, parseStrictJson, ROUNDED } from '../../value/strict-json.ts'
import type { ValueObject } from '../../value/values.ts'
import { OPERATION_ID_HEADER } from '../../wire/idempotency-records.ts'
import { readBody } from '../bodies.ts'
import { APPLICATION_CODES } from '../errors.ts'
import { admitCall, type DeclaredArguments, type NamedCall } from './call-admission.ts'
import type { Call, CallResponse, Unsent } from './calls.ts'
import type { Gateway } from './gateway.ts'
import type { Incoming } from './incoming.ts'
import {
  actionMetadata,
  contextOf,
  isCompressible,
  mutationMetadata,
  queryMetadata,
  runAction,
  runMutation,
} from './invoke.ts'
import { keptText, type PlainArguments } from './parsed-queries.ts'
import { readParameter } from './url-queries.ts'

export const TARGET_HEADER = 'x-service-target'
export const INTEGERS_HEADER = 'x-service-integers'
export const DEFAULT_TARGET = 'environment:default'
export const ARGUMENTS_PARAMETER = 'arguments'

/** Longest target, as in the envelope of a call. */
const TARGET_CHARACTERS_MAX = 128

/**
 * Characters of the arguments in a URL, decoded. The whole head of a request has at most 16 KiB.
 * @limit Requests: characters of the arguments in the URL of a Query
 */
export const URL_ARGUMENTS_CHARACTERS_MAX = 8 * 1024

/** Failures of calls whose response could not be kept in memory, by kind. */
export interface UnsentByKind {
  readonly query: Unsent
  readonly mutation: Unsent
  readonly action: Unsent
}

/** Reads the arguments of a Query from its URL, as the text of JSON. Throws REQUEST_INVALID. */
export async function readUrlArguments(
  { transfers }: Gateway,
  incoming: Incoming,
): Promise<Uint8Array> {
  const { request } = incoming
  await readBody(request, 0, APPLICATION_CODES, transfers, incoming)
  const text = readParameter(request.url, ARGUMENTS_PARAMETER) ?? '{}'
  if (text.length > URL_ARGUMENTS_CHARACTERS_MAX) {
    const detail = `${ARGUMENTS_PARAMETER}: at most ${URL_ARGUMENTS_CHARACTERS_MAX} characters`
    throw new Fault('LIMIT_EXCEEDED', { detail })
  }
  return new TextEncoder().encode(text)
}

/** A call as its URL, headers and body name it. */
class PlainCall implements NamedCall, DeclaredArguments {
  readonly function: string
  readonly target: string
  readonly integers: IntegerForm
  /** Null where the caller gave none. */
  readonly operationId: OperationId | null
  readonly call: Call
  readonly unsent: UnsentByKind
  /** Name and body, which identify the arguments; null for a body that is too long to be kept. */
  readonly #text: string | null
  readonly #known: PlainArguments | undefined
  /** The body, unless it was parsed before. */
  readonly #json: Json | undefined

  /** Throws REQUEST_INVALID, and ValidationError for invalid JSON. */
  constructor(call: Call, name: string, unsent: UnsentByKind) {
    const { headers } = call.incoming.request
    this.call = call
    this.unsent = unsent
    this.function = name
    this.target = requireShort(headers.get(TARGET_HEADER) ?? DEFAULT_TARGET)
    this.integers = integersOf(headers.get(INTEGERS_HEADER))
    this.operationId = operationIdOf(headers.get(OPERATION_ID_HEADER))
    const body = keptText(call.bytes)
    this.#text = body === null ? null : `${name}\n${body}`
    if (this.#text !== null) this.#known = call.gateway.parsedQueries.find('plain', this.#text)
    if (this.#known === undefined) this.#json = parseStrictJson(call.bytes, ROUNDED)
  }

  get arguments(): DeclaredArguments {
    return this
  }

  /** Throws METHOD_NOT_ALLOWED, REQUEST_INVALID and ARGUMENTS_INVALID. */
  read(definition: FunctionManifest): ValueObject {
    const { gateway, incoming } = this.call
    const { kind } = definition
    if (incoming.request.method === 'GET' && kind !== 'query') {
      throw new Fault('METHOD_NOT_ALLOWED', { detail: `a ${kind} is called by POST` })
    }
    if (this.operationId !== null && kind !== 'mutation') {
      const detail = `${OPERATION_ID_HEADER}: a ${kind} has no operation ID`
      throw new Fault('REQUEST_INVALID', { detail })
    }
    if (this.#known?.definition === definition) return this.#known.arguments
    const given = gateway.plainForms.read(definition, this.#parsed())
    if (this.#text !== null && kind === 'query') {
      gateway.parsedQueries.keep('plain', this.#text, { definition, arguments: given })
    }
    return given
  }

  /** Returns the body as JSON. Another Release may have read it, whose values are its own. */
  #parsed(): Json {
    if (this.#json !== undefined) return this.#json
    const bytes = binaryBytes(this.#text!.slice(this.function.length + 1))
    return parseStrictJson(bytes, ROUNDED)
  }
}

/** Returns the target, whose look-up checks the rest. Throws REQUEST_INVALID. */
export function requireShort(target: string): string {
  if (target.length <= TARGET_CHARACTERS_MAX) return target
  throw new Fault('REQUEST_INVALID', { detail: 'not a target' })
}

/** Throws REQUEST_INVALID. */
export function integersOf(header: string | null): IntegerForm {
  if (header === null) return 'number'
  if (header === 'string') return header
  throw new Fault('REQUEST_INVALID', { detail: `${INTEGERS_HEADER}: string` })
}

/** Returns the operation ID; null for none. Throws REQUEST_INVALID. */
export function operationIdOf(header: string | null): OperationId | null {
  if (header === null || isId('opn', header)) return header
  throw new Fault('REQUEST_INVALID', { detail: `${OPERATION_ID_HEADER}: a canonical opn_ ID` })
}

/**
 * Invokes the Function of this name. Returns without a promise where the result of a Query is
 * cached, as `invokeQuery` does.
 */
export function invokePlain(
  call: Call,
  name: string,
  unsent: UnsentByKind,
): MaybePromise<CallResponse> {
  const plain = new PlainCall(call, name, unsent)
  call.operationId = plain.operationId
  let request: MaybePromise<QueryRequest>
  try {
    request = admitCall(call, plain, null)
  } catch (error) {
    return repeated(plain, error)
  }
  return request instanceof Promise
    ? invokeWhenAdmitted(plain, request)
    : invokeAdmitted(plain, request)
}

async function invokeWhenAdmitted(
  plain: PlainCall,
  admitted: Promise<QueryRequest>,
): Promise<CallResponse> {
  let request: QueryRequest
  try {
    request = await admitted
  } catch (error) {
    return repeated(plain, error)
  }
  return invokeAdmitted(plain, request)
}

function invokeAdmitted(plain: PlainCall, request: QueryRequest): MaybePromise<CallResponse> {
  switch (request.definition.kind) {
    case 'query':
      return query(plain, request)
    case 'mutation':
      return mutation(plain, request.arguments, () => request)
    case 'action':
      return action(plain, request)
  }
}

function query(plain: PlainCall, request: QueryRequest): MaybePromise<CallResponse> {
  const { engine, plainForms } = plain.call.gateway
  const outcome = engine.query(request)
  // Only a cached outcome needs no wait.
  if (outcome instanceof Promise) return queryLater(plain, request, outcome)
  const { definition } = request
  const { text, forms } = plainForms.writeCached(definition, outcome.resultText, plain.integers)
  return queryResponse(plain, request, outcome, { text, forms })
}

async function queryLater(
  plain: PlainCall,
  request: QueryRequest,
  running: Promise<QueryOutcome>,
): Promise<CallResponse> {
  const outcome = await running
  return queryResponse(plain, request, outcome, { text: resultOf(plain, outcome), forms: null })
}

function queryResponse(
  plain: PlainCall,
  request: QueryRequest,
  outcome: QueryOutcome,
  { text, forms }: { readonly text: string; readonly forms: CompressedForms | null },
): CallResponse {
  const { releaseId } = request.release
  const answer = response(plain, { releaseId, text, metadata: queryMetadata(outcome) }, 'query')
  return isCompressible(request, outcome) ? { ...answer, compressible: { forms } } : answer
}

async function action(plain: PlainCall, request: QueryRequest): Promise<CallResponse> {
  const outcome = await runAction(plain.call, request)
  const { releaseId } = request.release
  const text = resultOf(plain, outcome)
  return response(plain, { releaseId, text, metadata: actionMetadata(outcome) }, 'action')
}

/** Answers an exact repeat of a Mutation that the current Release rejects. */
async function repeated(plain: PlainCall, rejection: unknown): Promise<CallResponse> {
  const { definition } = plain.call
  // Only the Function tells what the arguments of a repeat are.
  if (plain.operationId === null || definition?.kind !== 'mutation') throw rejection
  return mutation(plain, plain.read(definition), () => {
    throw rejection
  })
}

async function mutation(
  plain: PlainCall,
  given: ValueObject,
  admit: () => QueryRequest,
): Promise<CallResponse> {
  const { call, target, function: name } = plain
  const operationId = plain.operationId ?? call.gateway.system.ids.make('opn')
  const envelope = { target, function: name, arguments: given, operationId }
  const outcome = await runMutation(call, envelope, admit)
  const { releaseId } = outcome
  const metadata = `${mutationMetadata(outcome)},"operationId":"${operationId}"`
  return response(plain, { releaseId, text: resultOf(plain, outcome), metadata }, 'mutation')
}

function resultOf(
  { call: { gateway, definition }, integers }: PlainCall,
  { resultText }: { readonly resultText: string },
): string {
  return gateway.plainForms.write(definition!, resultText, integers)
}

interface Result {
  readonly releaseId: string
  /** The result in plain JSON. */
  readonly text: string
  readonly metadata: string
}

function response(
  { call, unsent }: PlainCall,
  { releaseId, text, metadata }: Result,
  kind: FunctionKind,
): CallResponse {
  const { requestId, invocationId } = contextOf(call).context
  const head = `{"version":1,"status":"ok","requestId":"${requestId}","result":`
  const body = [head, text, `,"metadata":{${metadata}}}`] as const
  return { releaseId, invocationId, unsent: unsent[kind], body }
}
