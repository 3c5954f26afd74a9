/** Renders failures as HTTP responses, for both origins. */
import type { TableCode } from '../errors/codes.ts'
import { Fault, isFault, type Violation } from '../errors/fault.ts'
import { ValidationError } from '../value/validation-error.ts'

/** Codes of an origin for the failures that its mount finds itself. */
export interface SurfaceCodes {
  readonly invalid: TableCode
  readonly routeNotFound: TableCode
  readonly methodNotAllowed: TableCode
  readonly mediaType: TableCode
  readonly tooLarge: TableCode
  /** The code of a request that exceeds a memory budget or arrives too slowly. */
  readonly busy: TableCode
  /** The code of any request while the server starts or stops. */
  readonly unavailable: TableCode
  readonly internal: TableCode
  /** True if responses list violations. Applications hide them: they would help attackers too. */
  readonly showViolations: boolean
}

export const MANAGEMENT_CODES: SurfaceCodes = {
  invalid: 'PLATFORM_REQUEST_INVALID',
  routeNotFound: 'PLATFORM_NOT_FOUND',
  methodNotAllowed: 'PLATFORM_METHOD_NOT_ALLOWED',
  mediaType: 'PLATFORM_MEDIA_TYPE_UNSUPPORTED',
  tooLarge: 'PLATFORM_BODY_TOO_LARGE',
  busy: 'PLATFORM_UNAVAILABLE',
  unavailable: 'PLATFORM_UNAVAILABLE',
  internal: 'PLATFORM_INTERNAL',
  showViolations: true,
}

export const APPLICATION_CODES: SurfaceCodes = {
  invalid: 'REQUEST_INVALID',
  routeNotFound: 'ROUTE_NOT_FOUND',
  methodNotAllowed: 'METHOD_NOT_ALLOWED',
  mediaType: 'MEDIA_TYPE_UNSUPPORTED',
  tooLarge: 'LIMIT_EXCEEDED',
  busy: 'BUSY',
  unavailable: 'UNAVAILABLE',
  internal: 'INTERNAL',
  showViolations: false,
}

const VIOLATION_RULE_MAX = 200

/** Maps an error to a Fault: a ValidationError to the invalid code, others to the internal one. */
export function toFault(error: unknown, codes: SurfaceCodes): Fault {
  if (isFault(error)) return error
  if (error instanceof ValidationError) {
    return new Fault(codes.invalid, {
      violations: [{ path: error.path, rule: error.rule }],
      detail: error.message,
    })
  }
  return new Fault(codes.internal, { cause: error, detail: String(error) })
}

/** Returns a response with the error envelope (contract/application.md, Error envelope). */
export function errorResponse(
  fault: Fault,
  requestId: string,
  codes: SurfaceCodes,
  message = fault.message,
): Response {
  const error: Record<string, unknown> = {
    code: fault.code,
    message,
    retryable: fault.retryable,
  }
  if (codes.showViolations && fault.violations.length > 0) {
    error.violations = fault.violations.map(shown)
  }
  const headers = new Headers({
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-service-request-id': requestId,
  })
  if (fault.kind === 'unauthenticated') headers.set('www-authenticate', 'Bearer')
  if (fault.status === 429 || fault.status === 503) {
    headers.set('retry-after', String(fault.retryAfterSeconds ?? 1))
  }
  const body = JSON.stringify({ version: 1, status: 'error', requestId, error })
  return new Response(body, { status: fault.status, headers })
}

/** Shortens a long rule, such as a list of identifiers, and marks the cut with `...`. */
function shown({ path, rule }: Violation): Violation {
  if (rule.length <= VIOLATION_RULE_MAX) return { path, rule }
  return { path, rule: `${rule.slice(0, VIOLATION_RULE_MAX - 3)}...` }
}
