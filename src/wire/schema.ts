/**
 * Describes messages and files by definitions of arktype (https://arktype.io/docs), in which other
 * schemas may stand. A definition is plain data, which reading/read.ts makes a type of: what only
 * names schemas does not load arktype.
 */
import type { type } from 'arktype'

/** A definition that data can be held against. */
export interface Check {
  /** Whether data that fits is what is read, or what is read is made of it. */
  readonly keepsData: boolean
  allows(data: unknown): boolean
  /** Answers what is read, or arktype's errors. */
  apply(data: unknown): unknown
}

class Definition {
  readonly definition: unknown
  isUsed = false
  /** The code that read.ts makes of the definition. */
  check: Check | null = null

  constructor(definition: unknown) {
    this.definition = definition
  }
}

/** The description of data that is a T once it was read. */
export type Schema<T> = Definition & type.cast<T>
/** Type of the values that a schema accepts. */
export type Infer<S> = S extends Schema<infer T> ? T : never

/** Every object in a definition is closed, and no list passes for one. */
export function schema<const D>(definition: type.validate<D>): Schema<type.infer.Out<D>> {
  return schemaOf(definition)
}

/** A schema whose definition does not say what it reads, such as one with a computed pattern. */
export function schemaOf<T>(definition: unknown): Schema<T> {
  return new Definition(definition) as Schema<T>
}

export function isSchema(value: unknown): value is Schema<unknown> {
  return value instanceof Definition
}

export const NO_FIELDS = schema({})
