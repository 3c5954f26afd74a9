/** Every route of the application origin, for mount, the OpenAPI document and tests. */
import type { TableCode } from '../../errors/codes.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import { UploadAnswer } from '../../wire/files/stored-files.ts'
import { Live, Ready } from '../../wire/health.ts'
import {
  ActionAnswer,
  CallRequest,
  MutationAnswer,
  MutationRequest,
  PlainAnswer,
  PlainQueryAnswer,
  QueryAnswer,
} from '../../wire/invocations.ts'
import { OpenApiDocument } from '../../wire/openapi.ts'
import type { DevelopmentAccess, Operation, Replies } from '../../wire/operations/operation.ts'
import {
  freezeWorkspace,
  readWorkspaceHead,
  synchronizeWorkspace,
} from '../../wire/operations/workspaces.ts'
import type { Schema } from '../../wire/schema.ts'
import type { Call, CallResponse, Unsent } from './calls.ts'
import { freezeHead, readHead, receivePackage } from './development/workspaces.ts'
import { sendDownload } from './files/downloads.ts'
import { sendSignedDownload } from './files/signed-downloads.ts'
import { receiveUpload } from './files/uploads.ts'
import { DOCUMENT_PATH, FUNCTIONS_PATH } from './functions/paths.ts'
import { sendFunctionsDocument } from './functions-document.ts'
import type { Gateway } from './gateway.ts'
import type { Incoming } from './incoming.ts'
import { invokeAction, invokeMutation, invokeQuery } from './invoke.ts'

interface Described {
  readonly path: string
  /** Name of the method in a generated client. */
  readonly name: string
  /** One sentence for the OpenAPI document. */
  readonly summary: string
  readonly replies: Replies
}

/** A Function call. It can also fail with a code that the Function declares. */
export interface Invocation extends Described {
  readonly method: 'POST'
  readonly body: Schema<unknown>
  readonly errors: readonly TableCode[]
  readonly invoke: (call: Call) => MaybePromise<CallResponse>
  /**
   * True if a response may be compressed, unless it has a grant or its Function forbids it. Results
   * of Mutations and Actions are not: both may issue grants, guests and what other services answer.
   */
  readonly compresses: boolean
  readonly unsent: Unsent
}

/** A call in plain JSON: `:function` names the Function, which decides the kind. */
export interface PlainCallRoute extends Described {
  readonly method: 'GET' | 'POST'
  readonly errors: readonly TableCode[]
  /** True if a response may be compressed where the Function is a Query. */
  readonly compresses: boolean
}

/** The document of the Functions that the key may call. */
export interface DocumentRoute extends Described {
  readonly method: 'GET'
  readonly errors: readonly TableCode[]
  readonly compresses: boolean
  readonly answer: (gateway: Gateway, incoming: Incoming) => Promise<Response>
}

/** One transfer of a file, which a grant alone authorizes. */
export interface FileTransfer extends Described {
  readonly method: 'PUT' | 'GET' | 'HEAD'
  /** The grant: a bearer, or the last segment of the path. */
  readonly grant: 'uploadGrant' | 'downloadGrant' | 'signedDownload'
  readonly errors: readonly TableCode[]
  /** `id` is the unvalidated last segment of the path; the handler validates it. */
  readonly transfer: (gateway: Gateway, incoming: Incoming, id: string) => Promise<Response>
}

/** A request with a development key, about one Workspace. */
export interface DevelopmentRoute extends Operation<DevelopmentAccess> {
  /** `workspace` is the unvalidated segment of the path; the handler validates it. */
  readonly answer: (gateway: Gateway, incoming: Incoming, workspace: string) => Promise<Response>
}

/** A health probe of the process. */
export interface Probe extends Described {
  readonly method: 'GET'
  readonly checks: 'liveness' | 'readiness'
}

/** The Realtime WebSocket, whose messages are in wire/realtime.ts. */
export interface RealtimeRoute extends Described {
  readonly method: 'GET'
  readonly errors: readonly TableCode[]
}

/** Errors of every call: those of the gateway, then those of the engine. */
const CALL_ERRORS: readonly TableCode[] = [
  'REQUEST_INVALID',
  'ARGUMENTS_INVALID',
  'APPLICATION_KEY_REQUIRED',
  'APPLICATION_KEY_INVALID',
  'FUNCTIONAL_TOKEN_REQUIRED',
  'FUNCTIONAL_TOKEN_INVALID',
  'AUTH_POLICY_DENIED',
  'ORIGIN_DENIED',
  'TARGET_DENIED',
  'TARGET_NOT_FOUND',
  'FUNCTION_NOT_FOUND',
  'RELEASE_RETIRED',
  'LIMIT_EXCEEDED',
  'MEDIA_TYPE_UNSUPPORTED',
  'RATE_LIMITED',
  'INTERNAL',
  'FUNCTION_FAILED',
  'RESULT_INVALID',
  'BUSY',
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
]

export const INVOCATIONS: readonly Invocation[] = [
  {
    method: 'POST',
    path: '/v1/query',
    name: 'query',
    summary: 'Calls a Query.',
    body: CallRequest,
    replies: { 200: QueryAnswer },
    errors: CALL_ERRORS,
    invoke: invokeQuery,
    compresses: true,
    unsent: { code: 'BUSY', retryable: true },
  },
  {
    method: 'POST',
    path: '/v1/mutation',
    name: 'mutation',
    summary: 'Calls a Mutation. Its effects happen once for each Operation ID.',
    body: MutationRequest,
    replies: { 200: MutationAnswer },
    errors: [
      ...CALL_ERRORS,
      'UNIQUE_VIOLATION',
      'WRITE_CONFLICT',
      'RESULT_UNCERTAIN',
      'OPERATION_REUSED',
    ],
    invoke: invokeMutation,
    compresses: false,
    unsent: { code: 'RESULT_UNCERTAIN', retryable: true },
  },
  {
    method: 'POST',
    path: '/v1/action',
    name: 'action',
    summary: 'Calls an Action.',
    body: CallRequest,
    replies: { 200: ActionAnswer },
    // The other errors of a Mutation that it calls are thrown inside the Action.
    errors: [...CALL_ERRORS, 'UNIQUE_VIOLATION'],
    invoke: invokeAction,
    compresses: false,
    unsent: { code: 'UNAVAILABLE', retryable: false },
  },
]

/** Failures of calls whose response could not be kept, in the order of INVOCATIONS. */
const [ofQueries, ofMutations, ofActions] = INVOCATIONS.map(({ unsent }) => unsent)
export const UNSENT = { query: ofQueries!, mutation: ofMutations!, action: ofActions! }

export const FUNCTIONS_DOCUMENT: DocumentRoute = {
  method: 'GET',
  path: DOCUMENT_PATH,
  name: 'readFunctionsDocument',
  summary: 'Returns a typed OpenAPI document of the Functions that the key may call.',
  replies: { 200: OpenApiDocument, 304: null },
  errors: [
    'REQUEST_INVALID',
    'APPLICATION_KEY_REQUIRED',
    'APPLICATION_KEY_INVALID',
    'AUTH_POLICY_DENIED',
    'ORIGIN_DENIED',
    'TARGET_DENIED',
    'TARGET_NOT_FOUND',
    'RELEASE_RETIRED',
    'LIMIT_EXCEEDED',
    'RATE_LIMITED',
    'INTERNAL',
    'BUSY',
    'UNAVAILABLE',
  ],
  compresses: true,
  answer: sendFunctionsDocument,
}

const PLAIN_PATH = `${FUNCTIONS_PATH}:function`

export const PLAIN_CALLS: readonly PlainCallRoute[] = [
  {
    method: 'POST',
    path: PLAIN_PATH,
    name: 'callFunction',
    summary:
      'Calls a Function with its arguments as a JSON object, and answers its result as JSON. ' +
      'A Mutation without an operation ID gets one, and is not safe to repeat.',
    replies: { 200: PlainAnswer },
    errors: [...INVOCATIONS[1]!.errors, 'ROUTE_NOT_FOUND'],
    compresses: true,
  },
  {
    method: 'GET',
    path: PLAIN_PATH,
    name: 'callQuery',
    summary: 'Calls a Query with its arguments as a JSON object in the URL.',
    replies: { 200: PlainQueryAnswer },
    errors: [
      ...CALL_ERRORS.filter((code) => code !== 'MEDIA_TYPE_UNSUPPORTED'),
      'ROUTE_NOT_FOUND',
      'METHOD_NOT_ALLOWED',
    ],
    compresses: true,
  },
]

export const REALTIME: RealtimeRoute = {
  method: 'GET',
  path: '/v1/realtime',
  name: 'openRealtime',
  summary: 'Opens a WebSocket with the subprotocol service.realtime.v2 or service.realtime.v1.',
  replies: { 101: null },
  errors: ['REQUEST_INVALID', 'ORIGIN_DENIED', 'UPGRADE_REQUIRED', 'UNAVAILABLE', 'BUSY'],
}
/** Failures of every transfer. */
const TRANSFER_ERRORS: readonly TableCode[] = [
  'REQUEST_INVALID',
  'GRANT_INVALID',
  'ORIGIN_DENIED',
  'RATE_LIMITED',
  'INTERNAL',
  'UNAVAILABLE',
]

const DOWNLOAD = {
  path: '/v1/files/downloads/:fileId',
  grant: 'downloadGrant',
  transfer: sendDownload,
} as const

const SIGNED_DOWNLOAD = {
  path: '/v1/files/signed-downloads/:signedDownload',
  grant: 'signedDownload',
  transfer: sendSignedDownload,
} as const

const SENDS_BYTES = {
  method: 'GET',
  replies: { 200: 'bytes', 206: 'bytes', 304: null },
  errors: [...TRANSFER_ERRORS, 'FILE_NOT_FOUND', 'RANGE_INVALID', 'BUSY'],
} as const

/** A range is answered to GET alone; the headers of HEAD have no body. */
const SENDS_HEADERS = {
  method: 'HEAD',
  replies: { 200: null, 304: null },
  errors: [...TRANSFER_ERRORS, 'FILE_NOT_FOUND'],
} as const

export const FILE_TRANSFERS: readonly FileTransfer[] = [
  {
    method: 'PUT',
    path: '/v1/files/uploads/:uploadId',
    grant: 'uploadGrant',
    name: 'uploadFile',
    summary: 'Uses an upload grant: stores the body as a file.',
    replies: { 201: UploadAnswer },
    errors: [
      ...TRANSFER_ERRORS,
      'FILE_NOT_FOUND',
      'LIMIT_EXCEEDED',
      'MEDIA_TYPE_UNSUPPORTED',
      'BUSY',
      'WRITE_CONFLICT',
      'RESULT_UNCERTAIN',
      'DEADLINE_EXCEEDED',
    ],
    transfer: receiveUpload,
  },
  {
    ...DOWNLOAD,
    ...SENDS_BYTES,
    name: 'downloadFile',
    summary: 'Sends a file, or one range of it.',
  },
  {
    ...DOWNLOAD,
    ...SENDS_HEADERS,
    name: 'readFileHeaders',
    summary: 'Sends the headers of a download without the bytes.',
  },
  {
    ...SIGNED_DOWNLOAD,
    ...SENDS_BYTES,
    name: 'downloadSignedFile',
    summary: 'Sends a file, or one range of it. The signed URL is the only credential.',
  },
  {
    ...SIGNED_DOWNLOAD,
    ...SENDS_HEADERS,
    name: 'readSignedFileHeaders',
    summary: 'Sends the headers of a signed download without the bytes.',
  },
]

export const DEVELOPMENT_ROUTES: readonly DevelopmentRoute[] = [
  { ...readWorkspaceHead, answer: readHead },
  { ...synchronizeWorkspace, answer: receivePackage },
  { ...freezeWorkspace, answer: freezeHead },
]

export const PROBES: readonly Probe[] = [
  {
    method: 'GET',
    path: '/healthz',
    name: 'readProcessLiveness',
    summary: 'Reports whether the process runs.',
    replies: { 200: Live },
    checks: 'liveness',
  },
  {
    method: 'GET',
    path: '/readyz',
    name: 'readAdmission',
    summary:
      'Reports whether calls are served: a Channel or policy has a Release that can be loaded, ' +
      'and documents are readable.',
    replies: { 200: Ready, 503: Ready },
    checks: 'readiness',
  },
]
