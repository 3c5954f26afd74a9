/** The error class of the client, and the codes that an error can have. */
import type { TableCode } from '../errors/codes.ts'

/** Codes of the service, and those of the client itself, which begin with CLIENT_. */
export const SERVICE_CODES = [
  'REQUEST_INVALID',
  'ARGUMENTS_INVALID',
  'APPLICATION_KEY_REQUIRED',
  'APPLICATION_KEY_INVALID',
  'FUNCTIONAL_TOKEN_REQUIRED',
  'FUNCTIONAL_TOKEN_INVALID',
  'GRANT_INVALID',
  'AUTH_POLICY_DENIED',
  'ORIGIN_DENIED',
  'TARGET_DENIED',
  'TARGET_NOT_FOUND',
  'FUNCTION_NOT_FOUND',
  'FILE_NOT_FOUND',
  'ROUTE_NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'MEDIA_TYPE_UNSUPPORTED',
  'OPERATION_REUSED',
  'UNIQUE_VIOLATION',
  'WRITE_CONFLICT',
  'RELEASE_RETIRED',
  'LIMIT_EXCEEDED',
  'RANGE_INVALID',
  'RATE_LIMITED',
  'UPGRADE_REQUIRED',
  'INTERNAL',
  'FUNCTION_FAILED',
  'RESULT_INVALID',
  'BUSY',
  'UNAVAILABLE',
  'RESULT_UNCERTAIN',
  'DEADLINE_EXCEEDED',
  'CLIENT_SERVER_UNREACHABLE',
  'CLIENT_RESULT_UNCERTAIN',
  'CLIENT_RESPONSE_INVALID',
  'CLIENT_FILE_FAILED',
  'CLIENT_INTERRUPTED',
] as const satisfies readonly TableCode[]
export type ServiceErrorCode = (typeof SERVICE_CODES)[number]

export interface CallErrorDetails {
  readonly retryable?: boolean
  readonly requestId?: string | null
  readonly operationId?: string | null
  readonly outcomeKnown?: boolean
  readonly cause?: unknown
}

/**
 * A failed call. Branch on `code` and `retryable`, never on the message. The code of an error that
 * the Function declares begins with `APP_`.
 */
export class CallError<Code extends string = string> extends Error {
  override readonly name = 'CallError'
  readonly code: Code
  /** True if the same call may succeed later. */
  readonly retryable: boolean
  /** The request ID in the log of the server; null without a response. */
  readonly requestId: string | null
  /** The operation ID of a Mutation, for sending it again; null for other calls. */
  readonly operationId: string | null
  /** False if the call may have taken effect although it failed. */
  readonly outcomeKnown: boolean

  constructor(code: Code, message: string, details: CallErrorDetails = {}) {
    super(message, { cause: details.cause })
    this.code = code
    this.retryable = details.retryable ?? false
    this.requestId = details.requestId ?? null
    this.operationId = details.operationId ?? null
    this.outcomeKnown = details.outcomeKnown ?? true
  }
}

/** Returns an error of the client itself. */
export function clientError(
  code: ServiceErrorCode,
  message: string,
  details: CallErrorDetails = {},
): CallError<ServiceErrorCode> {
  return new CallError(code, message, details)
}

export function responseInvalid(what: string, requestId: string | null = null): CallError {
  return clientError('CLIENT_RESPONSE_INVALID', `The server sent ${what}.`, { requestId })
}

export function isCallError(error: unknown): error is CallError {
  return error instanceof Error && error.name === 'CallError'
}

/** Returns whether an error has this code. */
export function hasCode(error: unknown, ...codes: readonly ServiceErrorCode[]): boolean {
  return isCallError(error) && (codes as readonly string[]).includes(error.code)
}

/** Wraps any other exception, such as that of a hook, in a CallError. */
export function toCallError(error: unknown, code: ServiceErrorCode, message: string): CallError {
  return isCallError(error) ? error : clientError(code, message, { cause: error })
}
