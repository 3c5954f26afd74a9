/** Response headers that let pages of an allowed browser origin read a response. */

const EXPOSED = [
  ...['Retry-After', 'X-Service-Request-Id', 'X-Service-Invocation-Id', 'X-Service-Release-Id'],
  ...['ETag', 'Content-Range', 'Content-Length', 'X-Service-File-Id'],
].join(', ')

/** Browser origins whose pages may call; `has` compares the exact text. */
export type BrowserOrigins = Pick<ReadonlySet<string>, 'has'>

/** Lets pages of an allowed origin read the response, including failures. */
export function allowOrigin(
  allowedOrigins: BrowserOrigins,
  { headers }: Response,
  origin: string | null,
): void {
  if (origin === null || !allowedOrigins.has(origin)) return
  headers.set('access-control-allow-origin', origin)
  headers.set('access-control-expose-headers', EXPOSED)
  headers.append('vary', 'Origin')
}
