/** What the pages of listed browser origins may read of a response. */

const EXPOSED = 'Retry-After, X-Service-Request-Id, X-Service-Invocation-Id, X-Service-Release-Id'

/** Lets the pages of a listed origin read the response, whatever it is. */
export function allowOrigin(
  allowedOrigins: ReadonlySet<string>,
  { headers }: Response,
  origin: string | null,
): void {
  if (origin === null || !allowedOrigins.has(origin)) return
  headers.set('access-control-allow-origin', origin)
  headers.set('access-control-expose-headers', EXPOSED)
  headers.append('vary', 'Origin')
}
