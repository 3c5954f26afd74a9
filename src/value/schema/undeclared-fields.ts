/** Fields of stored documents that no declaration has, which nothing can read. */
import type { FieldsJson, ValidatorJson } from '../validators.ts'
import type { Value, ValueObject } from '../values.ts'
import type { FieldShape, ObjectShape } from './field-shapes.ts'

/**
 * Returns the shape of the fields that a projection of this declaration can hide others from:
 * `any` for what is read as a whole, such as members of unions.
 */
export function declaredShape(fields: FieldsJson): ObjectShape {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      declaredPart(field.type === 'optional' ? field.inner : field),
    ]),
  )
}

function declaredPart(json: ValidatorJson): FieldShape | null {
  switch (json.type) {
    case 'object':
      return declaredShape(json.fields)
    case 'nullable':
      return declaredPart(json.inner)
    case 'union':
    case 'open':
    case 'any':
    case 'record':
      return 'any'
    default:
      return null
  }
}

export interface DeclaredFields {
  /** The object itself if all of its fields are declared. */
  readonly fields: ValueObject
  /** Number of fields that are not part of it, those inside objects included. */
  readonly removed: number
}

/** Returns the fields of an object that the shape has. */
export function withoutUndeclared(shape: FieldShape, object: ValueObject): DeclaredFields {
  if (shape === 'any') return { fields: object, removed: 0 }
  const fields = new Map<string, Value>()
  let removed = 0
  for (const [name, value] of object) {
    if (!Object.hasOwn(shape, name)) {
      removed += 1
      continue
    }
    const part = shape[name]!
    if (part === null || !(value instanceof Map)) {
      fields.set(name, value)
      continue
    }
    const inner = withoutUndeclared(part, value as ValueObject)
    removed += inner.removed
    fields.set(name, inner.fields)
  }
  return removed === 0 ? { fields: object, removed } : { fields, removed }
}
