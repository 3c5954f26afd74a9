/** The authorization of a connection: an Application Key, and a functional token if it has one. */
import { Fault } from '../../../errors/fault.ts'
import type { ExpiringPrincipal } from '../gateway.ts'
import type { ApplicationCaller, Incoming } from '../incoming.ts'

/** The parts of the opening request that the connection needs for its lifetime. */
export interface OpenedBy extends Omit<Incoming, 'request'> {
  /** Headers of the request that continue a trace; null if nothing is traced. */
  readonly traceHeaders: Headers | null
}

export interface Authorization {
  readonly key: string
  readonly caller: ApplicationCaller
  readonly token: string | null
  readonly principal: ExpiringPrincipal | null
}

/** Throws AUTH_POLICY_DENIED unless the credential has the scope `realtime`. */
export function requireRealtime({ kind, scopes }: ApplicationCaller): void {
  if (kind !== 'development' && scopes.includes('realtime')) return
  throw new Fault('AUTH_POLICY_DENIED', { detail: 'the credential lacks the scope realtime' })
}

/** Throws AUTH_POLICY_DENIED if a renewal would change the Client or the principal. */
export function requireSameCaller(before: Authorization, now: Authorization): void {
  const isSame =
    before.caller.clientId === now.caller.clientId && before.principal?.key === now.principal?.key
  if (isSame) return
  const detail = 'the renewal is for another Application Client or principal'
  throw new Fault('AUTH_POLICY_DENIED', { detail })
}
