/** OpenAPI operations of the application origin. */
import { FILE_BYTES_MAX } from '../../value/files/files.ts'
import { documented, idField, TargetField, text, textUpTo } from '../../wire/fields.ts'
import { OPERATION_ID_HEADER } from '../../wire/idempotency-records.ts'
import { PlainArguments } from '../../wire/invocations.ts'
import { ANY_MEDIA_TYPE, JSON_MEDIA_TYPE } from '../../wire/media-types.ts'
import { schema } from '../../wire/schema.ts'
import { AFFINITY, AFFINITY_HEADER } from '../application/callers.ts'
import { ENVELOPE_BYTES_MAX } from '../application/calls.ts'
import {
  DEFAULT_TARGET,
  INTEGERS_HEADER,
  TARGET_HEADER,
  URL_ARGUMENTS_CHARACTERS_MAX,
} from '../application/plain-calls.ts'
import type {
  DevelopmentRoute,
  DocumentRoute,
  FileTransfer,
  Invocation,
  PlainCallRoute,
  Probe,
  RealtimeRoute,
} from '../application/routes.ts'
import { CODING_HEADERS } from './headers.ts'
import { headerParameters, repliesOf, requestBody } from './management.ts'
import type { Operation } from './operations.ts'

const COMMON = {
  origin: 'application',
  capability: null,
  query: null,
  cache: 'no-store',
} as const
const HEADERS = ['Cache-Control', 'X-Content-Type-Options', 'X-Service-Request-Id'] as const
const Affinity = text(
  AFFINITY,
  'calls with one value get one Release; only weighted policies use it',
)

const DOWNLOAD_HEADERS = [
  { name: 'if-none-match', schema: text(/^"[0-9a-f]{64}"$/, 'an entity tag') },
  { name: 'range', schema: text(/^bytes=/, 'one range of bytes') },
  { name: 'if-range', schema: text(/^"[0-9a-f]{64}"$/, 'an entity tag') },
].map((each) => ({ ...each, required: false }))
const FILE_HEADERS = [
  ...HEADERS,
  ...(['Accept-Ranges', 'Content-Disposition', 'Content-Security-Policy', 'ETag'] as const),
  ...(['X-Service-File-Id'] as const),
]

/** Headers of signed URLs, which pages of other sites may embed. */
const SIGNED_HEADERS = [
  ...FILE_HEADERS,
  ...(['Cross-Origin-Resource-Policy', 'Referrer-Policy'] as const),
]
/** The entity tag of the document of Functions, of which there are compressed forms. */
const DOCUMENT_VALUES = { ETag: { type: 'string', pattern: '^W/"[0-9a-f]{64}"$' } } as const
const SIGNED_VALUES = {
  'Content-Disposition': { type: 'string', pattern: '^(?:attachment|inline)' },
  'Content-Security-Policy': { type: 'string', pattern: '^sandbox; ' },
} as const

export function invocationOperation(route: Invocation): Operation {
  const { method, path, name, summary, body, errors, compresses } = route
  return {
    ...COMMON,
    method,
    path,
    name,
    summary,
    errors,
    authorities: [['applicationKey'], ['applicationKey', 'functionalToken']],
    headers: [{ name: AFFINITY_HEADER, schema: Affinity, required: false }],
    body: { mediaType: JSON_MEDIA_TYPE, schema: body, bytesMax: ENVELOPE_BYTES_MAX },
    replies: repliesOf(route),
    replyHeaders: [
      ...HEADERS,
      ...(compresses ? CODING_HEADERS : []),
      ...(['X-Service-Invocation-Id', 'X-Service-Release-Id'] as const),
    ],
    declaredErrors: true,
  }
}

const PlainTarget = documented(TargetField, { default: DEFAULT_TARGET })
const UrlArguments = documented(textUpTo(URL_ARGUMENTS_CHARACTERS_MAX), {
  description: 'a JSON object',
})
const CALL_HEADERS = [
  { name: AFFINITY_HEADER, schema: Affinity, required: false },
  { name: TARGET_HEADER, schema: PlainTarget, required: false },
  { name: INTEGERS_HEADER, schema: text(/^string$/, 'every int64 as a string'), required: false },
]

export function plainCallOperation(route: PlainCallRoute): Operation {
  const { method, path, name, summary, errors, compresses } = route
  const isPost = method === 'POST'
  return {
    ...COMMON,
    method,
    path,
    name,
    summary,
    errors,
    authorities: [['applicationKey'], ['applicationKey', 'functionalToken']],
    query: isPost ? null : schema({ 'arguments?': UrlArguments }),
    headers: isPost
      ? [...CALL_HEADERS, { name: OPERATION_ID_HEADER, schema: idField('opn'), required: false }]
      : CALL_HEADERS,
    body: isPost
      ? { mediaType: JSON_MEDIA_TYPE, schema: PlainArguments, bytesMax: ENVELOPE_BYTES_MAX }
      : null,
    replies: repliesOf(route),
    replyHeaders: [
      ...HEADERS,
      ...(compresses ? CODING_HEADERS : []),
      ...(['X-Service-Invocation-Id', 'X-Service-Release-Id'] as const),
    ],
    declaredErrors: true,
  }
}

export function functionsDocumentOperation(route: DocumentRoute): Operation {
  const { method, path, name, summary, errors, compresses } = route
  return {
    ...COMMON,
    method,
    path,
    name,
    summary,
    errors,
    authorities: [['applicationKey']],
    query: schema({ 'target?': PlainTarget }),
    headers: [
      { name: AFFINITY_HEADER, schema: Affinity, required: false },
      {
        name: 'if-none-match',
        schema: text(/^(?:W\/)?"[0-9a-f]{64}"$/, 'an entity tag'),
        required: false,
      },
    ],
    body: null,
    replies: repliesOf(route),
    cache: 'private, no-cache',
    replyHeaders: [...HEADERS, ...(compresses ? CODING_HEADERS : []), 'ETag'],
    headerValues: DOCUMENT_VALUES,
    declaredErrors: false,
  }
}

export function developmentOperation(route: DevelopmentRoute): Operation {
  const { method, path, name, summary, errors } = route
  return {
    ...COMMON,
    method,
    path,
    name,
    summary,
    errors,
    authorities: [['developmentKey']],
    headers: headerParameters(route),
    body: requestBody(route),
    replies: repliesOf(route),
    replyHeaders: HEADERS,
    declaredErrors: false,
  }
}

export function probeOperation(route: Probe): Operation {
  const { method, path, name, summary } = route
  return {
    ...COMMON,
    method,
    path,
    name,
    summary,
    authorities: [],
    headers: [],
    body: null,
    replies: repliesOf(route),
    replyHeaders: HEADERS,
    errors: [],
    declaredErrors: false,
  }
}

/** The upgrade alone: OpenAPI has no form for the messages of a WebSocket. */
export function realtimeOperation(route: RealtimeRoute): Operation {
  const { method, path, name, summary, errors } = route
  return {
    ...COMMON,
    method,
    path,
    name,
    summary,
    errors,
    authorities: [],
    headers: [],
    body: null,
    replies: repliesOf(route),
    replyHeaders: [],
    declaredErrors: false,
  }
}

export function transferOperation(route: FileTransfer): Operation {
  const { method, path, name, summary, errors, grant } = route
  if (grant === 'signedDownload') return signedOperation(route)
  const isUpload = method === 'PUT'
  const conditions = method === 'GET' ? DOWNLOAD_HEADERS : DOWNLOAD_HEADERS.slice(0, 1)
  return {
    ...COMMON,
    method,
    path,
    name,
    summary,
    errors,
    authorities: [[grant]],
    headers: isUpload ? [] : conditions,
    body: isUpload ? { mediaType: ANY_MEDIA_TYPE, schema: null, bytesMax: FILE_BYTES_MAX } : null,
    replies: repliesOf(route),
    cache: isUpload ? COMMON.cache : 'private, no-store',
    replyHeaders: isUpload ? HEADERS : FILE_HEADERS,
    declaredErrors: false,
  }
}

/** The credential is a parameter of the path, which OpenAPI has no security scheme for. */
function signedOperation(route: FileTransfer): Operation {
  const { method, path, name, summary, errors } = route
  return {
    ...COMMON,
    method,
    path,
    name,
    summary,
    errors,
    authorities: [],
    headers: method === 'GET' ? DOWNLOAD_HEADERS : DOWNLOAD_HEADERS.slice(0, 1),
    body: null,
    replies: repliesOf(route),
    cache: 'private, no-cache',
    replyHeaders: SIGNED_HEADERS,
    headerValues: SIGNED_VALUES,
    declaredErrors: false,
  }
}
