/**
 * The one error class of operating failures. Callers branch on `code`; whatever is not a Fault is
 * a programmer's error and reaches a caller only as an internal one.
 */
import { CODES, type Code, type CodeRow, type TableCode } from './codes.ts'
import { KINDS, type Kind } from './kinds.ts'

export interface Violation {
  /** Where in the request, such as `grants[0].role`. Never a value. */
  readonly path: string
  /** What is expected there. Never what was received. */
  readonly rule: string
}

export interface FaultOptions {
  readonly detail?: string | undefined
  readonly cause?: unknown
  readonly violations?: readonly Violation[] | undefined
  readonly retryable?: boolean | undefined
  readonly retryAfterSeconds?: number | undefined
}

export class Fault extends Error {
  readonly code: Code
  readonly kind: Kind
  /** For the log only. Never sent to a caller, never contains a secret or a stored value. */
  readonly detail: string | undefined
  readonly violations: readonly Violation[]
  readonly retryable: boolean
  /** Seconds for Retry-After; null where the kind has none. */
  readonly retryAfterSeconds: number | undefined

  constructor(code: TableCode, options?: FaultOptions)
  constructor(code: Code, options: FaultOptions & { readonly kind: Kind })
  constructor(code: Code, options: FaultOptions & { readonly kind?: Kind } = {}) {
    const row: CodeRow | undefined = Object.hasOwn(CODES, code)
      ? CODES[code as TableCode]
      : undefined
    super(row?.message ?? 'The Function refused the request.', { cause: options.cause })
    this.name = 'Fault'
    this.code = code
    this.kind = row?.kind ?? options.kind ?? 'internal'
    this.detail = options.detail
    this.violations = options.violations ?? []
    this.retryable = options.retryable ?? row?.retryable ?? KINDS[this.kind].retryable
    this.retryAfterSeconds = options.retryAfterSeconds
  }

  get status(): number {
    return KINDS[this.kind].status
  }

  /** The exit code of a command that ends with this failure. */
  get exit(): number {
    return KINDS[this.kind].exit
  }
}

export function isFault(error: unknown, ...codes: readonly Code[]): error is Fault {
  return error instanceof Fault && (codes.length === 0 || codes.includes(error.code))
}
