/**
 * The lines of exported and imported files: one JSON object for each document, with `_id` and
 * `_createdAt` beside the author's fields, in plain JSON or as a tagged value.
 */
import { isOfTable } from '../../../value/ids.ts'
import { plainWriter } from '../../../value/plain/writer.ts'
import { plainReader, valueToPlain } from '../../../value/plain.ts'
import {
  isJsonObject,
  type Json,
  type JsonObject,
  parseStrictJson,
  ROUNDED,
} from '../../../value/strict-json.ts'
import { decodeTagged, encodeTagged, isTypedId } from '../../../value/tagged.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { compileValidator, type FieldsJson } from '../../../value/validators.ts'
import { Timestamp, TypedId, type Value, type ValueObject } from '../../../value/values.ts'
import type { DocumentField } from '../../../wire/data.ts'

const ID = '_id'
const CREATED_AT = '_createdAt'

export interface DocumentLine {
  /** Null where the line names none. */
  readonly documentId: string | null
  /** The author's fields as tagged JSON. */
  readonly value: string
}

/**
 * Returns a function that formats documents as lines without their ends: tagged where `fields` is
 * null, otherwise in plain JSON that `lineReader` of these fields reads as the same document.
 */
export function lineWriter(fields: FieldsJson | null): (document: DocumentField) => string {
  const write = fields === null ? null : plainWriter({ type: 'object', fields })
  return (document) => {
    const own = decodeTagged(document.value as Json) as ValueObject
    const system: readonly [string, Value][] = [
      [ID, new TypedId(document.id)],
      [CREATED_AT, new Timestamp(BigInt(document.createdAtMicros))],
    ]
    if (write === null) return encodeTagged(new Map([...system, ...own]))
    const plain = valueToPlain(new Map(system)) as JsonObject
    return JSON.stringify({ ...plain, ...(write(own) as JsonObject) })
  }
}

/**
 * Returns a parser of lines, which checks the fields against the schema. It throws ValidationError
 * with the path of the first defect. `_createdAt` is ignored, since the import creates documents.
 * In plain JSON a value may be tagged where the schema does not decide its type.
 */
export function lineReader(
  table: string,
  fields: FieldsJson,
  isTagged: boolean,
): (line: Uint8Array) => DocumentLine {
  const validator = { type: 'object', fields } as const
  const checkedId = (id: unknown): string | null => {
    if (id === undefined) return null
    if (typeof id === 'string' && isTypedId(id) && isOfTable(table, id)) return id
    throw new ValidationError(`an ID of the table ${table}`, `$.${ID}`)
  }
  if (isTagged) {
    const check = compileValidator(validator, { coerce: true })
    return (line) => {
      const value = decodeTagged(parseStrictJson(line))
      if (!(value instanceof Map)) throw new ValidationError('an object value')
      const { [ID]: id, [CREATED_AT]: _, ...rest } = Object.fromEntries(value as ValueObject)
      if (id !== undefined && !(id instanceof TypedId)) {
        throw new ValidationError('a typed ID', `$.${ID}`)
      }
      const own = new Map(Object.entries(rest))
      return { documentId: checkedId(id?.id), value: encodeTagged(check(own, '$')) }
    }
  }
  const read = plainReader(validator)
  return (line) => {
    const json = parseStrictJson(line, ROUNDED)
    if (!isJsonObject(json)) throw new ValidationError('an object of fields')
    const { [ID]: id, [CREATED_AT]: _, ...rest } = json
    return { documentId: checkedId(id), value: encodeTagged(read(rest)) }
  }
}
