/** The parts of a management request as its route declares them: parameters, headers, body. */
import { Fault } from '../../errors/fault.ts'
import { isId, type OperationId } from '../../value/ids.ts'
import { parseStrictJson } from '../../value/strict-json.ts'
import { OPERATION_ID_HEADER } from '../../wire/idempotency-records.ts'
import { ANY_MEDIA_TYPE } from '../../wire/media-types.ts'
import { JSON_BODY_BYTES_MAX } from '../../wire/operations/operation.ts'
import { PATH_PARAMETERS, type PathParameter } from '../../wire/operations/parameters.ts'
import { read } from '../../wire/reading/read.ts'
import { NO_FIELDS } from '../../wire/schema.ts'
import { isCompressed, readBody, requireJson } from '../bodies.ts'
import { MANAGEMENT_CODES } from '../errors.ts'
import type { Sender } from '../transfers/senders.ts'
import type { Transfers } from '../transfers/transfers.ts'
import type { Route } from './route.ts'

/** Throws if Hono would keep a part of the path undecoded: one that is not encoded UTF-8. */
export function requireEncodedPath({ url }: Request): void {
  const path = url.slice(0, url.indexOf('?') === -1 ? undefined : url.indexOf('?'))
  if (!path.includes('%')) return
  try {
    decodeURIComponent(path)
  } catch {
    const rule = 'percent-encoded UTF-8'
    throw new Fault('PLATFORM_REQUEST_INVALID', { violations: [{ path: 'url', rule }] })
  }
}

export function checkParams(params: Record<string, string>): void {
  for (const [name, text] of Object.entries(params)) {
    read(PATH_PARAMETERS[name as PathParameter], text, 'PLATFORM_REQUEST_INVALID', 'url')
  }
}

export function readQuery<A>(request: Request, route: Route<A>): unknown {
  const pairs = [...new URL(request.url).searchParams]
  const query = Object.fromEntries(pairs)
  if (Object.keys(query).length < pairs.length) {
    throw new Fault('PLATFORM_REQUEST_INVALID', {
      violations: [{ path: 'query', rule: 'each parameter at most once' }],
    })
  }
  return read(route.query, query, 'PLATFORM_REQUEST_INVALID', 'query')
}

export function readHeaders<A>(
  { headers }: Request,
  route: Route<A>,
): Record<string, string | null> {
  return Object.fromEntries(
    Object.entries(route.headers).map(([name, declared]) => {
      const text = headers.get(name)
      if ('optional' in declared && text === null) return [name, null]
      const schema = 'optional' in declared ? declared.optional : declared
      return [name, read(schema, text, 'PLATFORM_REQUEST_INVALID', name)]
    }),
  )
}

/** Reads the Operation ID. Two headers arrive joined by a comma, which no ID contains. */
export function readOperationId<A>(request: Request, route: Route<A>): OperationId | null {
  if (route.operationId === 'none') return null
  const header = request.headers.get(OPERATION_ID_HEADER)
  if (isId('opn', header) || (header === null && route.operationId === 'optional')) return header
  throw new Fault('PLATFORM_REQUEST_INVALID', {
    violations: [{ path: OPERATION_ID_HEADER, rule: 'a canonical opn_ identifier, exactly once' }],
  })
}

export async function readRouteBody<A>(
  request: Request,
  route: Route<A>,
  transfers: Transfers,
  sender: Sender,
): Promise<unknown> {
  const readAll = (bytesMax: number) => {
    return readBody(request, bytesMax, MANAGEMENT_CODES, transfers, sender)
  }
  if (route.body === null) return readEmptyBody(request, route, readAll)
  if ('mediaType' in route.body) {
    const { headers } = request
    const mediaType = headers.get('content-type')?.toLowerCase()
    const isAccepted = [ANY_MEDIA_TYPE, mediaType].includes(route.body.mediaType)
    if (isAccepted && !isCompressed(headers)) return undefined
    throw new Fault('PLATFORM_MEDIA_TYPE_UNSUPPORTED')
  }
  requireJson(request, MANAGEMENT_CODES)
  const { schema, bytesMax } = route.body
  const bytes = await readAll(bytesMax ?? JSON_BODY_BYTES_MAX)
  return read(schema, parseStrictJson(bytes), 'PLATFORM_REQUEST_INVALID')
}

/** Accepts no body, or the empty object that many clients send with every POST. */
async function readEmptyBody<A>(
  request: Request,
  { method }: Route<A>,
  readAll: (bytesMax: number) => Promise<Uint8Array>,
): Promise<undefined> {
  const bytes = await readAll(method === 'POST' ? JSON_BODY_BYTES_MAX : 0)
  if (bytes.length === 0) return
  requireJson(request, MANAGEMENT_CODES)
  read(NO_FIELDS, parseStrictJson(bytes), 'PLATFORM_REQUEST_INVALID')
}
