/** Tagged values inside plain JSON, where a validator does not decide the type. */
import { isJsonObject, type Json } from '../strict-json.ts'
import { decodeTagged } from '../tagged.ts'
import { ValidationError } from '../validation-error.ts'
import type { Check } from '../validators.ts'
import type { Value } from '../values.ts'

/** Returns the value of JSON that is a canonical tagged value; null for any other JSON. */
export function taggedOrNull(json: Json): { readonly value: Value } | null {
  if (!isJsonObject(json) || typeof json.type !== 'string') return null
  try {
    return { value: decodeTagged(json as Json) }
  } catch (error) {
    if (error instanceof ValidationError) return null
    throw error
  }
}

export function accepts(check: Check, value: Value): boolean {
  try {
    check(value, '$')
    return true
  } catch (error) {
    if (error instanceof ValidationError) return false
    throw error
  }
}
