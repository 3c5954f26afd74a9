/** Authenticates grants. Failures count against the peer address. */
import { Fault, isFault } from '../../../errors/fault.ts'
import { type IdPrefix, isId } from '../../../value/ids.ts'
import { peerOf, requireNoWait } from '../../rate-limits.ts'
import { FAILURE_RATE } from '../callers.ts'
import type { Gateway } from '../gateway.ts'
import type { Incoming } from '../incoming.ts'

/** Bound on the length of a bearer. It exceeds any grant: an object key has at most 1 KiB. */
const TOKEN = /^Bearer +(rk_[a-z]{3}_v1_[A-Za-z0-9_-]{1,2400})$/i

/** Throws REQUEST_INVALID unless the last segment of the path is a canonical ID. */
export function requireId(prefix: IdPrefix, id: string): void {
  if (!isId(prefix, id)) throw malformedPath(`a canonical ${prefix}_ ID`)
}

export function malformedPath(end: string): Fault {
  return new Fault('REQUEST_INVALID', { detail: `the path ends with ${end}` })
}

/**
 * Returns the result of `check` for the bearer of the request. Throws GRANT_INVALID if the request
 * has none, and RATE_LIMITED if the peer presented too many invalid grants.
 */
export function withGrant<T>(
  gateway: Gateway,
  incoming: Incoming,
  check: (token: string) => Promise<T>,
): Promise<T> {
  return chargeFailures(gateway, incoming, async () => {
    const token = TOKEN.exec(incoming.request.headers.get('authorization') ?? '')?.[1]
    if (token === undefined) throw new Fault('GRANT_INVALID', { detail: 'no bearer of a grant' })
    return check(token)
  })
}

/**
 * Returns the result of `check` or raises its error, but RATE_LIMITED in place of GRANT_INVALID if
 * the peer presented too many invalid grants.
 */
export async function chargeFailures<T>(
  gateway: Gateway,
  { binding }: Incoming,
  check: () => Promise<T>,
): Promise<T> {
  try {
    return await check()
  } catch (error) {
    if (isFault(error, 'GRANT_INVALID') && gateway.limits !== null) {
      const seconds = gateway.limits.failures.take(peerOf(binding))
      requireNoWait(seconds, 'RATE_LIMITED', FAILURE_RATE)
    }
    throw error
  }
}
