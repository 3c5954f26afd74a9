/** Options that hooks and endpoints share. */
import { isRoutePath } from '../value/http/paths.ts'
import { HTTP_METHODS, type HttpMethod } from '../value/http/routes.ts'
import { DefinitionError, quotedList } from './definition-errors.ts'
import { kindOf } from './validators.ts'

/** Throws DefinitionError, as all readers of this file do. */
export function pathOf(value: unknown, owner: string): string {
  if (typeof value === 'string' && isRoutePath(value)) return value
  throw new DefinitionError(
    `${owner} path is ${typeof value === 'string' ? `"${value}"` : kindOf(value)}`,
    'Write "/" and segments of letters, digits, ".", "_", "~", "-", or :name, such as "/stripe"',
  )
}

/** Returns the methods, sorted. */
export function methodsOf(value: unknown, owner: string): readonly HttpMethod[] {
  if (!Array.isArray(value) || value.length === 0) {
    throw new DefinitionError(`${owner} methods is not a list of methods`, 'Write ["POST"]')
  }
  for (const [i, method] of value.entries()) {
    if (!(HTTP_METHODS as readonly unknown[]).includes(method)) {
      const shown = typeof method === 'string' ? `"${method}"` : kindOf(method)
      throw new DefinitionError(
        `${owner} methods lists ${shown}`,
        `Use ${quotedList(HTTP_METHODS)}`,
      )
    }
    if (value.indexOf(method) === i) continue
    throw new DefinitionError(`${owner} methods lists "${method}" twice`, 'List each method once')
  }
  return (value as HttpMethod[]).toSorted()
}

export function bytesOf(
  value: unknown,
  { owner, max }: { readonly owner: string; readonly max: number },
): number {
  const isCount = typeof value === 'number' && Number.isInteger(value)
  if (isCount && value >= 1 && value <= max) return value
  const shown = typeof value === 'number' ? String(value) : kindOf(value)
  const fix = `Write a whole number from 1 to ${max}`
  throw new DefinitionError(`${owner} maximumBytes is ${shown}`, fix)
}
