/** Every route of the application origin, for mount, the OpenAPI document and tests. */
import type { TableCode } from '../../errors/codes.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import { PACKAGE_BYTES_MAX, PACKAGE_MEDIA_TYPE } from '../../value/packages/workspace-package.ts'
import { UploadAnswer } from '../../wire/files/stored-files.ts'
import { Live, Ready } from '../../wire/health.ts'
import {
  ActionAnswer,
  CallRequest,
  MutationAnswer,
  MutationRequest,
  QueryAnswer,
} from '../../wire/invocations.ts'
import { FreezeRequest, Frozen, WorkspaceState } from '../../wire/releases.ts'
import type { Schema } from '../../wire/schema.ts'
import {
  EXPECTED_HEAD_HEADER,
  ExpectedHeadField,
  PROVENANCE_HEADER,
  ProvenanceHeader,
  Published,
} from '../../wire/workspace.ts'
import {
  type Body,
  type Headers,
  JSON_BODY_BYTES_MAX,
  type RawBody,
  type Replies,
} from '../management/route.ts'
import type { Call, CallResponse } from './calls.ts'
import { freezeHead, readHead, receivePackage } from './development/workspaces.ts'
import { sendDownload } from './files/downloads.ts'
import { sendSignedDownload } from './files/signed-downloads.ts'
import { receiveUpload } from './files/uploads.ts'
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
  /** Failure of a call that ran, when the memory for unsent responses is exhausted. */
  readonly unsent: { readonly code: TableCode; readonly retryable: boolean }
}

/** One transfer of a file, which a grant alone authorizes. */
export interface FileTransfer extends Described {
  readonly method: 'PUT' | 'GET' | 'HEAD'
  /** The grant: a bearer, or the last segment of the path. */
  readonly grant: 'uploadGrant' | 'downloadGrant' | 'signedDownload'
  readonly errors: readonly TableCode[]
  /** `id` is the last segment of the path, whatever it is. */
  readonly transfer: (gateway: Gateway, incoming: Incoming, id: string) => Promise<Response>
}

/** A request with a development key, about one Workspace. */
export interface DevelopmentRoute extends Described {
  readonly method: 'GET' | 'PUT' | 'POST'
  readonly headers: Headers
  readonly body: Body<unknown> | RawBody | null
  readonly errors: readonly TableCode[]
  /** `workspace` is the segment of the path, whatever it is. */
  readonly answer: (gateway: Gateway, incoming: Incoming, workspace: string) => Promise<Response>
}

/** Health probe of the process. It answers with one of its replies only. */
export interface Probe extends Described {
  readonly method: 'GET'
  readonly asks: 'liveness' | 'readiness'
}

/** The Realtime WebSocket, whose messages are in wire/realtime.ts. */
export interface RealtimeRoute extends Described {
  readonly method: 'GET'
  readonly errors: readonly TableCode[]
}

/** Errors of every call: first of the gateway, then of the engine. */
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
    unsent: { code: 'UNAVAILABLE', retryable: false },
  },
]

export const REALTIME: RealtimeRoute = {
  method: 'GET',
  path: '/v1/realtime',
  name: 'openRealtime',
  summary: 'Opens a WebSocket with the subprotocol service.realtime.v1.',
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
  replies: { 200: null, 206: null, 304: null },
  transfer: sendDownload,
} as const

const SIGNED_DOWNLOAD = {
  path: '/v1/files/signed-downloads/:signedDownload',
  grant: 'signedDownload',
  replies: { 200: null, 206: null, 304: null },
  transfer: sendSignedDownload,
} as const

const DOWNLOAD_ERRORS: readonly TableCode[] = [
  ...TRANSFER_ERRORS,
  'FILE_NOT_FOUND',
  'RANGE_INVALID',
  'BUSY',
]
const HEAD_ERRORS: readonly TableCode[] = [...TRANSFER_ERRORS, 'FILE_NOT_FOUND']

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
    method: 'GET',
    name: 'downloadFile',
    summary: 'Sends a file, or one range of it.',
    errors: DOWNLOAD_ERRORS,
  },
  {
    ...DOWNLOAD,
    method: 'HEAD',
    name: 'readFileHeaders',
    summary: 'Sends the headers of a download without the bytes.',
    errors: HEAD_ERRORS,
  },
  {
    ...SIGNED_DOWNLOAD,
    method: 'GET',
    name: 'downloadSignedFile',
    summary: 'Sends a file, or one range of it. The signed URL is the only credential.',
    errors: DOWNLOAD_ERRORS,
  },
  {
    ...SIGNED_DOWNLOAD,
    method: 'HEAD',
    name: 'readSignedFileHeaders',
    summary: 'Sends the headers of a signed download without the bytes.',
    errors: HEAD_ERRORS,
  },
]

/** Failures of every request with a development key. */
const DEVELOPMENT_ERRORS: readonly TableCode[] = [
  'REQUEST_INVALID',
  'APPLICATION_KEY_REQUIRED',
  'APPLICATION_KEY_INVALID',
  'TARGET_DENIED',
  'ORIGIN_DENIED',
  'ROUTE_NOT_FOUND',
  'RATE_LIMITED',
  'INTERNAL',
  'UNAVAILABLE',
  'PRODUCT_UNAVAILABLE',
  'PRODUCT_CORRUPT',
]

/** Failures of a request with a body. */
const BODY_ERRORS = ['LIMIT_EXCEEDED', 'MEDIA_TYPE_UNSUPPORTED', 'BUSY'] as const

const WORKSPACE_PATH = '/v1/workspaces/:workspace'

export const DEVELOPMENT_ROUTES: readonly DevelopmentRoute[] = [
  {
    method: 'GET',
    path: WORKSPACE_PATH,
    name: 'readWorkspaceHead',
    summary: 'Returns the HEAD of a Workspace, and the Project of its packages.',
    headers: {},
    body: null,
    replies: { 200: WorkspaceState },
    errors: DEVELOPMENT_ERRORS,
    answer: readHead,
  },
  {
    method: 'PUT',
    path: WORKSPACE_PATH,
    name: 'synchronizeWorkspace',
    summary: 'Makes a package the HEAD of its Workspace, without validating or serving it.',
    headers: {
      [EXPECTED_HEAD_HEADER]: ExpectedHeadField,
      [PROVENANCE_HEADER]: { optional: ProvenanceHeader },
    },
    body: { mediaType: PACKAGE_MEDIA_TYPE, bytesMax: PACKAGE_BYTES_MAX },
    replies: { 200: Published, 201: Published },
    errors: [
      ...DEVELOPMENT_ERRORS,
      ...BODY_ERRORS,
      'PRODUCT_CAS_CONFLICT',
      'PRODUCT_INVALID',
      'PRODUCT_STATE_CONFLICT',
    ],
    answer: receivePackage,
  },
  {
    method: 'POST',
    path: `${WORKSPACE_PATH}/freeze`,
    name: 'freezeWorkspace',
    summary: 'Validates the Release of the HEAD. With a failed check it is not validated.',
    headers: {},
    body: { schema: FreezeRequest, bytesMax: JSON_BODY_BYTES_MAX },
    replies: { 200: Frozen },
    errors: [
      ...DEVELOPMENT_ERRORS,
      ...BODY_ERRORS,
      'PRODUCT_CAS_CONFLICT',
      'PRODUCT_NOT_FOUND',
      'PRODUCT_RELEASE_RETIRED',
    ],
    answer: freezeHead,
  },
]

export const PROBES: readonly Probe[] = [
  {
    method: 'GET',
    path: '/healthz',
    name: 'readProcessLiveness',
    summary: 'Reports whether the process runs.',
    replies: { 200: Live },
    asks: 'liveness',
  },
  {
    method: 'GET',
    path: '/readyz',
    name: 'readAdmission',
    summary:
      'Reports whether calls are served: a Channel or policy has a Release that can be loaded, ' +
      'and documents are readable.',
    replies: { 200: Ready, 503: Ready },
    asks: 'readiness',
  },
]
