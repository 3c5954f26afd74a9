/**
 * Calls of Functions by name, with arguments and results as ordinary JSON. The Function decides the
 * kind of the call. Every step is that of the tagged routes; only the form differs, which
 * value/plain-json defines.
 */
import type { QueryRequest } from '../../engine/invocations/requests.ts'
import { Fault } from '../../errors/fault.ts'
import { isId, type OperationId } from '../../value/ids.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
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
  readonly #call: Call
  readonly #json: Json

  /** Throws REQUEST_INVALID, and ValidationError for invalid JSON. */
  constructor(call: Call, name: string) {
    const { headers } = call.incoming.request
    this.#call = call
    this.function = name
    this.target = requireShort(headers.get(TARGET_HEADER) ?? DEFAULT_TARGET)
    this.integers = integersOf(headers.get(INTEGERS_HEADER))
    this.operationId = operationIdOf(headers.get(OPERATION_ID_HEADER))
    this.#json = parseStrictJson(call.bytes, ROUNDED)
  }

  get arguments(): DeclaredArguments {
    return this
  }

  /** Throws METHOD_NOT_ALLOWED, REQUEST_INVALID and ARGUMENTS_INVALID. */
  read(definition: FunctionManifest): ValueObject {
    const { gateway, incoming } = this.#call
    const { kind } = definition
    if (incoming.request.method === 'GET' && kind !== 'query') {
      throw new Fault('METHOD_NOT_ALLOWED', { detail: `a ${kind} is called by POST` })
    }
    if (this.operationId !== null && kind !== 'mutation') {
      const detail = `${OPERATION_ID_HEADER}: a ${kind} has no operation ID`
      throw new Fault('REQUEST_INVALID', { detail })
    }
    return gateway.plainForms.read(definition, this.#json)
  }
}

/** Returns the target, whose look-up checks the rest. Throws REQUEST_INVALID. */
export function requireShort(target: string): string {
  if (target.length <= TARGET_CHARACTERS_MAX) return target
  throw new Fault('REQUEST_INVALID', { detail: 'not a target' })
}

function integersOf(header: string | null): IntegerForm {
  if (header === null) return 'number'
  if (header === 'string') return header
  throw new Fault('REQUEST_INVALID', { detail: `${INTEGERS_HEADER}: string` })
}

function operationIdOf(header: string | null): OperationId | null {
  if (header === null || isId('opn', header)) return header
  throw new Fault('REQUEST_INVALID', { detail: `${OPERATION_ID_HEADER}: a canonical opn_ ID` })
}

/** Invokes the Function of this name. */
export async function invokePlain(
  call: Call,
  name: string,
  unsent: UnsentByKind,
): Promise<CallResponse> {
  const plain = new PlainCall(call, name)
  call.operationId = plain.operationId
  let request: QueryRequest
  try {
    request = await admitCall(call, plain, null)
  } catch (error) {
    return repeated(call, plain, unsent.mutation, error)
  }
  switch (request.definition.kind) {
    case 'query':
      return query(call, plain, request, unsent.query)
    case 'mutation':
      return mutation(call, plain, unsent.mutation, request.arguments, () => request)
    case 'action': {
      const outcome = await runAction(call, request)
      const result = resultOf(call, plain, outcome.resultText)
      const { releaseId } = request.release
      return response(call, releaseId, result, actionMetadata(outcome), unsent.action)
    }
  }
}

async function query(
  call: Call,
  { integers }: PlainCall,
  request: QueryRequest,
  unsent: Unsent,
): Promise<CallResponse> {
  const { engine, plainForms } = call.gateway
  const outcome = engine.query(request)
  // Only a cached outcome needs no wait.
  const isCached = !(outcome instanceof Promise)
  const found = await outcome
  const { definition } = request
  const { text, forms } = isCached
    ? plainForms.writeCached(definition, found.resultText, integers)
    : { text: plainForms.write(definition, found.resultText, integers), forms: null }
  const answer = response(call, request.release.releaseId, text, queryMetadata(found), unsent)
  return isCompressible(request, found) ? { ...answer, compressible: { forms } } : answer
}

/** Answers an exact repeat of a Mutation that the current Release rejects. */
async function repeated(
  call: Call,
  plain: PlainCall,
  unsent: Unsent,
  rejection: unknown,
): Promise<CallResponse> {
  const { definition } = call
  // Only the Function tells what the arguments of a repeat are.
  if (plain.operationId === null || definition?.kind !== 'mutation') throw rejection
  return mutation(call, plain, unsent, plain.read(definition), () => {
    throw rejection
  })
}

async function mutation(
  call: Call,
  plain: PlainCall,
  unsent: Unsent,
  given: ValueObject,
  admit: () => QueryRequest,
): Promise<CallResponse> {
  const { target, function: name } = plain
  const operationId = plain.operationId ?? call.gateway.system.ids.make('opn')
  const envelope = { target, function: name, arguments: given, operationId }
  const outcome = await runMutation(call, envelope, admit)
  const result = resultOf(call, plain, outcome.resultText)
  const metadata = `${mutationMetadata(outcome)},"operationId":"${operationId}"`
  return response(call, outcome.releaseId, result, metadata, unsent)
}

function resultOf({ gateway, definition }: Call, { integers }: PlainCall, tagged: string): string {
  return gateway.plainForms.write(definition!, tagged, integers)
}

function response(
  call: Call,
  releaseId: string,
  result: string,
  metadata: string,
  unsent: Unsent,
): CallResponse {
  const { requestId, invocationId } = contextOf(call).context
  const head = `{"version":1,"status":"ok","requestId":"${requestId}","result":`
  return { releaseId, invocationId, unsent, body: [head, result, `,"metadata":{${metadata}}}`] }
}
