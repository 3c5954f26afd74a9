/**
 * POST /v1/query, /v1/mutation and /v1/action: key, rate, envelope, target, Function, policy,
 * functional identity, arguments, then the engine. The Application Key and the functional identity
 * are independent.
 */

import type { MutationOutcome } from '../../engine/invocations/mutations.ts'
import type { QueryOutcome } from '../../engine/invocations/queries.ts'
import type { QueryRequest } from '../../engine/invocations/requests.ts'
import type { Release } from '../../engine/releases/executable-release.ts'
import type { CancellationToken } from '../../engine/runners/outcomes.ts'
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
import type { AffinitySource, ApplicationCaller, Gateway, Incoming } from './gateway.ts'
import { operationCaller, possibleCallers } from './operation-callers.ts'

/**
 * Bytes of a public request envelope (Document 2, Limits).
 * @limit Requests: the body of a call
 */
export const ENVELOPE_BYTES_MAX = 2 * 1024 * 1024
/** Longest name that the log shows although no Function has it. */
const NAME_CHARACTERS_MAX = 128
const NO_BYTES = new Uint8Array(0)
/** Rejections that follow from the Release of now: the original may have met another one. */
const RELEASE_REJECTIONS = [
  'RELEASE_RETIRED',
  'FUNCTION_NOT_FOUND',
  'AUTH_POLICY_DENIED',
  'FUNCTIONAL_TOKEN_REQUIRED',
  'ARGUMENTS_INVALID',
  'OPERATION_REUSED',
] as const

/** What the response says about a call beyond its request. */
export interface Invoked {
  readonly releaseId: string
  readonly invocationId: string
  readonly body: string
}

/** A call whose key was good, with its body; the one who waits for it. */
export class Call implements CancellationToken, AffinitySource {
  readonly gateway: Gateway
  readonly incoming: Incoming
  readonly caller: ApplicationCaller
  /** The envelope, until it is parsed. */
  bytes: Uint8Array
  /** Of a Mutation, once it was read. */
  operationId: string | null = null
  /** Auth mode of the Function, once the Function was found. */
  mode: AuthMode | null = null

  constructor(gateway: Gateway, incoming: Incoming, caller: ApplicationCaller, bytes: Uint8Array) {
    this.gateway = gateway
    this.incoming = incoming
    this.caller = caller
    this.bytes = bytes
  }

  /** The signal is made when it is looked at first, which most calls end before. */
  get aborted(): boolean {
    return this.incoming.request.signal.aborted
  }

  /** A repeat of whom nothing is known goes where its original went. */
  affinity(): string | Promise<string> {
    const { gateway, incoming, caller, operationId } = this
    return affinityOf(gateway, incoming, caller, operationId ?? incoming.requestId)
  }
}

/**
 * Answers at once where the result is kept: to wait for it would cost a fifth of its time. What is
 * seldom waited for has functions of its own, since a closure costs every call.
 */
export function invokeQuery(call: Call): MaybePromise<Invoked> {
  const { gateway, bytes } = call
  const request = admitted(call, gateway.envelopes.read(bytes), 'query')
  return request instanceof Promise ? queryLater(gateway, request) : query(gateway, request)
}

async function queryLater(gateway: Gateway, request: Promise<QueryRequest>): Promise<Invoked> {
  return query(gateway, await request)
}

function query({ engine }: Gateway, request: QueryRequest): MaybePromise<Invoked> {
  const outcome = engine.query(request)
  return outcome instanceof Promise ? queriedLater(request, outcome) : queried(request, outcome)
}

async function queriedLater(
  request: QueryRequest,
  outcome: Promise<QueryOutcome>,
): Promise<Invoked> {
  return queried(request, await outcome)
}

function queried(request: QueryRequest, outcome: QueryOutcome): Invoked {
  const sequence = outcome.snapshotSequence === null ? 'null' : `"${outcome.snapshotSequence}"`
  const metadata = `"kind":"query","snapshotSequence":${sequence}`
  return invoked(request, request.release.releaseId, outcome.resultText, metadata)
}

export async function invokeMutation(call: Call): Promise<Invoked> {
  const envelope = readMutation(call.bytes)
  const { operationId, target } = envelope
  call.operationId = operationId
  try {
    const request = await admitted(call, envelope, 'mutation')
    const caller = operationCaller(call.caller, request.definition.auth, request.principal)
    const input = { ...request, operationId, target, caller }
    return mutated(request, await call.gateway.engine.mutation(input))
  } catch (error) {
    if (isFault(error, ...RELEASE_REJECTIONS)) return repeated(call, envelope, error)
    throw error
  }
}

/**
 * Answers an exact repeat with the recorded result, whatever the Release of now says to it: a
 * client that is told that its write was rejected writes again. Throws the rejection where there is
 * no such record, and where the credential could not have made the call at all.
 */
async function repeated(
  call: Call,
  envelope: MutationEnvelope,
  rejection: Fault,
): Promise<Invoked> {
  const { gateway, incoming, caller } = call
  if (!mayInvoke(caller, 'mutation')) throw rejection
  const outcome = await recorded(call, envelope, rejection)
  if (outcome === null) throw rejection
  const invocationId = incoming.invocationId ?? gateway.system.ids.make('ivc')
  return mutated({ context: { requestId: incoming.requestId, invocationId } }, outcome)
}

/** A retired Release alone gives way to the record of another request with the operation ID. */
async function recorded(
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

function mutated(request: Invoking, outcome: MutationOutcome): Invoked {
  const sequence = outcome.commitSequence === null ? 'null' : `"${outcome.commitSequence}"`
  const counts = `"replayed":${outcome.replayed},"attempts":${outcome.attempts}`
  const metadata = `"kind":"mutation","commitSequence":${sequence},${counts}`
  return invoked(request, outcome.releaseId, outcome.resultText, metadata)
}

export async function invokeAction(call: Call): Promise<Invoked> {
  const request = await admitted(call, readAction(call.bytes), 'action')
  const { binding } = call.incoming
  const { signal } = call.incoming.request
  binding.takeTime?.()
  try {
    const outcome = await call.gateway.engine.action({ ...request, signal })
    const { schedulesCreated } = outcome
    const metadata = `"kind":"action","schedulesCreated":"${schedulesCreated}"`
    return invoked(request, request.release.releaseId, outcome.resultText, metadata)
  } finally {
    binding.returnTime?.()
  }
}

/** Target, Function, policy and functional identity; what is at hand is not waited for. */
function admitted(
  call: Call,
  envelope: QueryEnvelope,
  kind: FunctionKind,
): MaybePromise<QueryRequest> {
  const release = call.gateway.resolveTarget(envelope.target, call.caller, call)
  return release instanceof Promise
    ? identifiedLater(call, envelope, kind, release)
    : identified(call, envelope, kind, release)
}

async function identifiedLater(
  call: Call,
  envelope: QueryEnvelope,
  kind: FunctionKind,
  release: Promise<Release>,
): Promise<QueryRequest> {
  return identified(call, envelope, kind, await release)
}

function identified(
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

type Asked = Pick<QueryRequest, 'release' | 'definition' | 'arguments'>

async function requestLater(
  call: Call,
  asked: Asked,
  principal: Promise<Principal | null>,
): Promise<QueryRequest> {
  return requestOf(call, asked, await principal)
}

/** The invocation begins: from here on its failures carry its ID. */
function requestOf(call: Call, asked: Asked, principal: Principal | null): QueryRequest {
  const { gateway, incoming, caller } = call
  const invocationId = gateway.system.ids.make('ivc')
  incoming.invocationId = invocationId
  const { requestId } = incoming
  const { clientId, credentialId } = caller
  const context = { requestId, invocationId, clientId, credentialId }
  return { ...asked, principal, context, signal: call }
}

type Invoking = Pick<QueryRequest, 'context'>

function invoked(
  { context: { requestId, invocationId } }: Invoking,
  releaseId: string,
  result: string,
  metadata: string,
): Invoked {
  const ids = `"requestId":"${requestId}","releaseId":"${releaseId}"`
  const body = `{"version":1,"status":"ok",${ids},"result":${result},"metadata":{${metadata}}}`
  return { releaseId, invocationId, body }
}

export function readEnvelope({ transfers }: Gateway, incoming: Incoming): Promise<Uint8Array> {
  const { request } = incoming
  requireJson(request, APPLICATION_CODES)
  return readBody(request, ENVELOPE_BYTES_MAX, APPLICATION_CODES, transfers, incoming)
}

/** Bytes of an envelope that takes milliseconds to parse, rather than a fraction of one. */
const LONG_ENVELOPE_BYTES = 64 * 1024

/** Parses the envelope, a long one in turn, and invokes its Function. */
export function invokeInTurn(
  call: Call,
  invoke: (call: Call) => MaybePromise<Invoked>,
): MaybePromise<Invoked> {
  if (call.incoming.bodyMemory === null) return invoke(call)
  if (call.bytes.length <= LONG_ENVELOPE_BYTES) return parsed(call, invoke)
  const { transfers } = call.gateway
  return transfers.parseInTurn(call.caller.credentialId, call, () => parsed(call, invoke))
}

/** Parses at once; neither the body nor its memory is kept while the Function runs. */
function parsed(call: Call, invoke: (call: Call) => MaybePromise<Invoked>): MaybePromise<Invoked> {
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
    throw new Fault('REQUEST_INVALID', { detail: 'function: not the name of a Function' })
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
    ? `${name} is no ${kind}: it is a ${found.kind}`
    : `${name} is internal`
}

/** Throws AUTH_POLICY_DENIED where the key may not call the Function. */
export function checkPolicy(
  caller: ApplicationCaller,
  definition: FunctionManifest,
  kind: FunctionKind,
) {
  if (caller.kind === 'development' || !definition.clients.includes(caller.kind)) {
    throw new Fault('AUTH_POLICY_DENIED', { detail: `a ${caller.kind} key may not call it` })
  }
  if (!mayInvoke(caller, kind)) {
    throw new Fault('AUTH_POLICY_DENIED', { detail: `the credential lacks the scope ${kind}` })
  }
}

/** Returns whether the credential may call any Function of the kind. */
function mayInvoke({ kind, scopes }: ApplicationCaller, of: FunctionKind): boolean {
  return kind !== 'development' && scopes.includes(of)
}
