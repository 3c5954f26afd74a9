/** The origins that the client accepts: HTTPS, or the loopback address of a local server. */
import { Fault } from '../errors/fault.ts'
import type { ClientEnvironment } from './environment.ts'

export const LOCAL_ORIGIN = 'http://127.0.0.1:3220'
/** Variable that permits other loopback origins, for tests, other ports and IPv6. */
export const ALLOW_LOOPBACK_HTTP = 'SVC_ALLOW_LOOPBACK_HTTP'

const LOOPBACK = /^http:\/\/(?:127\.0\.0\.1|\[::1\]):[0-9]{1,5}$/

/** Returns the canonical origin. Throws CLIENT_ORIGIN_INVALID. */
export function parseOrigin(
  environment: Pick<ClientEnvironment, 'variable'>,
  text: string,
): string {
  const origin = canonicalOrigin(text)
  if (origin === null) throw new Fault('CLIENT_ORIGIN_INVALID')
  if (origin.startsWith('https://') || origin === LOCAL_ORIGIN) return origin
  if (LOOPBACK.test(origin) && environment.variable(ALLOW_LOOPBACK_HTTP) === 'true') return origin
  throw new Fault('CLIENT_ORIGIN_INVALID')
}

/** Tells whether only programs on this machine can reach an accepted origin. */
export function isLoopback(origin: string): boolean {
  return LOOPBACK.test(origin)
}

/** Returns null unless the text is a canonical origin; one final slash is accepted. */
export function canonicalOrigin(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || (text !== url.origin && text !== `${url.origin}/`)) return null
  return url.origin
}
