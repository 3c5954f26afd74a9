/** Every route of the application origin: what mount serves, and what tests and documents list. */
import type { TableCode } from '../../errors/codes.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
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

/** Whether the process runs, or admits calls. It fails in no other way. */
export interface Probe extends Described {
  readonly method: 'GET'
  readonly asks: 'liveness' | 'readiness'
}

/** The Realtime WebSocket, whose messages are in wire/realtime.ts. */
export interface RealtimeRoute extends Described {
  readonly method: 'GET'
  readonly errors: readonly TableCode[]
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

export const REALTIME: RealtimeRoute = {
  method: 'GET',
  path: '/v1/realtime',
  name: 'openRealtime',
  summary: 'Opens a WebSocket with the subprotocol service.realtime.v1.',
  replies: { 101: null },
  errors: ['REQUEST_INVALID', 'ORIGIN_DENIED', 'UPGRADE_REQUIRED', 'UNAVAILABLE', 'BUSY'],
}

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
