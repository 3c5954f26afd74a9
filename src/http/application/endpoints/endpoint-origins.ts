/** Pages of browsers that may call an endpoint: those of the origins that it declares. */
import { Fault } from '../../../errors/fault.ts'
import { type EndpointManifest, EVERY_ORIGIN } from '../../../value/http/routes.ts'

/** Seconds for which a browser may keep a preflight response. */
const PREFLIGHT_SECONDS = 600
/** Headers that pages may send to an endpoint. */
const REQUEST_HEADERS =
  'Content-Type, Accept, Authorization, Idempotency-Key, X-Service-Affinity, X-Service-Integers'

/** Throws ORIGIN_DENIED for a page of another origin. Programs send no origin. */
export function checkEndpointOrigin({ name, origins }: EndpointManifest, origin: string | null) {
  if (origin === null || origins.includes(EVERY_ORIGIN) || origins.includes(origin)) return
  const detail = `the origin is not one of \`origins\` of the endpoint ${name}`
  throw new Fault('ORIGIN_DENIED', { detail })
}

/** Lets pages of a declared origin read a response. They are never sent with credentials. */
export function allowEndpointOrigin(
  { origins }: EndpointManifest,
  headers: Headers,
  origin: string | null,
): void {
  if (origins.length === 0) return
  const isEvery = origins.includes(EVERY_ORIGIN)
  // A cache must not answer a page with the response to another one.
  if (!isEvery) headers.append('vary', 'Origin')
  if (!isEvery && (origin === null || !origins.includes(origin))) return
  headers.set('access-control-allow-origin', isEvery ? EVERY_ORIGIN : origin!)
  headers.set('access-control-expose-headers', '*')
}

/** Returns the response to a preflight, for one of the methods of its path. */
export function preflightResponse(methods: readonly string[]): Response {
  const headers = {
    'access-control-allow-methods': methods.join(', '),
    'access-control-allow-headers': REQUEST_HEADERS,
    'access-control-max-age': String(PREFLIGHT_SECONDS),
  }
  return new Response(null, { status: 204, headers })
}
