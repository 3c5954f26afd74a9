/**
 * POST /v1/query, /v1/mutation and /v1/action: key, rate, envelope, target, Function, policy,
 * functional identity, arguments, then the engine. The Application Key and the functional identity
 * are independent.
 */
import type { Release } from '../../engine/release.ts'
import { Fault } from '../../errors/fault.ts'
import type { Principal } from '../../value/identities.ts'
import type { FunctionKind, FunctionManifest } from '../../value/manifest.ts'
import { readBody } from '../bodies.ts'
import { APPLICATION_CODES } from '../errors.ts'
import { affinityOf, authenticate, identify } from './callers.ts'
import { type QueryEnvelope, readAction, readMutation } from './envelopes.ts'
import type { ApplicationCaller, Gateway, Incoming } from './gateway.ts'

/** Bytes of a public request envelope (Document 2, Limits). */
export const ENVELOPE_BYTES_MAX = 2 * 1024 * 1024
const JSON_MEDIA_TYPE = /^application\/json(?:\s*;\s*charset=utf-8)?$/i

/** What the answer and the log line say about a call beyond its result. */
export interface Answer {
  readonly releaseId: string
  readonly invocationId: string
  readonly body: string
}

export async function invokeQuery(gateway: Gateway, incoming: Incoming): Promise<Answer> {
  const { request, requestId } = incoming
  const caller = authenticate(gateway, incoming)
  const envelope = gateway.envelopes.read(await readEnvelope(request))
  // What is at hand is not awaited: that would cost a cached result a fifth of its time.
  const resolved = resolve(gateway, incoming, caller, envelope, 'query')
  const { release, definition } = resolved instanceof Promise ? await resolved : resolved
  const identified = identify(gateway, incoming, caller, definition.auth)
  const principal = identified === null ? null : await identified
  const invocationId = gateway.system.ids.make('ivc')
  incoming.invocationId = invocationId
  const ran = gateway.engine.query({
    release,
    definition,
    arguments: envelope.arguments,
    principal,
    context: { requestId, invocationId },
    // Its signal is made when it is looked at first, which most calls end before.
    signal: {
      get aborted() {
        return request.signal.aborted
      },
    },
  })
  const outcome = ran instanceof Promise ? await ran : ran
  const sequence = outcome.snapshotSequence === null ? 'null' : `"${outcome.snapshotSequence}"`
  return {
    releaseId: release.releaseId,
    invocationId,
    body: success(
      { requestId, releaseId: release.releaseId },
      outcome.resultText,
      `"kind":"query","snapshotSequence":${sequence}`,
    ),
  }
}

export async function invokeMutation(gateway: Gateway, incoming: Incoming): Promise<Answer> {
  const { request, requestId } = incoming
  const caller = authenticate(gateway, incoming)
  const envelope = readMutation(await readEnvelope(request))
  const resolved = resolve(gateway, incoming, caller, envelope, 'mutation')
  const { release, definition } = resolved instanceof Promise ? await resolved : resolved
  const identified = identify(gateway, incoming, caller, definition.auth)
  const principal = identified === null ? null : await identified
  const invocationId = gateway.system.ids.make('ivc')
  incoming.invocationId = invocationId
  const outcome = await gateway.engine.mutation({
    release,
    definition,
    arguments: envelope.arguments,
    principal,
    operationId: envelope.operationId,
    target: envelope.target,
    caller: callerKey(caller, principal),
    context: { requestId, invocationId },
  })
  const sequence = outcome.commitSequence === null ? 'null' : `"${outcome.commitSequence}"`
  const { releaseId, replayed, attempts } = outcome
  const counts = `"replayed":${replayed},"attempts":${attempts}`
  const metadata = `"kind":"mutation","commitSequence":${sequence},${counts}`
  return {
    releaseId,
    invocationId,
    body: success({ requestId, releaseId }, outcome.resultText, metadata),
  }
}

export async function invokeAction(gateway: Gateway, incoming: Incoming): Promise<Answer> {
  const { request, requestId } = incoming
  const caller = authenticate(gateway, incoming)
  const envelope = readAction(await readEnvelope(request))
  const { release, definition } = await resolve(gateway, incoming, caller, envelope, 'action')
  const principal = await identify(gateway, incoming, caller, definition.auth)
  const invocationId = gateway.system.ids.make('ivc')
  incoming.invocationId = invocationId
  incoming.binding.takeTime?.()
  const outcome = await gateway.engine.action({
    release,
    definition,
    arguments: envelope.arguments,
    principal,
    context: { requestId, invocationId },
    signal: request.signal,
  })
  const { releaseId } = release
  // Nothing is scheduled by a version that has no scheduler.
  const metadata = '"kind":"action","schedulesCreated":"0"'
  return {
    releaseId,
    invocationId,
    body: success({ requestId, releaseId }, outcome.resultText, metadata),
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

function readEnvelope(request: Request): Promise<Uint8Array> {
  if (!JSON_MEDIA_TYPE.test(request.headers.get('content-type') ?? '')) {
    throw new Fault('MEDIA_TYPE_UNSUPPORTED')
  }
  return readBody(request, ENVELOPE_BYTES_MAX, APPLICATION_CODES)
}

interface Resolved {
  readonly release: Release
  readonly definition: FunctionManifest
}

function resolve(
  gateway: Gateway,
  incoming: Incoming,
  caller: ApplicationCaller,
  envelope: QueryEnvelope,
  kind: FunctionKind,
): Resolved | Promise<Resolved> {
  const affinity = () => affinityOf(gateway, incoming, caller)
  const found = gateway.resolveTarget(envelope.target, caller, affinity)
  return found instanceof Promise
    ? found.then((release) => functionOf(release, caller, envelope, kind))
    : functionOf(found, caller, envelope, kind)
}

function functionOf(
  release: Release,
  caller: ApplicationCaller,
  envelope: QueryEnvelope,
  kind: FunctionKind,
): Resolved {
  const definition = release.functions.get(envelope.function)
  if (definition === undefined || definition.visibility !== 'public' || definition.kind !== kind) {
    throw new Fault('FUNCTION_NOT_FOUND')
  }
  checkPolicy(caller, definition, kind)
  return { release, definition }
}

function checkPolicy(caller: ApplicationCaller, definition: FunctionManifest, kind: FunctionKind) {
  if (caller.kind === 'development' || !definition.clients.includes(caller.kind)) {
    throw new Fault('AUTH_POLICY_DENIED', { detail: `a ${caller.kind} key may not call it` })
  }
  if (!caller.scopes.includes(kind)) {
    throw new Fault('AUTH_POLICY_DENIED', { detail: `the credential lacks the scope ${kind}` })
  }
}
