/**
 * Who calls: the application by its key, and whom it calls for by a functional token. Failures of
 * either count against the peer that they come from.
 */
import { Fault, isFault } from '../../errors/fault.ts'
import { type AuthMode, admit, type Principal } from '../../value/identities.ts'
import { type ApplicationLimits, credentialLimit, peerOf, requireNoWait } from '../rate-limits.ts'
import type { ApplicationCaller, Gateway, Incoming } from './gateway.ts'

/** RFC 6750, section 2.1. */
const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i
export const KEY_HEADER = 'x-service-key'
const TOKEN_CHARACTERS_MAX = 16 * 1024
export const FAILURE_RATE = 'the rate of failed authentications of the peer'
export const AFFINITY_HEADER = 'x-service-affinity'
export const AFFINITY = /^[\x21-\x7e]{1,128}$/

/** Throws APPLICATION_KEY_REQUIRED, APPLICATION_KEY_INVALID and RATE_LIMITED. */
export function authenticate(gateway: Gateway, incoming: Incoming): ApplicationCaller {
  const key = incoming.request.headers.get(KEY_HEADER)
  if (key === null) throw new Fault('APPLICATION_KEY_REQUIRED')
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
  if (limits !== null) {
    const { credentialId, rateLimit } = caller
    const seconds = limits.credentials.take(credentialId, credentialLimit(rateLimit))
    requireNoWait(seconds, 'RATE_LIMITED', 'the rate of requests of the credential')
  }
  return caller
}

/** Bytes of a body that cost its credential as much as a call. */
const BYTES_PER_CALL = 16 * 1024

/** Charges the rate of the credential with a body that has arrived, beside the call itself. */
export function chargeBody({ limits }: Gateway, caller: ApplicationCaller, bytes: number): void {
  if (limits === null || bytes < BYTES_PER_CALL) return
  const { credentialId, rateLimit } = caller
  const calls = Math.floor(bytes / BYTES_PER_CALL)
  limits.credentials.charge(credentialId, credentialLimit(rateLimit), calls)
}

/**
 * Whom the Function sees. A token that was sent to a Function of the mode `none` stays unread; in
 * every other mode it is good or the call ends. Throws FUNCTIONAL_TOKEN_REQUIRED,
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
  const admitted = admit(mode, presented)
  if (admitted === 'missing') {
    throw new Fault('FUNCTIONAL_TOKEN_REQUIRED', { detail: `the Function is for a ${mode}` })
  }
  if (admitted === 'denied') {
    throw new Fault('AUTH_POLICY_DENIED', { detail: `a ${presented?.kind} is no ${mode}` })
  }
  return admitted
}

/**
 * Where a weighted policy sends the caller: by what the client says, else by whom its token names,
 * else by `otherwise`. A token that is not good decides nothing here, since a Function of the mode
 * `none` takes it all the same. Throws REQUEST_INVALID.
 */
export function affinityOf(
  gateway: Gateway,
  incoming: Incoming,
  caller: ApplicationCaller,
  otherwise: string,
): string | Promise<string> {
  const { request } = incoming
  const said = request.headers.get(AFFINITY_HEADER)
  if (said !== null && !AFFINITY.test(said)) {
    throw new Fault('REQUEST_INVALID', {
      detail: `${AFFINITY_HEADER}: 1 to 128 visible characters`,
    })
  }
  const of = `${caller.credentialId}/`
  const header = request.headers.get('authorization')
  if (said !== null || header === null) return of + (said ?? otherwise)
  return present(gateway, incoming, caller, header).then(
    ({ key }) => of + key,
    () => of + otherwise,
  )
}

/**
 * Rejects a token that was not verified before, once its peer failed too often and was also granted
 * all the signatures that such a peer is. Others behind one address have good tokens, so failures
 * alone reject none of them; the bound keeps a flood from having a signature verified each time.
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
  incoming.presented ??= verify(gateway, incoming, caller, header)
  return incoming.presented
}

async function verify(
  { tokens, limits }: Gateway,
  { binding }: Incoming,
  caller: ApplicationCaller,
  header: string,
): Promise<Principal> {
  const token = BEARER.exec(header)?.[1] ?? ''
  // A holder whose token has run out guesses nothing, and a backend sends the tokens of all its
  // users from one address.
  const counts = limits !== null && caller.kind !== 'confidential' && !tokens.knows(token)
  if (counts) requireVerification(limits, peerOf(binding))
  try {
    if (token === '' || token.length > TOKEN_CHARACTERS_MAX) {
      throw new Fault('FUNCTIONAL_TOKEN_INVALID', { detail: 'functional token: no bearer' })
    }
    return await tokens.verify(token)
  } catch (error) {
    if (counts && isFault(error, 'FUNCTIONAL_TOKEN_INVALID')) {
      requireNoWait(limits.failures.take(peerOf(binding)), 'RATE_LIMITED', FAILURE_RATE)
    }
    throw error
  }
}
