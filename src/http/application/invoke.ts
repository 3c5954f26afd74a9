/**
 * POST /v1/query, /v1/mutation and /v1/action: key, rate, envelope, target, Function, policy,
 * functional identity, arguments, then the engine. The Application Key and the functional identity
 * are independent.
 */
import type { QueryRequest } from '../../engine/engine.ts'
import type { MutationOutcome } from '../../engine/mutations.ts'
import type { QueryOutcome } from '../../engine/queries.ts'
import type { Release } from '../../engine/release.ts'
import type { Departure } from '../../engine/runners/outcomes.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { Answer } from '../../system/answers.ts'
import type { Principal } from '../../value/identities.ts'
import { FUNCTION_NAME, type FunctionKind, type FunctionManifest } from '../../value/manifest.ts'
import { readBody, requireJson } from '../bodies.ts'
import { APPLICATION_CODES } from '../errors.ts'
import { affinityOf, identify } from './callers.ts'
import { type MutationEnvelope, type QueryEnvelope, readAction, readMutation } from './envelopes.ts'
import type { AffinitySource, ApplicationCaller, Gateway, Incoming } from './gateway.ts'

/** Bytes of a public request envelope (Document 2, Limits). */
export const ENVELOPE_BYTES_MAX = 2 * 1024 * 1024
/** Refusals by the code that a request met: what came before it may have met other code. */
const CODE_REFUSALS = [
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
export class Call implements Departure, AffinitySource {
  readonly gateway: Gateway
  readonly incoming: Incoming
  readonly caller: ApplicationCaller
  readonly bytes: Uint8Array
  /** Of a Mutation, once it was read. */
  operationId: string | null = null

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
export function invokeQuery(call: Call): Answer<Invoked> {
  const { gateway, bytes } = call
  const request = admitted(call, gateway.envelopes.read(bytes), 'query')
  return request instanceof Promise ? queryLater(gateway, request) : query(gateway, request)
}

async function queryLater(gateway: Gateway, request: Promise<QueryRequest>): Promise<Invoked> {
  return query(gateway, await request)
}

function query({ engine }: Gateway, request: QueryRequest): Answer<Invoked> {
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
    const caller = callerKey(call.caller, request.principal)
    const input = { ...request, operationId, target, caller }
    return mutated(request, await call.gateway.engine.mutation(input))
  } catch (error) {
    if (isFault(error, ...CODE_REFUSALS)) return repeated(call, envelope, error)
    throw error
  }
}

/**
 * A Mutation that was carried out keeps its answer, whatever the code of now says to a repeat: one
 * who is told that the write was refused writes it again.
 */
async function repeated(call: Call, envelope: MutationEnvelope, refusal: Fault): Promise<Invoked> {
  const { gateway, incoming } = call
  const outcome = await gateway.engine.repeated(envelope, callersOf(call))
  if (outcome === null) throw refusal
  const invocationId = incoming.invocationId ?? gateway.system.ids.make('ivc')
  return mutated({ context: { requestId: incoming.requestId, invocationId } }, outcome)
}

/** Those that the call may be on record by: whether the principal is one, the code of then said. */
async function* callersOf({ gateway, incoming, caller }: Call): AsyncGenerator<string> {
  yield callerKey(caller, null)
  try {
    const principal = await identify(gateway, incoming, caller, 'optional')
    if (principal !== null) yield callerKey(caller, principal)
  } catch (error) {
    if (!isFault(error, 'FUNCTIONAL_TOKEN_INVALID')) throw error
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
    // Nothing is scheduled by a version that has no scheduler.
    const metadata = '"kind":"action","schedulesCreated":"0"'
    return invoked(request, request.release.releaseId, outcome.resultText, metadata)
  } finally {
    binding.returnTime?.()
  }
}

/** Target, Function, policy and functional identity; what is at hand is not waited for. */
function admitted(call: Call, envelope: QueryEnvelope, kind: FunctionKind): Answer<QueryRequest> {
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
): Answer<QueryRequest> {
  const definition = functionOf(release, envelope.function, kind)
  call.incoming.releaseId = release.releaseId
  call.incoming.function = definition.name
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

/** Who repeats a Mutation: the same client, credential and principal. */
function callerKey({ clientId, credentialId }: ApplicationCaller, principal: Principal | null) {
  const key = `${clientId}/${credentialId}`
  return principal === null ? key : `${key}/${principal.key}`
}

export function readEnvelope(request: Request): Promise<Uint8Array> {
  requireJson(request, APPLICATION_CODES)
  return readBody(request, ENVELOPE_BYTES_MAX, APPLICATION_CODES)
}

function functionOf(release: Release, name: string, kind: FunctionKind): FunctionManifest {
  const definition = release.functions.get(name)
  if (definition === undefined || definition.visibility !== 'public' || definition.kind !== kind) {
    throw new Fault(FUNCTION_NAME.test(name) ? 'FUNCTION_NOT_FOUND' : 'REQUEST_INVALID')
  }
  return definition
}

function checkPolicy(caller: ApplicationCaller, definition: FunctionManifest, kind: FunctionKind) {
  if (caller.kind === 'development' || !definition.clients.includes(caller.kind)) {
    throw new Fault('AUTH_POLICY_DENIED', { detail: `a ${caller.kind} key may not call it` })
  }
  if (!caller.scopes.includes(kind)) {
    throw new Fault('AUTH_POLICY_DENIED', { detail: `the credential lacks the scope ${kind}` })
  }
}
