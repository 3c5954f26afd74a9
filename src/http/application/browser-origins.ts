/** Response headers that let pages of an allowed browser origin read a response. */
import { Fault } from '../../errors/fault.ts'

const EXPOSED = [
  'Retry-After',
  'X-Service-Request-Id',
  'X-Service-Invocation-Id',
  'X-Service-Release-Id',
  'ETag',
  'Content-Range',
  'Content-Length',
  'X-Service-File-Id',
  'Content-Disposition',
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

/** An origin as a browser sends it. Any other text is not logged, since it may be a secret. */
const BROWSER_ORIGIN =
  /^(?:null|[a-z][a-z0-9+.-]{0,31}:\/\/(?:[a-z0-9-]{1,63}\.){0,8}[a-z0-9-]{1,63}(?::[0-9]{1,5})?)$/

/** Returns the rejection. The log shows the header only if it has the form of an origin. */
export function originDenied(origin: string | null): Fault {
  const isShown = origin !== null && BROWSER_ORIGIN.test(origin)
  const which = isShown ? `the origin ${origin}` : 'the origin'
  const detail = `${which} is not listed in SERVICE_PRODUCT_ALLOWED_ORIGINS`
  return new Fault('ORIGIN_DENIED', { detail })
}
