/**
 * Decodes fields of documents that a runner sent, checks them against the schema, and adds what the
 * Release does not see of the stored document.
 */

import type { Projection } from '../../value/projection.ts'
import { fromStoredJson } from '../../value/stored.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { Timestamp, type Value, type ValueObject } from '../../value/values.ts'
import { OperationError } from '../calls/operation-error.ts'
import type { PreparedTable } from '../tables/prepared-tables.ts'

/** Decodes a value that a runner sent. Throws OperationError for what is not a value. */
export function storedValue(json: unknown, verb: string, of: string): Value {
  try {
    return fromStoredJson(json)
  } catch (error) {
    throw operationErrorOf(error, verb, of)
  }
}

/**
 * Returns a value to compare an index field with, in the type of the field. Throws OperationError
 * for another type.
 */
export function fieldValue(table: PreparedTable, field: string, json: unknown): Value {
  const value = storedValue(json, 'index', field)
  if (field === '_createdAt') {
    if (typeof value !== 'bigint' && !(value instanceof Timestamp)) {
      throw new OperationError('TypeError', '_createdAt is compared with a bigint of microseconds')
    }
    return value instanceof Timestamp ? value : new Timestamp(value)
  }
  try {
    return table.checkField.get(field)!(value, field)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new OperationError('TypeError', `index field "${error.path}" must be ${error.rule}`)
  }
}

/**
 * Returns a value as `fieldValue` does; undefined, which matches documents without the field, for
 * `{ $u: '' }`. Throws OperationError where the field is not optional.
 */
export function comparedValue(
  table: PreparedTable,
  field: string,
  json: unknown,
): Value | undefined {
  if (typeof json !== 'object' || json === null || !Object.hasOwn(json, '$u')) {
    return fieldValue(table, field, json)
  }
  const declared = table.manifest.fields[field]!
  const isOptional = declared.type === 'optional'
  if (isOptional && declared.default === undefined) return undefined
  const rule = `${isOptional ? 'has a default' : 'is not optional'}: no document is without it`
  throw new OperationError('TypeError', `index field "${field}" is undefined, and ${rule}`)
}

/** The operation, and the document or table that it writes, for messages. */
export interface Written {
  readonly verb: string
  readonly of: string
}

/**
 * Returns the fields to store for a whole document that is written: the checked ones, and those of
 * the stored document that the Release does not see. `stored` is null for a new document. Throws
 * OperationError where the fields violate the schema.
 */
export function storedFields(
  table: PreparedTable,
  stored: ValueObject | null,
  value: Value,
  { verb, of }: Written,
): ValueObject {
  const { projection, manifest } = table
  try {
    const written = table.check(value, manifest.name) as ValueObject
    return projection === null ? written : projection.fields.keep(stored, written, manifest.name)
  } catch (error) {
    throw operationErrorOf(error, verb, of)
  }
}

/** Returns the fields of a stored document that the Release sees. */
export function visibleFields({ projection }: PreparedTable, stored: ValueObject): ValueObject {
  return projection === null ? stored : projection.fields.read(stored)
}

/** The fields that a patch sets, as a runner sent them, and the names of those that it removes. */
export interface Patch {
  readonly fields: unknown
  readonly removed: readonly string[]
}

/**
 * Returns the fields to store for a patched document. Throws OperationError where the fields that
 * the Release sees violate the schema afterwards.
 */
export function patchedFields(
  table: PreparedTable,
  stored: ValueObject,
  { fields, removed }: Patch,
  of: string,
): ValueObject {
  const changed = storedValue(fields, 'patch', of)
  if (!(changed instanceof Map))
    throw new OperationError('TypeError', 'patch takes an object of fields')
  const { projection } = table
  if (projection === null) {
    const merged = mergedFields(stored, changed as ValueObject, removed)
    return storedFields(table, stored, merged, { verb: 'patch', of })
  }
  try {
    return patchedParts(table, projection.fields, stored, { changed, removed })
  } catch (error) {
    throw operationErrorOf(error, 'patch', of)
  }
}

/**
 * Keeps the fields that the patch does not name as they are stored: the Release may see only a part
 * of them, such as an unknown member of an open union inside an array.
 */
function patchedParts(
  { checkStored, checkWritten, manifest: { name: table } }: PreparedTable,
  projection: Projection,
  stored: ValueObject,
  { changed, removed }: { readonly changed: ValueObject; readonly removed: readonly string[] },
): ValueObject {
  const checked = new Map<string, Value>()
  for (const [name, value] of changed) {
    const check = checkWritten.get(name)
    checked.set(name, check === undefined ? value : check(value, `${table}.${name}`))
  }
  const merged = mergedFields(projection.read(stored), checked, removed)
  const visible = mergedFields(checkStored(merged, table) as ValueObject, checked, [])
  const kept = new Map(projection.keep(stored, visible, table))
  for (const [name, value] of stored) {
    if (!checked.has(name) && !removed.includes(name)) kept.set(name, value)
  }
  return kept
}

function mergedFields(
  before: ValueObject,
  changed: ValueObject,
  removed: readonly string[],
): ValueObject {
  const merged = new Map(before)
  for (const name of removed) merged.delete(name)
  for (const [name, value] of changed) merged.set(name, value)
  return merged
}

/** Returns the OperationError for a ValidationError, which is its cause. */
function operationErrorOf(error: unknown, verb: string, of: string): unknown {
  if (!(error instanceof ValidationError)) return error
  const message = `${verb}("${of}"): ${error.path} must be ${error.rule}`
  return Object.assign(new OperationError('TypeError', message), { cause: error })
}
