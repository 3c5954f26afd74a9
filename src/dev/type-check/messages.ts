/** The messages between a build and its type checker, each a line of JSON. */
import type { FunctionKind } from '../../value/manifest.ts'
import type { Problem } from '../workspace/problems.ts'

/** First argument of the process, followed by the directory of the Workspace. */
export const TYPE_CHECK_ARGUMENT = '__type-check'

/** A Function whose code is searched for mistakes that types cannot express. */
export interface CheckedFunction {
  readonly name: string
  readonly kind: FunctionKind
  /** Relative to the Workspace. */
  readonly file: string
  readonly exported: string
  /** The secrets that the Function declares. */
  readonly secrets: readonly string[]
}

export interface TypeCheckRequest {
  /** Files to check with all that they import, relative to the Workspace. */
  readonly files: readonly string[]
  readonly functions: readonly CheckedFunction[]
}

export interface TypeCheckResult {
  readonly problems: readonly Problem[]
  /** Version and origin of the compiler, such as "6.0.3, embedded". */
  readonly compiler: string
}

export type TypeCheckReply = TypeCheckResult | { readonly failure: string }
