/** The fields of collections of PocketBase: their types, and their values in SQLite. */
import { parseTimestamp } from '../../../value/plain.ts'
import { isJsonObject, type Json, parseStrictJson, ROUNDED } from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { Timestamp } from '../../../value/values.ts'
import type { ForeignRow, ForeignValue } from '../../development/workspace-tools.ts'
import type { ObjectShape, Shape } from '../documents/shapes.ts'
import type { SourceValue } from '../documents/source-values.ts'

export type FieldType =
  | 'text'
  | 'number'
  | 'int64'
  | 'boolean'
  | 'date'
  | 'choice'
  | 'json'
  | 'file'
  | 'relation'
  | 'point'
  | 'other'

export interface PocketBaseField {
  readonly name: string
  readonly type: FieldType
  readonly isList: boolean
  /** True for a time that PocketBase sets itself, in every record. */
  readonly isStamp: boolean
  /** The declared values of a choice. */
  readonly choices: readonly string[]
  /** The ID of the collection that a relation names. */
  readonly collectionId: string | null
}

const TYPES: Readonly<Record<string, FieldType>> = {
  text: 'text',
  editor: 'text',
  email: 'text',
  url: 'text',
  number: 'number',
  bool: 'boolean',
  date: 'date',
  autodate: 'date',
  select: 'choice',
  json: 'json',
  file: 'file',
  relation: 'relation',
  geoPoint: 'point',
}
/** Columns of versions before 0.23, which no field declares. */
const UNDECLARED: Readonly<Record<string, FieldType>> = {
  created: 'date',
  updated: 'date',
  username: 'text',
  email: 'text',
  emailVisibility: 'boolean',
  verified: 'boolean',
}
/** Columns by which a user logs in: none of them leaves the export. */
const CREDENTIALS = /^(password|passwordHash|tokenKey|last\w*SentAt)$/

/** Returns the fields of the columns, in their order, without the ID and credentials. */
export function fieldsOf(
  declared: readonly Json[],
  columns: readonly string[],
): readonly PocketBaseField[] {
  const byName = new Map(declared.filter(isJsonObject).map((field) => [field.name, field]))
  const isSecret = (name: string): boolean =>
    CREDENTIALS.test(name) || byName.get(name)?.type === 'password'
  const ordered = [...byName.keys()].filter((name) => columns.includes(name as string)) as string[]
  const others = columns.filter((name) => !byName.has(name))
  return [...ordered, ...others]
    .filter((name) => name !== 'id' && !isSecret(name))
    .map((name) => fieldOf(name, byName.get(name) ?? null))
}

function fieldOf(name: string, declared: { readonly [key: string]: Json } | null): PocketBaseField {
  if (declared === null) {
    const type = Object.hasOwn(UNDECLARED, name) ? UNDECLARED[name]! : 'other'
    return { name, type, isList: false, isStamp: type === 'date', choices: [], collectionId: null }
  }
  // Versions before 0.23 have the options in an object, and no bound for a relation to many.
  const isNested = isJsonObject(declared.options)
  const options = isNested ? (declared.options as { readonly [key: string]: Json }) : declared
  const { type: kind } = declared
  const known = typeof kind === 'string' && Object.hasOwn(TYPES, kind) ? TYPES[kind]! : 'other'
  const { maxSelect, onlyInt, noDecimal, values, collectionId } = options
  const isUnbounded = isNested && known === 'relation' && typeof maxSelect !== 'number'
  return {
    name,
    type: known === 'number' && (onlyInt === true || noDecimal === true) ? 'int64' : known,
    isStamp: kind === 'autodate',
    isList: isUnbounded || (typeof maxSelect === 'number' && maxSelect > 1),
    choices: Array.isArray(values) ? values.filter((each) => typeof each === 'string') : [],
    collectionId: typeof collectionId === 'string' ? collectionId : null,
  }
}

/** Types of which an empty text is stored where a record has no value. */
const LACKING: readonly FieldType[] = ['date', 'choice', 'file', 'relation']

/** Declares the types of the fields, also of those that no record has. */
export function declareFields(
  shape: ObjectShape,
  fields: readonly PocketBaseField[],
  tableOf: (collectionId: string) => string | null,
): void {
  for (const field of fields) {
    const isPresent = field.isList || field.isStamp || !LACKING.includes(field.type)
    const own = shape.field(field.name, !isPresent)
    declareType(field.isList ? own.items() : own, field, tableOf)
  }
}

function declareType(
  shape: Shape,
  { type, choices, collectionId }: PocketBaseField,
  tableOf: (collectionId: string) => string | null,
): void {
  const table = collectionId === null ? null : tableOf(collectionId)
  if (type === 'text') shape.declare('string')
  else if (type === 'number') shape.declare('float64')
  else if (type === 'int64' || type === 'boolean') shape.declare(type)
  else if (type === 'date') shape.declare('timestamp')
  else if (type === 'choice') shape.declareChoices(choices)
  else if (type === 'json' || type === 'other') shape.declare('any')
  else if (type === 'file') shape.declareReference('files')
  else if (type === 'relation' && table !== null) shape.declareReference(table)
  else if (type === 'point') {
    for (const name of ['lon', 'lat']) shape.fields().field(name).declare('float64')
  }
}

export interface FieldReading {
  readonly file: (name: string) => SourceValue
  readonly relation: (collectionId: string | null, id: string) => SourceValue
}

/** Returns the values of a record by the names of fields. Throws ValidationError. */
export function readFields(
  row: ForeignRow,
  fields: readonly PocketBaseField[],
  reading: FieldReading,
): ReadonlyMap<string, SourceValue> {
  const values = new Map<string, SourceValue>()
  for (const field of fields) {
    const value = readField(row[field.name] ?? null, field, reading)
    if (value !== undefined) values.set(field.name, value)
  }
  return values
}

/** Returns undefined for what PocketBase stores where a field has no value. */
function readField(
  value: ForeignValue,
  field: PocketBaseField,
  reading: FieldReading,
): SourceValue | undefined {
  const { type } = field
  if (field.isList) return listOf(value).map((item) => readItem(item, field, reading))
  if (type === 'json') return value === null || value === '' ? null : jsonValue(jsonOf(value))
  if (type === 'point') return jsonValue(jsonOf(value))
  if (value === null) return type === 'other' ? null : undefined
  if (type === 'boolean') return value === 1n || value === 1
  if (type === 'number') return typeof value === 'bigint' ? Number(value) : value
  if (type === 'text' || type === 'int64' || type === 'other') return value
  return value === '' ? undefined : readItem(textOf(value), field, reading)
}

function readItem(
  text: string,
  { type, collectionId }: PocketBaseField,
  reading: FieldReading,
): SourceValue {
  if (type === 'file') return reading.file(text)
  if (type === 'relation') return reading.relation(collectionId, text)
  if (type !== 'date') return text
  const micros = parseTimestamp(text.replace(' ', 'T'))
  return micros === null ? text : new Timestamp(micros)
}

function listOf(value: ForeignValue): readonly string[] {
  if (value === null || value === '') return []
  const text = textOf(value)
  if (!text.startsWith('[')) return [text]
  const json = jsonOf(text)
  if (Array.isArray(json) && json.every((item) => typeof item === 'string')) return json
  throw new ValidationError('a list of texts')
}

function textOf(value: ForeignValue): string {
  if (typeof value === 'string') return value
  throw new ValidationError('a text')
}

function jsonOf(value: ForeignValue): Json {
  return parseStrictJson(typeof value === 'string' ? value : String(value), ROUNDED)
}

/** Reads JSON as the code of an application does: each number is a float64. */
export function jsonValue(json: Json): SourceValue {
  if (Array.isArray(json)) return json.map(jsonValue)
  if (typeof json === 'number') return json === 0 ? 0 : json
  if (!isJsonObject(json)) return json
  return new Map(Object.entries(json).map(([name, item]) => [name, jsonValue(item)]))
}
