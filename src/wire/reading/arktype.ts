/**
 * arktype with the keywords of TypeScript alone. Its library of further ones, such as
 * `string.email`, takes longer to load than all the rest, and no schema uses it.
 */
import './arktype-settings.ts'
import type { ArkErrors as Errors, Type } from 'arktype'
import { arkTsKeywords } from 'arktype/internal/keywords/ts.js'
import { scope } from 'arktype/internal/scope.js'

const keywords = { ...arkTsKeywords }
const wire = scope(keywords)
/** The scope whose types become code, which takes some milliseconds each. */
const compiler = scope(keywords, { jitless: false })

export type ArkErrors = Errors
export const ArkErrors: typeof Errors = wire.type.errors

/** Parses a definition, in which types may stand. */
export function typeFrom(definition: unknown): Type {
  return wire.type.raw(definition) as unknown as Type
}

/** Returns the same type as code. */
export function compiled(type: Type): Type {
  return compiler.type.raw(type) as unknown as Type
}
