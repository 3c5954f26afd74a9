/** The arguments of a subscription. */
import type { Json } from '../../../value/strict-json.ts'
import { decodeTagged } from '../../../value/tagged.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import type { ValueObject } from '../../../value/values.ts'

/** Parses the arguments. Throws ValidationError. */
export function readArguments(json: Json): ValueObject {
  const value = decodeTagged(json, 'arguments')
  if (!(value instanceof Map)) throw new ValidationError('an object value', 'arguments')
  return value as ValueObject
}
