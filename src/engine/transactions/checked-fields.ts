/** Decodes fields of documents that a runner sent and checks them against the schema. */
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
  if (table.manifest.fields[field]!.type === 'optional') return undefined
  const rule = 'is not optional: no document is without it'
  throw new OperationError('TypeError', `index field "${field}" is undefined, and ${rule}`)
}

/** Returns all fields of a document. Throws OperationError where they violate the schema. */
export function checkedFields(
  table: PreparedTable,
  fields: unknown,
  verb: string,
  of: string,
): ValueObject {
  return checkedValue(table, storedValue(fields, verb, of), verb, of)
}

/** Checks a decoded value as the fields of a document. Throws OperationError. */
export function checkedValue(
  table: PreparedTable,
  value: Value,
  verb: string,
  of: string,
): ValueObject {
  try {
    return table.check(value, table.manifest.name) as ValueObject
  } catch (error) {
    throw operationErrorOf(error, verb, of)
  }
}

/** Returns the OperationError for a ValidationError; builds the message only on failure. */
function operationErrorOf(error: unknown, verb: string, of: string): unknown {
  if (!(error instanceof ValidationError)) return error
  return new OperationError('TypeError', `${verb}("${of}"): ${error.path} must be ${error.rule}`)
}
