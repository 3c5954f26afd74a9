/**
 * Authenticates the application by its key, and the identity it acts for by a functional token.
 * Failures of both count against the peer address.
 */
import { Fault, isFault } from '../../errors/fault.ts'
import { TOKEN_BYTES_MAX } from '../../identity/jwt/rejections.ts'
import { type AuthMode, admit, type Principal } from '../../value/identities.ts'
import { type ApplicationLimits, credentialLimit, peerOf, requireNoWait } from '../rate-limits.ts'
import type { ExpiringPrincipal, Gateway } from './gateway.ts'
import type { ApplicationCaller, Incoming } from './incoming.ts'

/** A bearer credential (RFC 6750, section 2.1). */
const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i
export const KEY_HEADER = 'x-service-key'
export const FAILURE_RATE = 'the rate of failed authentications of the peer'
export const AFFINITY_HEADER = 'x-service-affinity'
export const AFFINITY = /^[\x21-\x7e]{1,128}$/

/** Throws APPLICATION_KEY_REQUIRED, APPLICATION_KEY_INVALID and RATE_LIMITED. */
export function authenticate(gateway: Gateway, incoming: Incoming): ApplicationCaller {
  const key = incoming.request.headers.get(KEY_HEADER)
  if (key === null) throw new Fault('APPLICATION_KEY_REQUIRED')
  const caller = admitKey(gateway, incoming, key)
  chargeCall(gateway, caller)
  return caller
}

/** Returns the caller with this key. Throws APPLICATION_KEY_INVALID and RATE_LIMITED. */
export function admitKey(
  gateway: Gateway,
  incoming: Pick<Incoming, 'binding' | 'caller' | 'rejectedKey'>,
  key: string,
): ApplicationCaller {
  const { limits } = gateway
  const caller = gateway.authenticateKey(key)
  if (caller === null) {
    if (limits !== null) {
      const seconds = limits.failures.take(peerOf(incoming.binding))
      requireNoWait(seconds, 'RATE_LIMITED', FAILURE_RATE)
    }
    const { reason, credential } = gateway.explainKey(key)
    incoming.rejectedKey = credential
    throw new Fault('APPLICATION_KEY_INVALID', { detail: reason })
  }
  incoming.caller = caller
  return caller
}

/** Charges one call to the rate of the credential. Throws RATE_LIMITED. */
export function chargeCall({ limits }: Gateway, caller: ApplicationCaller): void {
  if (limits === null) return
  const { credentialId, rateLimit } = caller
  const seconds = limits.credentials.take(credentialId, credentialLimit(rateLimit))
  requireNoWait(seconds, 'RATE_LIMITED', 'the rate of requests of the credential')
}

/** Charges one call if the rate of the credential permits it. Returns whether it does. */
export function mayCall(
  { limits }: Gateway,
  { credentialId, rateLimit }: ApplicationCaller,
): boolean {
  return limits === null || limits.credentials.take(credentialId, credentialLimit(rateLimit)) === 0
}

/** Charges a call that is not rejected for its rate; later calls wait for it instead. */
export function overdrawCall({ limits }: Gateway, caller: ApplicationCaller): void {
  limits?.credentials.charge(caller.credentialId, credentialLimit(caller.rateLimit))
}

/** Bytes of a body or a message that cost its credential, or its mount, as much as a call. */
const BYTES_PER_CALL = 16 * 1024

/** Returns the calls that a body or a message costs in addition to its own. */
export function callsOfBody(bytes: number): number {
  return Math.floor(bytes / BYTES_PER_CALL)
}

/**
 * Charges the rate of the credential for a body or a message that has arrived, in addition to the
 * call.
 */
export function chargeBody({ limits }: Gateway, caller: ApplicationCaller, bytes: number): void {
  if (limits === null || bytes < BYTES_PER_CALL) return
  const { credentialId, rateLimit } = caller
  limits.credentials.charge(credentialId, credentialLimit(rateLimit), callsOfBody(bytes))
}

/**
 * Returns the identity that the Function sees. The token of a call to a `none` Function is not
 * read; in every other mode an invalid token ends the call. Throws FUNCTIONAL_TOKEN_REQUIRED,
 * FUNCTIONAL_TOKEN_INVALID, AUTH_POLICY_DENIED, RATE_LIMITED, and UNAVAILABLE where the keys of a
 * provider are not known.
 */
export function identify(
  gateway: Gateway,
  incoming: Incoming,
  caller: ApplicationCaller,
  mode: AuthMode,
): Promise<Principal | null> | null {
  return mode === 'none' ? null : identifyIn(mode, gateway, incoming, caller)
}

async function identifyIn(
  mode: AuthMode,
  gateway: Gateway,
  incoming: Incoming,
  caller: ApplicationCaller,
): Promise<Principal | null> {
  const header = incoming.request.headers.get('authorization')
  const presented = header === null ? null : await present(gateway, incoming, caller, header)
  return admittedPrincipal(mode, presented)
}

/**
 * Returns the principal that a Function of this mode sees. Throws FUNCTIONAL_TOKEN_REQUIRED and
 * AUTH_POLICY_DENIED.
 */
export function admittedPrincipal(mode: AuthMode, presented: Principal | null): Principal | null {
  const admitted = admit(mode, presented)
  if (admitted === 'missing') {
    throw new Fault('FUNCTIONAL_TOKEN_REQUIRED', {
      detail: `the Function requires a ${mode} identity`,
    })
  }
  if (admitted === 'denied') {
    throw new Fault('AUTH_POLICY_DENIED', {
      detail: `the Function requires a ${mode} identity, not a ${presented?.kind}`,
    })
  }
  return admitted
}

/**
 * Returns the affinity key for a weighted policy: from the affinity header, else from the identity
 * in the token, else from `fallback`. An invalid token falls back too, since a Function of the mode
 * `none` ignores it. Throws REQUEST_INVALID.
 */
export function resolveAffinity(
  gateway: Gateway,
  incoming: Incoming,
  caller: ApplicationCaller,
  fallback: string,
): string | Promise<string> {
  const { request } = incoming
  const affinity = request.headers.get(AFFINITY_HEADER)
  if (affinity !== null && !AFFINITY.test(affinity)) {
    throw new Fault('REQUEST_INVALID', {
      detail: `${AFFINITY_HEADER}: 1 to 128 visible characters`,
    })
  }
  const prefix = `${caller.credentialId}/`
  const header = request.headers.get('authorization')
  if (affinity !== null || header === null) return prefix + (affinity ?? fallback)
  return present(gateway, incoming, caller, header).then(
    ({ key }) => prefix + key,
    () => prefix + fallback,
  )
}

/**
 * Bounds the verification of unknown tokens of a peer over its failure limit. Such a peer may share
 * its address with callers that hold valid tokens, so its tokens are still verified, but at a
 * limited rate: each verification of a signature costs CPU time. Throws RATE_LIMITED.
 */
function requireVerification({ failures, verifications }: ApplicationLimits, peer: string): void {
  if (failures.wait(peer) > 0) requireNoWait(verifications.take(peer), 'RATE_LIMITED', FAILURE_RATE)
}

function present(
  gateway: Gateway,
  incoming: Incoming,
  caller: ApplicationCaller,
  header: string,
): Promise<Principal> {
  const token = BEARER.exec(header)?.[1] ?? ''
  incoming.presented ??= verifyToken(gateway, incoming, caller, token)
  return incoming.presented
}

/** Throws FUNCTIONAL_TOKEN_INVALID, RATE_LIMITED and UNAVAILABLE. */
export async function verifyToken(
  { tokens, limits }: Gateway,
  { binding }: Pick<Incoming, 'binding'>,
  caller: ApplicationCaller,
  token: string,
): Promise<ExpiringPrincipal> {
  // The holder of an expired token is not guessing, and a backend sends the tokens of all its users
  // from one address.
  const isLimited = limits !== null && caller.kind !== 'confidential' && !tokens.knows(token)
  if (isLimited) requireVerification(limits, peerOf(binding))
  try {
    if (token === '' || token.length > TOKEN_BYTES_MAX) {
      throw new Fault('FUNCTIONAL_TOKEN_INVALID', {
        detail: 'functional token: not a bearer token',
      })
    }
    return await tokens.verify(token)
  } catch (error) {
    if (isLimited && isFault(error, 'FUNCTIONAL_TOKEN_INVALID')) {
      requireNoWait(limits.failures.take(peerOf(binding)), 'RATE_LIMITED', FAILURE_RATE)
    }
    throw error
  }
}
