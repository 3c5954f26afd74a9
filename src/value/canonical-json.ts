/** RFC 8785 canonical JSON, the form of manifests and the input of fingerprints. */

import type { Json } from './strict-json.ts'
import { ValidationError } from './validation-error.ts'

/**
 * Returns text with keys in UTF-16 order, no white space, and numbers as ECMAScript prints them.
 */
export function canonicalJson(value: Json): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') {
    if (!value.isWellFormed()) throw new ValidationError('no lone surrogate')
    return JSON.stringify(value)
  }
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new ValidationError('a finite number')
    return JSON.stringify(value)
  }
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const members = Object.keys(value)
    .sort()
    .map((key) => `${canonicalJson(key)}:${canonicalJson(value[key]!)}`)
  return `{${members.join(',')}}`
}
