/**
 * The error class of all expected failures. Callers branch on `code`. Any other exception is a
 * programming error, which a caller only sees as an internal failure.
 */
import { CODES, type Code, type CodeRow, type TableCode } from './codes.ts'
import { KINDS, type Kind } from './kinds.ts'

export interface Violation {
  /** Path of the invalid part of the request, such as `grants[0].role`. Never a value. */
  readonly path: string
  /** The rule that the part violates. Never the received value. */
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
  /** Detail for the log. It is never sent to a caller and has no secret and no stored value. */
  readonly detail: string | undefined
  readonly violations: readonly Violation[]
  readonly retryable: boolean
  /** Value of the Retry-After header in seconds; undefined without one. */
  readonly retryAfterSeconds: number | undefined

  constructor(code: TableCode, options?: FaultOptions)
  constructor(code: Code, options: FaultOptions & { readonly kind: Kind })
  constructor(code: Code, options: FaultOptions & { readonly kind?: Kind } = {}) {
    const row: CodeRow | undefined = Object.hasOwn(CODES, code)
      ? CODES[code as TableCode]
      : undefined
    super(row?.message ?? 'The Function rejected the request.', { cause: options.cause })
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

  /** Exit code of a command that ends with this failure. */
  get exit(): number {
    return KINDS[this.kind].exit
  }
}

/** Returns each violation as a line for people, such as `$.name: a string`. */
export function violationLines({ violations }: Pick<Fault, 'violations'>): string[] {
  return violations.map(({ path, rule }) => `${path}: ${rule}`)
}

/** Returns why an operation failed: the violations, else the detail; null for neither. */
export function reasonText(fault: Pick<Fault, 'violations' | 'detail'>): string | null {
  return violationLines(fault).join('; ') || (fault.detail ?? null)
}

/** Returns whether the error is a Fault with one of the codes, or any Fault if none is given. */
export function isFault(error: unknown, ...codes: readonly Code[]): error is Fault {
  return error instanceof Fault && (codes.length === 0 || codes.includes(error.code))
}
