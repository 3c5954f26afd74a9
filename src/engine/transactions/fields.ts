/** What the code of a Function sent as fields of documents, checked by the schema. */

import { fromStoredJson } from '../../value/stored.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { Timestamp, type Value, type ValueObject } from '../../value/values.ts'
import { OperationError } from '../invocations/operation-error.ts'
import type { PreparedTable } from '../releases/prepared-release.ts'

/** What the code of a Function sent as a value. Throws a Refusal for what is none. */
export function storedValue(json: unknown, verb: string, of: string): Value {
  try {
    return fromStoredJson(json)
  } catch (error) {
    throw refusalOf(error, verb, of)
  }
}

/** A value to compare an index field with, in the field's own type. */
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

/** The same, where a runner may also ask for documents without the field. */
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

/** All fields of a document. Throws a Refusal for what the schema does not take. */
export function checkedFields(
  table: PreparedTable,
  fields: unknown,
  verb: string,
  of: string,
): ValueObject {
  return checkedValue(table, storedValue(fields, verb, of), verb, of)
}

/** The same, of a value. */
export function checkedValue(
  table: PreparedTable,
  value: Value,
  verb: string,
  of: string,
): ValueObject {
  try {
    return table.check(value, table.manifest.name) as ValueObject
  } catch (error) {
    throw refusalOf(error, verb, of)
  }
}

/** What the author wrote is put together where it fails alone. */
function refusalOf(error: unknown, verb: string, of: string): unknown {
  if (!(error instanceof ValidationError)) return error
  return new OperationError('TypeError', `${verb}("${of}"): ${error.path} must be ${error.rule}`)
}
