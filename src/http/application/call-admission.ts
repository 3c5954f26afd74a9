/**
 * The identity of a call: the Release and the Function that it reaches, the principal that the
 * Function sees, and the invocation that its failures name. The steps are target, Function, policy
 * and functional identity.
 */
import type { QueryRequest } from '../../engine/invocations/requests.ts'
import type { Release } from '../../engine/releases/executable-release.ts'
import { Fault } from '../../errors/fault.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { Principal } from '../../value/identities.ts'
import { FUNCTION_NAME, type FunctionKind, type FunctionManifest } from '../../value/manifest.ts'
import type { ValueObject } from '../../value/values.ts'
import { identify } from './callers.ts'
import type { Call } from './calls.ts'
import type { ApplicationCaller } from './incoming.ts'

/** Length up to which the log shows an unknown Function name, which the caller chooses freely. */
const NAME_CHARACTERS_MAX = 128

/** Arguments in a form that depends on the Function. */
export interface DeclaredArguments {
  /** Throws if the Function does not take such a request. */
  read(definition: FunctionManifest): ValueObject
}

/** A call as the request names it. */
export interface NamedCall {
  readonly target: string
  readonly function: string
  readonly arguments: ValueObject | DeclaredArguments
}

/**
 * Resolves target and Function, then checks policy and identity. Returns a promise only if the
 * resolution of the target or the identity does. A request that leaves the kind to the Function has
 * null.
 */
export function admitCall(
  call: Call,
  envelope: NamedCall,
  kind: FunctionKind | null,
): MaybePromise<QueryRequest> {
  call.incoming.target = envelope.target
  const release = call.gateway.resolveTarget(envelope.target, call.caller, call)
  return release instanceof Promise
    ? identifyCallLater(call, envelope, kind, release)
    : identifyCall(call, envelope, kind, release)
}

async function identifyCallLater(
  call: Call,
  envelope: NamedCall,
  kind: FunctionKind | null,
  release: Promise<Release>,
): Promise<QueryRequest> {
  return identifyCall(call, envelope, kind, await release)
}

function identifyCall(
  call: Call,
  envelope: NamedCall,
  kind: FunctionKind | null,
  release: Release,
): MaybePromise<QueryRequest> {
  call.incoming.releaseId = release.releaseId
  const definition = getPublicFunction(release, envelope.function, kind)
  call.incoming.function = definition.name
  call.definition = definition
  checkPolicy(call.caller, definition, definition.kind)
  const requested = { release, definition, given: envelope.arguments }
  const principal = identify(call.gateway, call.incoming, call.caller, definition.auth)
  return principal === null
    ? requestOf(call, requested, null)
    : requestLater(call, requested, principal)
}

interface RequestedCall extends Pick<QueryRequest, 'release' | 'definition'> {
  readonly given: NamedCall['arguments']
}

async function requestLater(
  call: Call,
  requested: RequestedCall,
  principal: Promise<Principal | null>,
): Promise<QueryRequest> {
  return requestOf(call, requested, await principal)
}

/** Creates the invocation. Its later failures carry the invocation ID. */
function requestOf(
  call: Call,
  { release, definition, given }: RequestedCall,
  principal: Principal | null,
): QueryRequest {
  const { gateway, incoming, caller } = call
  const read = given instanceof Map ? given : (given as DeclaredArguments).read(definition)
  const invocationId = gateway.system.ids.make('ivc')
  incoming.invocationId = invocationId
  const { requestId } = incoming
  const { clientId, credentialId } = caller
  const context = { requestId, invocationId, clientId, credentialId }
  const { trace } = incoming
  return { release, definition, arguments: read, principal, context, trace, signal: call }
}

/** Returns the public Function. Throws REQUEST_INVALID and FUNCTION_NOT_FOUND. */
export function getPublicFunction(
  release: Release,
  name: string,
  kind: FunctionKind | null,
): FunctionManifest {
  const definition = release.functions.get(name)
  const isKind = kind === null || definition?.kind === kind
  if (definition?.visibility === 'public' && isKind) return definition
  if (!FUNCTION_NAME.test(name)) {
    throw new Fault('REQUEST_INVALID', { detail: 'function: not a valid Function name' })
  }
  throw new Fault('FUNCTION_NOT_FOUND', { detail: whyNotFound(definition, name, kind) })
}

function whyNotFound(
  found: FunctionManifest | undefined,
  name: string,
  kind: FunctionKind | null,
): string {
  if (found === undefined) {
    const known = name.length <= NAME_CHARACTERS_MAX ? name : 'of this name'
    return `the Release has no Function ${known}`
  }
  return found.visibility === 'public'
    ? `${name} is not a ${kind}: it is a ${found.kind}`
    : `${name} is internal`
}

/** Throws AUTH_POLICY_DENIED unless the key may call the Function. */
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
export function mayInvoke({ kind, scopes }: ApplicationCaller, of: FunctionKind): boolean {
  return kind !== 'development' && scopes.includes(of)
}
