/**
 * The caller that a Mutation operation belongs to: the Application Client and the functional
 * principal as the Function's policy used it. The credential is no part of it, so a repeat under
 * the rotated key of the same Client is a repeat.
 */
import { isFault } from '../../errors/fault.ts'
import type { AuthMode, Principal } from '../../value/identities.ts'
import { identify } from './callers.ts'
import type { ApplicationCaller, Gateway, Incoming } from './gateway.ts'

/**
 * The caller as the fingerprint of an operation has it. A mode that discards principals makes all
 * callers of a Client one; under any other mode a caller without a principal is one of its own.
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
  /** Mode of the Function that the repeat met; null where it met none. */
  readonly mode: AuthMode | null
}

/**
 * Yields every caller that the original of a repeat may have been recorded under: the mode of the
 * Function at that time decided whether the principal was a part of it. Raises UNAVAILABLE where
 * the keys of a provider are not known, and RATE_LIMITED.
 */
export async function* possibleCallers(call: RepeatedCall): AsyncGenerator<string> {
  const { caller, mode } = call
  yield operationCaller(caller, 'none', null)
  const principal = await presentedPrincipal(call)
  if (principal !== 'invalid') yield operationCaller(caller, 'optional', principal)
  // Servers up to 0.4 recorded the credential, and nothing for the lack of a principal. Records are
  // kept for 30 days, so a version that no such server can precede by less needs none of this.
  const { clientId, credentialId } = caller
  const before = `${clientId}/${credentialId}`
  const isPresented = principal !== null && principal !== 'invalid'
  if (isPresented) yield `${before}/${principal.key}`
  if (mode !== 'optional' || !isPresented) yield before
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
