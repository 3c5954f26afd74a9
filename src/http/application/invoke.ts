/**
 * Handlers of POST /v1/query, /v1/mutation and /v1/action. The steps are key, rate, envelope,
 * target, Function, policy, functional identity, arguments, then the engine. The Application Key
 * and the functional identity are independent.
 */
import type { CancellationToken } from '../../engine/calls/outcomes.ts'
import type { MutationOutcome } from '../../engine/invocations/mutations.ts'
import type { QueryOutcome } from '../../engine/invocations/queries.ts'
import type { QueryRequest } from '../../engine/invocations/requests.ts'
import type { Release } from '../../engine/releases/executable-release.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { AuthMode, Principal } from '../../value/identities.ts'
import { FUNCTION_NAME, type FunctionKind, type FunctionManifest } from '../../value/manifest.ts'
import { readBody, requireJson } from '../bodies.ts'
import { APPLICATION_CODES } from '../errors.ts'
import {
  type MutationEnvelope,
  type QueryEnvelope,
  readAction,
  readMutation,
} from './call-envelopes.ts'
import { affinityOf, identify } from './callers.ts'
import type { AffinitySource, Gateway } from './gateway.ts'
import type { ApplicationCaller, Incoming } from './incoming.ts'
import { operationCaller, possibleCallers } from './operation-callers.ts'

/**
 * Bytes of a public request envelope (contract/application.md, Limits).
 * @limit Requests: the body of a call
 */
export const ENVELOPE_BYTES_MAX = 2 * 1024 * 1024
/** Longest unknown Function name that the log shows. */
const NAME_CHARACTERS_MAX = 128
const NO_BYTES = new Uint8Array(0)
/** Rejections that depend on the current Release; the original call may have met another one. */
const RELEASE_REJECTIONS = [
  'RELEASE_RETIRED',
  'FUNCTION_NOT_FOUND',
  'AUTH_POLICY_DENIED',
  'FUNCTIONAL_TOKEN_REQUIRED',
  'ARGUMENTS_INVALID',
  'OPERATION_REUSED',
] as const

/** Response of a successful call. */
export interface CallResponse {
  readonly releaseId: string
  readonly invocationId: string
  /** Text in parts, since a result may be long. */
  readonly body: readonly string[]
}

/** An authenticated call with its body. It is cancelled when the client disconnects. */
export class Call implements CancellationToken, AffinitySource {
  readonly gateway: Gateway
  readonly incoming: Incoming
  readonly caller: ApplicationCaller
  /** The envelope, until it is parsed. */
  bytes: Uint8Array
  /** Operation ID of a Mutation, once the envelope was read. */
  operationId: string | null = null
  /** Auth mode of the Function, once the Function was found. */
  mode: AuthMode | null = null

  constructor(gateway: Gateway, incoming: Incoming, caller: ApplicationCaller, bytes: Uint8Array) {
    this.gateway = gateway
    this.incoming = incoming
    this.caller = caller
    this.bytes = bytes
  }

  /** Whether the client disconnected. Reading the signal creates it, so most calls never do. */
  get aborted(): boolean {
    return this.incoming.request.signal.aborted
  }

  /** Without a caller identity, the Operation ID sends a repeat to the Release of its original. */
  affinity(): string | Promise<string> {
    const { gateway, incoming, caller, operationId } = this
    return affinityOf(gateway, incoming, caller, operationId ?? incoming.requestId)
  }
}

/**
 * Invokes a Query. Returns without a promise where the result is cached, since awaiting one would
 * add a fifth to its time. The rare asynchronous paths are separate functions, since a closure
 * would cost every call.
 */
export function invokeQuery(call: Call): MaybePromise<CallResponse> {
  const { gateway, bytes } = call
  const request = admitCall(call, gateway.envelopes.read(bytes), 'query')
  return request instanceof Promise ? queryWhenAdmitted(gateway, request) : query(gateway, request)
}

async function queryWhenAdmitted(
  gateway: Gateway,
  request: Promise<QueryRequest>,
): Promise<CallResponse> {
  return query(gateway, await request)
}

function query({ engine }: Gateway, request: QueryRequest): MaybePromise<CallResponse> {
  const outcome = engine.query(request)
  return outcome instanceof Promise
    ? queryResponseLater(request, outcome)
    : queryResponse(request, outcome)
}

async function queryResponseLater(
  request: QueryRequest,
  outcome: Promise<QueryOutcome>,
): Promise<CallResponse> {
  return queryResponse(request, await outcome)
}

function queryResponse(request: QueryRequest, outcome: QueryOutcome): CallResponse {
  const sequence = outcome.snapshotSequence === null ? 'null' : `"${outcome.snapshotSequence}"`
  const metadata = `"kind":"query","snapshotSequence":${sequence}`
  return successResponse(request, request.release.releaseId, outcome.resultText, metadata)
}

export async function invokeMutation(call: Call): Promise<CallResponse> {
  const envelope = readMutation(call.bytes)
  const { operationId, target } = envelope
  call.operationId = operationId
  try {
    const request = await admitCall(call, envelope, 'mutation')
    const caller = operationCaller(call.caller, request.definition.auth, request.principal)
    const input = { ...request, operationId, target, caller }
    return mutationResponse(request, await call.gateway.engine.mutation(input))
  } catch (error) {
    if (isFault(error, ...RELEASE_REJECTIONS)) return replayRecorded(call, envelope, error)
    throw error
  }
}

/**
 * Returns the recorded result for an exact repeat, even if the current Release rejects the call. A
 * client that receives a rejection would otherwise repeat its write. Throws `rejection` where no
 * such record exists, and where the credential may not call Mutations.
 */
async function replayRecorded(
  call: Call,
  envelope: MutationEnvelope,
  rejection: Fault,
): Promise<CallResponse> {
  const { gateway, incoming, caller } = call
  if (!mayInvoke(caller, 'mutation')) throw rejection
  const outcome = await findRecorded(call, envelope, rejection)
  if (outcome === null) throw rejection
  const invocationId = incoming.invocationId ?? gateway.system.ids.make('ivc')
  return mutationResponse({ context: { requestId: incoming.requestId, invocationId } }, outcome)
}

/** Finds the record. OPERATION_REUSED replaces the rejection of a retired Release only. */
async function findRecorded(
  call: Call,
  envelope: MutationEnvelope,
  rejection: Fault,
): Promise<MutationOutcome | null> {
  try {
    return await call.gateway.engine.replay(envelope, possibleCallers(call))
  } catch (error) {
    if (isFault(error, 'OPERATION_REUSED') && rejection.code !== 'RELEASE_RETIRED') return null
    throw error
  }
}

function mutationResponse(request: WithContext, outcome: MutationOutcome): CallResponse {
  const sequence = outcome.commitSequence === null ? 'null' : `"${outcome.commitSequence}"`
  const counts = `"replayed":${outcome.replayed},"attempts":${outcome.attempts}`
  const metadata = `"kind":"mutation","commitSequence":${sequence},${counts}`
  return successResponse(request, outcome.releaseId, outcome.resultText, metadata)
}

export async function invokeAction(call: Call): Promise<CallResponse> {
  const request = await admitCall(call, readAction(call.bytes), 'action')
  const { binding } = call.incoming
  const { signal } = call.incoming.request
  binding.takeTime?.()
  try {
    const outcome = await call.gateway.engine.action({ ...request, signal })
    const { schedulesCreated } = outcome
    const metadata = `"kind":"action","schedulesCreated":"${schedulesCreated}"`
    return successResponse(request, request.release.releaseId, outcome.resultText, metadata)
  } finally {
    binding.returnTime?.()
  }
}

/** Resolves target and Function, then checks policy and identity. Synchronous where possible. */
function admitCall(
  call: Call,
  envelope: QueryEnvelope,
  kind: FunctionKind,
): MaybePromise<QueryRequest> {
  call.incoming.target = envelope.target
  const release = call.gateway.resolveTarget(envelope.target, call.caller, call)
  return release instanceof Promise
    ? identifyCallLater(call, envelope, kind, release)
    : identifyCall(call, envelope, kind, release)
}

async function identifyCallLater(
  call: Call,
  envelope: QueryEnvelope,
  kind: FunctionKind,
  release: Promise<Release>,
): Promise<QueryRequest> {
  return identifyCall(call, envelope, kind, await release)
}

function identifyCall(
  call: Call,
  envelope: QueryEnvelope,
  kind: FunctionKind,
  release: Release,
): MaybePromise<QueryRequest> {
  call.incoming.releaseId = release.releaseId
  const definition = functionOf(release, envelope.function, kind)
  call.incoming.function = definition.name
  call.mode = definition.auth
  checkPolicy(call.caller, definition, kind)
  const asked = { release, definition, arguments: envelope.arguments }
  const principal = identify(call.gateway, call.incoming, call.caller, definition.auth)
  return principal === null ? requestOf(call, asked, null) : requestLater(call, asked, principal)
}

type RequestedCall = Pick<QueryRequest, 'release' | 'definition' | 'arguments'>

async function requestLater(
  call: Call,
  asked: RequestedCall,
  principal: Promise<Principal | null>,
): Promise<QueryRequest> {
  return requestOf(call, asked, await principal)
}

/** Creates the invocation. Its later failures carry the invocation ID. */
function requestOf(call: Call, asked: RequestedCall, principal: Principal | null): QueryRequest {
  const { gateway, incoming, caller } = call
  const invocationId = gateway.system.ids.make('ivc')
  incoming.invocationId = invocationId
  const { requestId } = incoming
  const { clientId, credentialId } = caller
  const context = { requestId, invocationId, clientId, credentialId }
  return { ...asked, principal, context, trace: incoming.trace, signal: call }
}

type WithContext = Pick<QueryRequest, 'context'>

function successResponse(
  { context: { requestId, invocationId } }: WithContext,
  releaseId: string,
  result: string,
  metadata: string,
): CallResponse {
  const ids = `"requestId":"${requestId}","releaseId":"${releaseId}"`
  const head = `{"version":1,"status":"ok",${ids},"result":`
  return { releaseId, invocationId, body: [head, result, `,"metadata":{${metadata}}}`] }
}

export function readEnvelope({ transfers }: Gateway, incoming: Incoming): Promise<Uint8Array> {
  const { request } = incoming
  requireJson(request, APPLICATION_CODES)
  return readBody(request, ENVELOPE_BYTES_MAX, APPLICATION_CODES, transfers, incoming)
}

/** Bytes of an envelope that takes milliseconds to parse, rather than a fraction of one. */
const LONG_ENVELOPE_BYTES = 64 * 1024

/** Parses the envelope and invokes its Function. Long envelopes wait for their turn. */
export function invokeInTurn(
  call: Call,
  invoke: (call: Call) => MaybePromise<CallResponse>,
): MaybePromise<CallResponse> {
  if (call.incoming.bodyMemory === null) return invoke(call)
  if (call.bytes.length <= LONG_ENVELOPE_BYTES) return parseAndInvoke(call, invoke)
  const { transfers } = call.gateway
  return transfers.parseInTurn(call.caller.credentialId, call, () => parseAndInvoke(call, invoke))
}

/** Parses the envelope now, and frees the body before the Function ends. */
function parseAndInvoke(
  call: Call,
  invoke: (call: Call) => MaybePromise<CallResponse>,
): MaybePromise<CallResponse> {
  try {
    return invoke(call)
  } finally {
    call.bytes = NO_BYTES
    call.incoming.bodyMemory?.release()
  }
}

/** Returns the public Function. Throws REQUEST_INVALID and FUNCTION_NOT_FOUND. */
export function functionOf(release: Release, name: string, kind: FunctionKind): FunctionManifest {
  const definition = release.functions.get(name)
  if (definition?.visibility === 'public' && definition.kind === kind) return definition
  if (!FUNCTION_NAME.test(name)) {
    throw new Fault('REQUEST_INVALID', { detail: 'function: not a valid Function name' })
  }
  throw new Fault('FUNCTION_NOT_FOUND', { detail: whyNotFound(definition, name, kind) })
}

function whyNotFound(
  found: FunctionManifest | undefined,
  name: string,
  kind: FunctionKind,
): string {
  if (found === undefined) {
    const known = name.length <= NAME_CHARACTERS_MAX ? name : 'of this name'
    return `the Release has no Function ${known}`
  }
  return found.visibility === 'public'
    ? `${name} is not a ${kind}: it is a ${found.kind}`
    : `${name} is internal`
}

/** Throws AUTH_POLICY_DENIED where the key may not call the Function. */
export function checkPolicy(
  caller: ApplicationCaller,
  definition: FunctionManifest,
  kind: FunctionKind,
) {
  if (caller.kind === 'development' || !definition.clients.includes(caller.kind)) {
    throw new Fault('AUTH_POLICY_DENIED', {
      detail: `a ${caller.kind} key may not call this Function`,
    })
  }
  if (!mayInvoke(caller, kind)) {
    throw new Fault('AUTH_POLICY_DENIED', { detail: `the credential lacks the scope ${kind}` })
  }
}

/** Returns whether the credential may call any Function of the kind. */
function mayInvoke({ kind, scopes }: ApplicationCaller, of: FunctionKind): boolean {
  return kind !== 'development' && scopes.includes(of)
}
