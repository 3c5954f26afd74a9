/**
 * The caller that a Mutation operation belongs to: the Application Client and the functional
 * principal as the Function's policy used it. The credential is not part of it, so a request with
 * the rotated key of one Client still counts as a repeat.
 */
import { isFault } from '../../errors/fault.ts'
import type { AuthMode, Principal } from '../../value/identities.ts'
import { identify } from './callers.ts'
import type { Gateway } from './gateway.ts'
import type { ApplicationCaller, Incoming } from './incoming.ts'

/**
 * Returns the caller for the fingerprint of an operation. In the mode `none` all callers of a
 * Client are one; in any other mode a caller without a principal is distinct.
 */
export function operationCaller(
  { clientId }: Pick<ApplicationCaller, 'clientId'>,
  mode: AuthMode,
  principal: Principal | null,
): string {
  return mode === 'none' ? clientId : `${clientId}/${principal?.key ?? 'anonymous'}`
}

interface RepeatedCall {
  readonly gateway: Gateway
  readonly incoming: Incoming
  readonly caller: ApplicationCaller
  /** Auth mode of the called Function; null if the Function was not found. */
  readonly mode: AuthMode | null
}

/**
 * Yields every caller under which the original of a repeat may be recorded. The mode of the
 * Function at that time decided whether the principal was a part of the caller. Throws UNAVAILABLE
 * where the keys of a provider are not known, and RATE_LIMITED.
 */
export async function* possibleCallers(call: RepeatedCall): AsyncGenerator<string> {
  const { caller, mode } = call
  yield operationCaller(caller, 'none', null)
  const principal = await presentedPrincipal(call)
  if (principal !== 'invalid') yield operationCaller(caller, 'optional', principal)
  // Servers up to 0.4 recorded the credential, and nothing for a missing principal. Records live
  // for 30 days, so remove this once no supported upgrade starts from such a server.
  const { clientId, credentialId } = caller
  const legacyCaller = `${clientId}/${credentialId}`
  const isPresented = principal !== null && principal !== 'invalid'
  if (isPresented) yield `${legacyCaller}/${principal.key}`
  if (mode !== 'optional' || !isPresented) yield legacyCaller
}

async function presentedPrincipal({
  gateway,
  incoming,
  caller,
}: RepeatedCall): Promise<Principal | null | 'invalid'> {
  try {
    return await identify(gateway, incoming, caller, 'optional')
  } catch (error) {
    if (isFault(error, 'FUNCTIONAL_TOKEN_INVALID')) return 'invalid'
    throw error
  }
}
