/**
 * arktype with the keywords of TypeScript only. No schema uses its library of further keywords,
 * such as `string.email`, which takes longer to load than the rest of arktype.
 */
import './arktype-settings.ts'
import type { ArkErrors as Errors, Type } from 'arktype'
import { arkTsKeywords } from 'arktype/internal/keywords/ts.js'
import { scope } from 'arktype/internal/scope.js'

const keywords = { ...arkTsKeywords }
const wire = scope(keywords)
/** Scope whose types are compiled to code, which takes some milliseconds each. */
const compiler = scope(keywords, { jitless: false })

export type ArkErrors = Errors
export const ArkErrors: typeof Errors = wire.type.errors

/** Scope in which objects may have fields that are not declared. */
const open = scope(keywords, { onUndeclaredKey: 'ignore' } as object)

/** Parses a definition, which may contain types. */
export function typeFrom(definition: unknown, { isOpen }: { readonly isOpen: boolean }): Type {
  return (isOpen ? open : wire).type.raw(definition) as unknown as Type
}

/** Compiles a type to code. */
export function compiled(type: Type): Type {
  return compiler.type.raw(type) as unknown as Type
}
