/**
 * Describes messages and files by definitions of arktype (https://arktype.io/docs), which may
 * contain other schemas. A definition is plain data that reading/read.ts compiles. Modules that
 * only reference schemas do not load arktype.
 */
import type { type } from 'arktype'

/** A compiled definition. */
export interface Check {
  /** True if valid data is returned unchanged, rather than converted. */
  readonly keepsData: boolean
  allows(data: unknown): boolean
  /** Returns the data as read, or arktype's errors. */
  apply(data: unknown): unknown
}

class Definition {
  readonly definition: unknown
  /** True if objects may have fields that the definition does not name. */
  readonly isOpen: boolean
  isUsed = false
  /** The check that read.ts compiled from the definition. */
  check: Check | null = null

  constructor(definition: unknown, isOpen = false) {
    this.definition = definition
    this.isOpen = isOpen
  }
}

/** The description of data of the type T. */
export type Schema<T> = Definition & type.cast<T>
/** Type of the values that a schema accepts. */
export type Infer<S> = S extends Schema<infer T> ? T : never

/** Creates a schema. Its objects reject unknown fields, and lists are not objects. */
export function schema<const D>(definition: type.validate<D>): Schema<type.infer.Out<D>> {
  return declaredSchema(definition)
}

/** Creates a schema whose type the compiler cannot infer, such as one with a computed pattern. */
export function declaredSchema<T>(definition: unknown): Schema<T> {
  return new Definition(definition) as Schema<T>
}

export function isSchema(value: unknown): value is Schema<unknown> {
  return value instanceof Definition
}

const openSchemas = new WeakMap<Definition, Definition>()

/**
 * Returns the schema of the same data in which objects of every depth may have unknown fields. A
 * client reads responses with it, since a newer server may send more (contract/wire.md, Unknown
 * fields).
 */
export function openSchema<T>(closed: Schema<T>): Schema<T> {
  let open = openSchemas.get(closed)
  if (open === undefined) {
    open = new Definition(closed.definition, true)
    openSchemas.set(closed, open)
  }
  return open as Schema<T>
}

export const NO_FIELDS = schema({})
