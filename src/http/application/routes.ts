/** Every route of the application origin: what mount serves, and what tests and documents list. */
import type { TableCode } from '../../errors/codes.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import { UploadAnswer } from '../../wire/files/stored-files.ts'
import { Live, Ready } from '../../wire/health.ts'
import {
  ActionAnswer,
  CallRequest,
  MutationAnswer,
  MutationRequest,
  QueryAnswer,
} from '../../wire/invocations.ts'
import type { Schema } from '../../wire/schema.ts'
import type { Replies } from '../management/route.ts'
import { sendDownload } from './files/downloads.ts'
import { receiveUpload } from './files/uploads.ts'
import type { Gateway, Incoming } from './gateway.ts'
import { type Call, type Invoked, invokeAction, invokeMutation, invokeQuery } from './invoke.ts'

interface Described {
  readonly path: string
  /** What a generated client calls it. */
  readonly name: string
  /** One sentence. */
  readonly summary: string
  readonly replies: Replies
}

/** A Function call. Its failures may also be of a code that the Function declares. */
export interface Invocation extends Described {
  readonly method: 'POST'
  readonly body: Schema<unknown>
  readonly errors: readonly TableCode[]
  readonly invoke: (call: Call) => MaybePromise<Invoked>
  /** The failure of a call whose result was made but has no room among the unsent responses. */
  readonly unsent: { readonly code: TableCode; readonly retryable: boolean }
}

/** One transfer of a file, which a grant alone authorizes. */
export interface FileTransfer extends Described {
  readonly method: 'PUT' | 'GET' | 'HEAD'
  readonly errors: readonly TableCode[]
  /** `id` is the last segment of the path, whatever it is. */
  readonly transfer: (gateway: Gateway, incoming: Incoming, id: string) => Promise<Response>
}

/** Whether the process runs, or admits calls. It fails in no other way. */
export interface Probe extends Described {
  readonly method: 'GET'
  readonly asks: 'liveness' | 'readiness'
}

/** Of every call: the gateway, then the engine. */
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
    summary: 'Calls a Mutation, once for an Operation ID.',
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
    // What else a Mutation that it calls ends with is an error inside the Action.
    errors: [...CALL_ERRORS, 'UNIQUE_VIOLATION'],
    invoke: invokeAction,
    unsent: { code: 'UNAVAILABLE', retryable: false },
  },
]

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
  replies: { 200: null, 206: null, 304: null },
  transfer: sendDownload,
} as const

export const FILE_TRANSFERS: readonly FileTransfer[] = [
  {
    method: 'PUT',
    path: '/v1/files/uploads/:uploadId',
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
    errors: [...TRANSFER_ERRORS, 'FILE_NOT_FOUND', 'RANGE_INVALID'],
  },
  {
    ...DOWNLOAD,
    method: 'HEAD',
    name: 'readFileHeaders',
    summary: 'Sends the headers of a download without the bytes.',
    errors: [...TRANSFER_ERRORS, 'FILE_NOT_FOUND'],
  },
]

export const PROBES: readonly Probe[] = [
  {
    method: 'GET',
    path: '/healthz',
    name: 'readProcessLiveness',
    summary: 'Whether the process runs.',
    replies: { 200: Live },
    asks: 'liveness',
  },
  {
    method: 'GET',
    path: '/readyz',
    name: 'readAdmission',
    summary: 'Whether calls are served: a Channel or a policy is, and documents answer.',
    replies: { 200: Ready, 503: Ready },
    asks: 'readiness',
  },
]
