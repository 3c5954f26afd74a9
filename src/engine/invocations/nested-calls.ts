/**
 * Rules for a call of one Function by another: which Function it reaches, as which principal, how
 * deep calls nest, and how the failure of the called Function looks to its caller.
 */
import { admit, type Principal } from '../../value/identities.ts'
import type { DeclaredErrorKind, FunctionKind, FunctionManifest } from '../../value/manifest.ts'
import { DECLARED_ERROR, OperationError } from '../calls/operation-error.ts'
import { NESTED_CALLS_MAX, NESTED_CHARACTERS_MAX, NESTED_DEPTH_MAX } from '../limits.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'

/** The codes that called Functions failed with. */
export type CalledFailures = Map<string, DeclaredErrorKind>

/**
 * Returns the kind of an error code that the Function, or a Function that it called and that failed
 * with it, declares. Returns null for any other code.
 */
export function errorKind(
  { errors }: FunctionManifest,
  code: string,
  failures: CalledFailures | null,
): DeclaredErrorKind | null {
  return (Object.hasOwn(errors, code) ? errors[code] : failures?.get(code)) ?? null
}

export function declaredError(name: string, code: string): OperationError {
  return new OperationError(DECLARED_ERROR, `${name} failed with ${code}`, code)
}

/** Throws OperationError where the Release has no such Function of this kind. */
export function findCallee(
  { release }: PreparedRelease,
  kind: FunctionKind,
  name: string,
): FunctionManifest {
  const definition = release.functions.get(name)
  const shown = name.slice(0, 100)
  if (definition === undefined) {
    throw new OperationError('TypeError', `there is no Function "${shown}" in this Release`)
  }
  if (definition.kind === kind) return definition
  const method = (of: FunctionKind) => `ctx.run${of[0]!.toUpperCase()}${of.slice(1)}`
  const fix = `call it with ${method(definition.kind)}`
  throw new OperationError('TypeError', `${method(kind)}: "${shown}" is no ${kind}; ${fix}`)
}

/**
 * Returns the principal that the called Function sees. Throws OperationError where its auth mode
 * does not admit the caller.
 */
export function calleePrincipal(
  { name, auth }: FunctionManifest,
  caller: Principal | null,
): Principal | null {
  const admitted = admit(auth, caller)
  if (admitted === 'missing' || admitted === 'denied') {
    const found = caller === null ? 'no identity' : `a ${caller.kind}`
    throw new OperationError('TypeError', `${name} requires a ${auth}, and this call has ${found}`)
  }
  return admitted
}

/** Bounds the memory that one call can take in the server. Throws OperationError beyond it. */
export function checkCharacters(characters: number): void {
  if (characters <= NESTED_CHARACTERS_MAX) return
  throw new OperationError(
    'RangeError',
    `over ${NESTED_CHARACTERS_MAX} characters of arguments or bodies`,
  )
}

/** Throws OperationError beyond the bounds on the number and the depth of nested calls. */
export function checkNesting(count: number, depth: number): void {
  if (depth > NESTED_DEPTH_MAX) {
    throw new OperationError(
      'RangeError',
      `calls of Functions nest over ${NESTED_DEPTH_MAX} levels`,
    )
  }
  if (count > NESTED_CALLS_MAX) {
    throw new OperationError('RangeError', `more than ${NESTED_CALLS_MAX} calls of other Functions`)
  }
}
