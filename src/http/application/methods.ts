/** The methods of each path of the application origin, for Allow headers and preflights. */
import { functionAt } from './functions/paths.ts'
import {
  DEVELOPMENT_ROUTES,
  FILE_TRANSFERS,
  INVOCATIONS,
  PLAIN_CALLS,
  PROBES,
  REALTIME,
} from './routes.ts'

/** Headers that pages may send. */
const REQUEST_HEADERS = [
  'Content-Type',
  'Accept',
  'Authorization',
  'X-Service-Key',
  'X-Service-Affinity',
  'X-Service-Target',
  'X-Service-Integers',
  'Idempotency-Key',
  'Range',
  'If-Range',
  'If-None-Match',
  'If-Match',
].join(', ')

const S3_METHODS = 'GET, HEAD, PUT, POST, DELETE'

const FIXED: ReadonlyMap<string, string> = new Map(
  [...INVOCATIONS, ...PROBES, REALTIME].map(({ path, method }) => [path, `${method}, OPTIONS`]),
)
const PATTERNS = [...FILE_TRANSFERS, ...DEVELOPMENT_ROUTES].map(({ path, method }) => {
  return { form: new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`), method }
})

const PLAIN_METHODS = [...PLAIN_CALLS.map(({ method }) => method), 'OPTIONS'].join(', ')
/** The methods of a Mutation and of an Action. */
export const MUTATING_METHODS = 'POST, OPTIONS'

/** Returns the methods of a path; undefined for one without a route. */
export function methodsAt(path: string): string | undefined {
  return FIXED.get(path) ?? methodsOfPattern(path)
}

/** Returns the methods of a path with a parameter; undefined for any other. */
function methodsOfPattern(path: string): string | undefined {
  if (functionAt(path) !== null) return PLAIN_METHODS
  const methods = PATTERNS.filter(({ form }) => form.test(path)).map(({ method }) => method)
  return methods.length === 0 ? undefined : [...methods, 'OPTIONS'].join(', ')
}

/**
 * Returns the methods and headers that pages may send. S3 clients send many headers, so any list is
 * allowed to them: their signatures cover the headers.
 */
export function allowedRequests({ headers }: Request, path: string, isS3: boolean) {
  const requested = headers.get('access-control-request-headers') ?? ''
  const names =
    isS3 && /^[\w!#$%&'*+.^`|~, -]{1,2000}$/.test(requested) ? requested : REQUEST_HEADERS
  const methods = isS3 ? S3_METHODS : (methodsOfPattern(path) ?? 'POST')
  return { 'access-control-allow-methods': methods, 'access-control-allow-headers': names }
}
