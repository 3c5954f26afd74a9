/**
 * Kinds of failures: how HTTP, the command line and Realtime report them. Every code of codes.ts
 * has one kind.
 */

export interface KindRow {
  /** HTTP status code. */
  readonly status: number
  /** Exit code of the command line (contract/wire.md, Exit codes). */
  readonly exit: number
  /** True if an identical request may succeed later. */
  readonly retryable: boolean
}

export const KINDS = {
  invalid: { status: 400, exit: 8, retryable: false },
  unauthenticated: { status: 401, exit: 3, retryable: false },
  forbidden: { status: 403, exit: 3, retryable: false },
  not_found: { status: 404, exit: 7, retryable: false },
  method_not_allowed: { status: 405, exit: 8, retryable: false },
  not_acceptable: { status: 406, exit: 8, retryable: false },
  conflict: { status: 409, exit: 4, retryable: false },
  gone: { status: 410, exit: 7, retryable: false },
  too_large: { status: 413, exit: 8, retryable: false },
  media_type: { status: 415, exit: 8, retryable: false },
  range: { status: 416, exit: 8, retryable: false },
  upgrade_required: { status: 426, exit: 8, retryable: false },
  rate_limited: { status: 429, exit: 5, retryable: true },
  internal: { status: 500, exit: 1, retryable: false },
  corrupt: { status: 500, exit: 6, retryable: false },
  unavailable: { status: 503, exit: 5, retryable: true },
  uncertain: { status: 503, exit: 9, retryable: false },
  deadline: { status: 504, exit: 5, retryable: true },
  /** The server cannot start. Never sent over HTTP. */
  startup: { status: 500, exit: 1, retryable: false },
  /** The server cannot start before an operator corrects a setting: EX_CONFIG of sysexits.h. */
  setting: { status: 500, exit: 78, retryable: false },
  /** The command line is not valid. Never sent over HTTP. */
  usage: { status: 400, exit: 2, retryable: false },
} as const satisfies Record<string, KindRow>

export type Kind = keyof typeof KINDS
