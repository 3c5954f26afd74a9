/** Checks of what one Function passes to another. */
import type { FunctionManifest } from '../../value/manifest.ts'
import { encodeStored, fromStoredJson } from '../../value/stored.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { OperationError } from '../calls/operation-error.ts'
import { ARGUMENT_BYTES_MAX } from '../limits.ts'
import type { PreparedRelease } from './prepared-release.ts'

/** Checks the arguments and returns their stored JSON. Throws OperationError for invalid ones. */
export function calleeArguments(
  prepared: PreparedRelease,
  { name }: FunctionManifest,
  json: unknown,
): string {
  const { coerceArguments } = prepared.functions.get(name)!
  const text = withOperationError(`arguments of ${name}`, () =>
    encodeStored(coerceArguments(fromStoredJson(json), 'arguments')),
  )
  if (text.length <= ARGUMENT_BYTES_MAX) return text
  throw new OperationError(
    'RangeError',
    `arguments of ${name}: at most ${ARGUMENT_BYTES_MAX} bytes`,
  )
}

/** Converts a ValidationError of `encode` to an OperationError. */
export function withOperationError(subject: string, encode: () => string): string {
  try {
    return encode()
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new OperationError('TypeError', `${subject}: ${error.path} must be ${error.rule}`)
  }
}
