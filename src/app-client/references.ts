/** References to Functions, as in `_generated/api.ts`, and their types. */
import { type CallError, isCallError, type ServiceErrorCode } from './errors.ts'

export type FunctionKind = 'query' | 'mutation' | 'action'

/** A Function with the shapes of its arguments and, for the compiler, its types. */
export interface FunctionReference<
  Kind extends FunctionKind,
  Arguments,
  Result,
  ErrorCode extends string,
> {
  readonly kind: Kind
  readonly name: string
  /** A shape for each argument (shapes.ts). */
  readonly arguments: { readonly [name: string]: unknown }
  /** A type for the compiler alone; absent at run time. */
  readonly types?: {
    readonly arguments: Arguments
    readonly result: Result
    readonly errorCode: ErrorCode
  }
}

export type Query<A, R, E extends string> = FunctionReference<'query', A, R, E>
export type Mutation<A, R, E extends string> = FunctionReference<'mutation', A, R, E>
export type Action<A, R, E extends string> = FunctionReference<'action', A, R, E>

/**
 * The parameters of a call: arguments may be left out where all of them are optional. The type of
 * the arguments comes from the reference alone. A compiler that also inferred it from the call
 * would widen it until the call fits.
 */
export type CallParameters<Arguments, Options> =
  Record<never, never> extends Arguments
    ? [args?: NoInfer<Arguments>, options?: Options]
    : [args: NoInfer<Arguments>, options?: Options]

/** The arguments of a Query that is watched in pages, without those that select a page. */
export type PageArguments<Arguments> = NoInfer<Omit<Arguments, 'cursor' | 'limit' | 'until'>>

/** The errors of calls of one Function. */
export type ErrorOf<ErrorCode extends string> = CallError<ErrorCode | ServiceErrorCode>

/**
 * Returns whether an exception is an error of a call of this Function, so that the compiler knows
 * its codes: those that the Function declares, with the prefix `APP_`, and those of the service.
 */
export function isErrorOf<ErrorCode extends string>(
  _reference: FunctionReference<FunctionKind, unknown, unknown, ErrorCode>,
  error: unknown,
): error is ErrorOf<ErrorCode> {
  return isCallError(error)
}
