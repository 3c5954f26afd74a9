/** Checks of the parts of a runner's frames. Each throws ValidationError. */
import { ValidationError } from '../../value/validation-error.ts'

export function sized(json: readonly unknown[], length: number): void {
  if (json.length !== length) throw new ValidationError(`${length} parts`)
}

export function count(json: unknown): number {
  if (typeof json !== 'number' || !Number.isSafeInteger(json) || json < 0) {
    throw new ValidationError('a count')
  }
  return json
}

export function text64(json: unknown): string {
  if (!isName(json)) throw new ValidationError('a short text')
  return json
}

export function isName(json: unknown): json is string {
  return typeof json === 'string' && json.length <= 64
}

/** Returns an object that has no keys other than these. */
export function record(
  json: unknown,
  keys: ReadonlySet<string>,
): Readonly<Record<string, unknown>> {
  if (json === null || typeof json !== 'object' || Array.isArray(json)) {
    throw new ValidationError('an object')
  }
  for (const key of Object.keys(json))
    if (!keys.has(key)) throw new ValidationError('no unknown field')
  return json as Readonly<Record<string, unknown>>
}
