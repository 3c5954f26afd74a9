/**
 * POST /v1/query, /v1/mutation and /v1/action: key, rate, envelope, target, Function, policy,
 * functional identity, arguments, then the engine. The Application Key and the functional identity
 * are independent.
 */
import type { QueryRequest } from '../../engine/engine.ts'
import type { Release } from '../../engine/release.ts'
import { Fault } from '../../errors/fault.ts'
import { type Answer, andThen } from '../../system/answers.ts'
import type { Principal } from '../../value/identities.ts'
import type { FunctionKind, FunctionManifest } from '../../value/manifest.ts'
import { readBody } from '../bodies.ts'
import { APPLICATION_CODES } from '../errors.ts'
import { affinityOf, identify } from './callers.ts'
import { type QueryEnvelope, readAction, readMutation } from './envelopes.ts'
import type { ApplicationCaller, Gateway, Incoming } from './gateway.ts'

/** Bytes of a public request envelope (Document 2, Limits). */
export const ENVELOPE_BYTES_MAX = 2 * 1024 * 1024
const JSON_MEDIA_TYPE = /^application\/json(?:\s*;\s*charset=utf-8)?$/i

/** What the response says about a call beyond its request. */
export interface Invoked {
  readonly releaseId: string
  readonly invocationId: string
  readonly body: string
}

/** A call whose key was good, with its body. */
export interface Call {
  readonly incoming: Incoming
  readonly caller: ApplicationCaller
  readonly bytes: Uint8Array
}

/** Answers at once where the result is kept: to wait for it would cost a fifth of its time. */
export function invokeQuery(gateway: Gateway, call: Call): Answer<Invoked> {
  const envelope = gateway.envelopes.read(call.bytes)
  return admitted(gateway, call, envelope, 'query', (request, { requestId }) => {
    return andThen(gateway.engine.query(request), (outcome) => {
      const sequence = outcome.snapshotSequence === null ? 'null' : `"${outcome.snapshotSequence}"`
      const { releaseId } = request.release
      const metadata = `"kind":"query","snapshotSequence":${sequence}`
      const body = success({ requestId, releaseId }, outcome.resultText, metadata)
      return { releaseId, invocationId: request.context.invocationId, body }
    })
  })
}

export function invokeMutation(gateway: Gateway, call: Call): Answer<Invoked> {
  const envelope = readMutation(call.bytes)
  return admitted(gateway, call, envelope, 'mutation', async (request, { requestId }) => {
    const { replayed, attempts, releaseId, ...outcome } = await gateway.engine.mutation({
      ...request,
      operationId: envelope.operationId,
      target: envelope.target,
      caller: callerKey(call.caller, request.principal),
    })
    const sequence = outcome.commitSequence === null ? 'null' : `"${outcome.commitSequence}"`
    const counts = `"replayed":${replayed},"attempts":${attempts}`
    const metadata = `"kind":"mutation","commitSequence":${sequence},${counts}`
    const body = success({ requestId, releaseId }, outcome.resultText, metadata)
    return { releaseId, invocationId: request.context.invocationId, body }
  })
}

export function invokeAction(gateway: Gateway, call: Call): Answer<Invoked> {
  const envelope = readAction(call.bytes)
  return admitted(gateway, call, envelope, 'action', async (request, { requestId }) => {
    call.incoming.binding.takeTime?.()
    const { signal } = call.incoming.request
    const outcome = await gateway.engine.action({ ...request, signal })
    const { releaseId } = request.release
    // Nothing is scheduled by a version that has no scheduler.
    const metadata = '"kind":"action","schedulesCreated":"0"'
    const body = success({ requestId, releaseId }, outcome.resultText, metadata)
    return { releaseId, invocationId: request.context.invocationId, body }
  })
}

/** Target, Function, policy and functional identity; what is at hand is not waited for. */
function admitted(
  gateway: Gateway,
  { incoming, caller }: Call,
  envelope: QueryEnvelope,
  kind: FunctionKind,
  invoke: (request: QueryRequest, incoming: Incoming) => Answer<Invoked>,
): Answer<Invoked> {
  const affinity = () => affinityOf(gateway, incoming, caller)
  return andThen(gateway.resolveTarget(envelope.target, caller, affinity), (release) => {
    const definition = functionOf(release, caller, envelope.function, kind)
    return andThen(identify(gateway, incoming, caller, definition.auth), (principal) => {
      const invocationId = gateway.system.ids.make('ivc')
      incoming.invocationId = invocationId
      const request = {
        release,
        definition,
        arguments: envelope.arguments,
        principal,
        context: { requestId: incoming.requestId, invocationId },
        signal: new Departed(incoming.request),
      }
      return invoke(request, incoming)
    })
  })
}

/** Its signal is made when it is looked at first, which most calls end before. */
class Departed {
  readonly #request: Request

  constructor(request: Request) {
    this.#request = request
  }

  get aborted(): boolean {
    return this.#request.signal.aborted
  }
}

function success(
  { requestId, releaseId }: { requestId: string; releaseId: string },
  result: string,
  metadata: string,
): string {
  const ids = `"requestId":"${requestId}","releaseId":"${releaseId}"`
  return `{"version":1,"status":"ok",${ids},"result":${result},"metadata":{${metadata}}}`
}

/** Who repeats a Mutation: the same client, credential and principal. */
function callerKey({ clientId, credentialId }: ApplicationCaller, principal: Principal | null) {
  const key = `${clientId}/${credentialId}`
  return principal === null ? key : `${key}/${principal.key}`
}

export function readEnvelope(request: Request): Promise<Uint8Array> {
  if (!JSON_MEDIA_TYPE.test(request.headers.get('content-type') ?? '')) {
    throw new Fault('MEDIA_TYPE_UNSUPPORTED')
  }
  return readBody(request, ENVELOPE_BYTES_MAX, APPLICATION_CODES)
}

function functionOf(
  release: Release,
  caller: ApplicationCaller,
  name: string,
  kind: FunctionKind,
): FunctionManifest {
  const definition = release.functions.get(name)
  if (definition === undefined || definition.visibility !== 'public' || definition.kind !== kind) {
    throw new Fault('FUNCTION_NOT_FOUND')
  }
  checkPolicy(caller, definition, kind)
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
