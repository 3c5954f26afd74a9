/** OpenAPI operations of the management origin, including the steps of mount. */
import type { TableCode } from '../../errors/codes.ts'
import { idField } from '../../wire/fields.ts'
import { OPERATION_ID_HEADER } from '../../wire/idempotency-records.ts'
import { ANY_MEDIA_TYPE, JSON_MEDIA_TYPE } from '../../wire/media-types.ts'
import {
  JSON_BODY_BYTES_MAX,
  type ManagementOperation,
  type Operation as WireOperation,
} from '../../wire/operations/operation.ts'
import { CODING_HEADERS, type HeaderName } from './headers.ts'
import type { Header, Operation, Reply, RequestBody } from './operations.ts'

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

const ARCHIVE_HEADERS: readonly HeaderName[] = [...HEADERS, 'Content-Disposition']

/** Errors of responses with the bytes of a file. */
const BYTES_ERRORS: readonly TableCode[] = [
  'PLATFORM_BODY_TOO_LARGE',
  'RANGE_INVALID',
  'UNAVAILABLE',
]

/** Returns the operation, and that of HEAD where the response is the bytes of a file. */
export function managementOperations(declared: ManagementOperation): Operation[] {
  const operation = managementOperation(declared)
  const isFile = declared.method === 'GET' && declared.mediaTypes.includes(ANY_MEDIA_TYPE)
  return isFile ? [operation, headOperation(operation)] : [operation]
}

/** Returns the operation of HEAD, which ignores ranges and so cannot fail because of one. */
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

function managementOperation(operation: ManagementOperation): Operation {
  const { method, path, name, summary, access, authorities, query, cache, compresses } = operation
  const isFile = operation.mediaTypes.includes(ANY_MEDIA_TYPE)
  const isArchive = Object.values(operation.replies).includes('bytes')
  return {
    origin: 'management',
    method,
    path,
    name,
    summary,
    capability: access.kind === 'public' ? null : access.capability,
    authorities,
    query,
    headers: headerParameters(operation),
    body: requestBody(operation),
    replies: repliesOf(operation),
    replyHeaders: [
      ...(isFile ? FILE_HEADERS : isArchive ? ARCHIVE_HEADERS : HEADERS),
      ...(compresses ? CODING_HEADERS : []),
      ...(access.kind === 'public' ? [] : (['X-Service-Version'] as const)),
    ],
    cache,
    errors: [...new Set([...mountErrors(operation), ...operation.errors])],
    declaredErrors: operation.declaredErrors,
  }
}

/** Returns the header parameters of a route. Only management routes have an Operation ID. */
export function headerParameters({
  headers,
  operationId,
}: Pick<WireOperation, 'headers' | 'operationId'>): Header[] {
  const declared = Object.entries(headers).map(([name, header]) => {
    return 'optional' in header
      ? { name, schema: header.optional, required: false }
      : { name, schema: header, required: true }
  })
  if (operationId === 'none') return declared
  const required = operationId === 'required'
  return [...declared, { name: OPERATION_ID_HEADER, schema: idField('opn'), required }]
}

export function requestBody({ body }: Pick<WireOperation, 'body'>): RequestBody | null {
  if (body === null) return null
  if ('mediaType' in body) {
    return { mediaType: body.mediaType, schema: null, bytesMax: body.bytesMax }
  }
  const { schema, bytesMax = JSON_BODY_BYTES_MAX } = body
  return { mediaType: JSON_MEDIA_TYPE, schema, bytesMax }
}

export function repliesOf({
  replies,
  mediaTypes = [JSON_MEDIA_TYPE],
}: Pick<WireOperation, 'replies'> & Partial<Pick<WireOperation, 'mediaTypes'>>): Reply[] {
  return Object.entries(replies).map(([status, form]) => {
    if (form === 'bytes')
      return { status: Number(status), schema: null, mediaTypes: [ANY_MEDIA_TYPE] }
    return { status: Number(status), schema: form, mediaTypes: form === null ? [] : mediaTypes }
  })
}

/** Errors of the steps before the handler, and of any access to storage. */
function mountErrors({
  method,
  access,
  authorities,
  rate,
  body,
  operationId,
}: ManagementOperation): TableCode[] {
  const codes: TableCode[] = [
    'PLATFORM_REQUEST_INVALID',
    'PLATFORM_NOT_ACCEPTABLE',
    'PLATFORM_INTERNAL',
  ]
  const authenticates = authorities.length > 0
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
