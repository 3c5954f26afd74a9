/** OpenAPI operations of the management origin, including the steps of mount. */
import type { TableCode } from '../../errors/codes.ts'
import { idField } from '../../wire/fields.ts'
import { OPERATION_ID_HEADER } from '../../wire/operations.ts'
import { type Schema, schema } from '../../wire/schema.ts'
import {
  ANY_MEDIA_TYPE,
  type Body,
  JSON_BODY_BYTES_MAX,
  JSON_MEDIA_TYPE,
  type Route,
} from '../management/route.ts'
import type { HeaderName } from './headers.ts'
import type { Header, Operation, Reply, RequestBody } from './operations.ts'

type AnyRoute = Route<never>

const HEADERS: readonly HeaderName[] = [
  'Cache-Control',
  'X-Content-Type-Options',
  'X-Service-Request-Id',
]
const FILE_HEADERS: readonly HeaderName[] = [
  ...HEADERS,
  'Accept-Ranges',
  'Content-Disposition',
  'Content-Security-Policy',
  'ETag',
  'X-Service-File-Id',
]

/**
 * Headers with which a client asks for a part of an object, or only for another one. What they do
 * not understand, servers ignore (RFC 9110, sections 13.1.2 and 14.2).
 */
const CONDITIONS: readonly Header[] = ['if-none-match', 'range', 'if-range'].map((name) => {
  return { name, schema: schema('string'), required: false }
})

/** Failures of reading bytes. */
const BYTES_ERRORS: readonly TableCode[] = [
  'PLATFORM_BODY_TOO_LARGE',
  'RANGE_INVALID',
  'UNAVAILABLE',
]

/** Returns the operation of a route, and that of HEAD where the response is the bytes of a file. */
export function managementOperations(route: AnyRoute): Operation[] {
  const operation = managementOperation(route)
  const isFile = route.method === 'GET' && route.mediaTypes.includes(ANY_MEDIA_TYPE)
  return isFile ? [operation, headOperation(operation)] : [operation]
}

/** A range is answered to GET alone, so that none is too large or beyond the end. */
function headOperation(read: Operation): Operation {
  return {
    ...read,
    method: 'HEAD',
    name: `${read.name}Headers`,
    summary: 'Returns the headers of an object, of any size, without its bytes.',
    headers: read.headers.filter(({ name }) => name === 'if-none-match'),
    replies: [200, 304].map((status) => ({ status, schema: null, mediaTypes: [] })),
    errors: read.errors.filter((code) => !BYTES_ERRORS.includes(code)),
  }
}

function managementOperation(route: AnyRoute): Operation {
  const { method, path, name, summary, access, authorities, query } = route
  return {
    origin: 'management',
    method,
    path,
    name,
    summary,
    capability: access.kind === 'public' ? null : access.capability,
    authorities,
    query,
    headers: [
      ...headersOf(route),
      ...(route.mediaTypes.includes(ANY_MEDIA_TYPE) ? CONDITIONS : []),
    ],
    body: bodyOf(route),
    replies: repliesOf(route),
    replyHeaders: [
      ...(route.mediaTypes.includes(ANY_MEDIA_TYPE) ? FILE_HEADERS : HEADERS),
      ...(access.kind === 'public' ? [] : (['X-Service-Version'] as const)),
    ],
    cache: route.cache,
    errors: [...new Set([...mountErrors(route), ...route.errors])],
    declaredErrors: false,
  }
}

/** Operation IDs are a header of management routes alone. */
export function headersOf({
  headers,
  operationId = 'none',
}: Pick<AnyRoute, 'headers'> & Partial<Pick<AnyRoute, 'operationId'>>): Header[] {
  const declared = Object.entries(headers).map(([name, header]) => {
    return 'optional' in header
      ? { name, schema: header.optional, required: false }
      : { name, schema: header, required: true }
  })
  if (operationId === 'none') return declared
  const required = operationId === 'required'
  return [...declared, { name: OPERATION_ID_HEADER, schema: idField('opn'), required }]
}

export function bodyOf({ body }: Pick<AnyRoute, 'body'>): RequestBody | null {
  if (body === null) return null
  if ('mediaType' in body) {
    return { mediaType: body.mediaType, schema: null, bytesMax: body.bytesMax }
  }
  const { schema, bytesMax = JSON_BODY_BYTES_MAX } = body as Body<unknown>
  return { mediaType: JSON_MEDIA_TYPE, schema, bytesMax }
}

function repliesOf({ replies, mediaTypes }: AnyRoute): Reply[] {
  return Object.entries(replies).map(([status, schema]: [string, Schema<object> | null]) => {
    const isFile = mediaTypes.includes(ANY_MEDIA_TYPE) && status !== '304'
    return {
      status: Number(status),
      schema,
      mediaTypes: schema === null && !isFile ? [] : mediaTypes,
    }
  })
}

/** Errors of the steps before the handler, and of any access to storage. */
function mountErrors({ method, access, admit, rate, body, operationId }: AnyRoute): TableCode[] {
  const codes: TableCode[] = [
    'PLATFORM_REQUEST_INVALID',
    'PLATFORM_NOT_ACCEPTABLE',
    'PLATFORM_INTERNAL',
  ]
  const authenticates = access.kind !== 'public' || admit !== null
  if (authenticates) codes.push('PLATFORM_AUTHENTICATION_FAILED')
  if (authenticates || rate === 'peer') codes.push('PLATFORM_RATE_LIMITED')
  if (access.kind !== 'public') {
    codes.push('PLATFORM_IDENTITY_STORAGE_CORRUPT', 'PLATFORM_UNAVAILABLE')
    if (access.capability !== null) codes.push('PLATFORM_ACCESS_DENIED')
  }
  if (access.kind === 'environment') {
    codes.push('PRODUCT_CORRUPT', 'PRODUCT_NOT_FOUND', 'PRODUCT_UNAVAILABLE')
    if (operationId !== 'none') codes.push('PRODUCT_OPERATION_REUSED')
  }
  if (body !== null || method === 'POST') {
    codes.push('PLATFORM_BODY_TOO_LARGE', 'PLATFORM_MEDIA_TYPE_UNSUPPORTED')
  }
  return codes
}
