/**
 * The names of all fields that documents of a table may have. A Release whose declaration covers
 * them reads documents as they are stored, since nothing in them is hidden from it.
 */
import type { FieldsJson, ValidatorJson } from '../validators.ts'

/**
 * The fields that an object may have, with the shape of each: null for a value that is not an
 * object, `any` where an object may have fields of any name.
 */
export type FieldShape = 'any' | ObjectShape

export type ObjectShape = { readonly [name: string]: FieldShape | null }

/** Most names in one shape; a larger one becomes `any`. */
export const SHAPE_NAMES_MAX = 10_000

/** The shape of a table without documents. */
export const EMPTY_SHAPE: FieldShape = {}

/** Returns the shape of the documents that a declaration accepts. */
export function shapeOf(fields: FieldsJson): FieldShape {
  return bounded(shapeOfFields(fields))
}

/** Returns the shape that has the fields of both; the first one itself if it has them all. */
export function mergeShapes(one: FieldShape, other: FieldShape): FieldShape {
  return includes(one, other) ? one : bounded(merged(one, other))
}

/** Returns whether the declaration hides no field of an object of this shape. */
export function isCovered(fields: FieldsJson, shape: FieldShape): boolean {
  if (shape === 'any') return false
  return Object.entries(shape).every(([name, part]) => {
    if (!Object.hasOwn(fields, name)) return false
    const field = fields[name]!
    return isCoveredBy(field.type === 'optional' ? field.inner : field, part)
  })
}

/** Returns whether a JSON value is a shape. */
export function isFieldShape(json: unknown): json is FieldShape {
  if (json === 'any') return true
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return false
  return Object.values(json).every((part) => part === null || isFieldShape(part))
}

/** A projection descends into objects alone, so other declarations hide nothing. */
function isCoveredBy(json: ValidatorJson, shape: FieldShape | null): boolean {
  if (shape === null) return true
  if (json.type === 'nullable') return isCoveredBy(json.inner, shape)
  return json.type !== 'object' || isCovered(json.fields, shape)
}

function shapeOfFields(fields: FieldsJson): ObjectShape {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      shapeOfValue(field.type === 'optional' ? field.inner : field),
    ]),
  )
}

function shapeOfValue(json: ValidatorJson): FieldShape | null {
  switch (json.type) {
    case 'object':
      return shapeOfFields(json.fields)
    case 'nullable':
    case 'open':
      return shapeOfValue(json.inner)
    case 'union':
      return json.members.map(shapeOfValue).reduce(merged, null)
    case 'any':
    case 'record':
      return 'any'
    default:
      return null
  }
}

function merged<T extends FieldShape | null>(one: T, other: T): T
function merged(one: FieldShape | null, other: FieldShape | null): FieldShape | null {
  if (one === null || other === null) return one ?? other
  if (one === 'any' || other === 'any') return 'any'
  const names = new Map(Object.entries(one))
  for (const [name, part] of Object.entries(other)) {
    names.set(name, merged(names.get(name) ?? null, part))
  }
  return Object.fromEntries(names)
}

function includes(shape: FieldShape | null, other: FieldShape | null): boolean {
  if (other === null || shape === 'any') return true
  if (shape === null || other === 'any') return false
  return Object.entries(other).every(
    ([name, part]) => Object.hasOwn(shape, name) && includes(shape[name]!, part),
  )
}

function bounded(shape: FieldShape): FieldShape {
  return countNames(shape) > SHAPE_NAMES_MAX ? 'any' : shape
}

function countNames(shape: FieldShape | null): number {
  if (shape === null || shape === 'any') return 0
  return Object.values(shape).reduce<number>((count, part) => count + 1 + countNames(part), 0)
}
