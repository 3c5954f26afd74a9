/**
 * arktype with the keywords of TypeScript alone. Its library of further ones, such as
 * `string.email`, takes longer to load than all the rest, and no schema uses it.
 */
import './arktype-settings.ts'
import type { ArkErrors as Errors, Traversal, Type } from 'arktype'
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

/** Ends a traversal that found enough errors. */
class Enough {
  readonly errors: Errors

  constructor(errors: Errors) {
    this.errors = errors
  }
}

/**
 * Answers what the type makes of data, or its errors, of which it looks for `most` alone: to make
 * each of 10,000 that unknown fields in one request would be takes 40 ms.
 */
export function bounded(type: Type, most: number): (data: unknown) => unknown {
  const begin = (data: unknown, { errors }: Traversal): unknown => {
    const add = errors.add.bind(errors)
    errors.add = (error) => {
      add(error)
      if (errors.count >= most) throw new Enough(errors)
    }
    return data
  }
  const piped = compiled(wire.type.raw([['unknown', '=>', begin], '|>', type]) as unknown as Type)
  return (data) => {
    try {
      return piped(data)
    } catch (error) {
      if (error instanceof Enough) return error.errors
      throw error
    }
  }
}
