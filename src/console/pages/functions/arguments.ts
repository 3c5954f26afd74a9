/** Arguments of a Function as a form holds them: a text and a choice for each, by its validator. */

import { accepts } from '../../../value/plain/tags.ts'
import { plainWriter } from '../../../value/plain/writer.ts'
import { plainToArguments, plainToValue, valueToPlain } from '../../../value/plain.ts'
import { type Json, parseStrictJson } from '../../../value/strict-json.ts'
import { encodeTagged } from '../../../value/tagged.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import {
  compileValidator,
  type FieldsJson,
  type LiteralJson,
  type OptionalJson,
  type ValidatorJson,
} from '../../../value/validators.ts'
import type { Value, ValueObject } from '../../../value/values.ts'
import { editable } from '../../plain-values.ts'

/** One argument as a person writes it. */
export interface Entry {
  /** True for an optional argument that is not given. */
  readonly isAbsent: boolean
  /** The index of one of `choicesOf` the validator. */
  readonly choice: number
  readonly text: string
}

export type Entries = Readonly<Record<string, Entry>>

export interface Violation {
  /** Such as `$.title`. */
  readonly path: string
  readonly rule: string
}

/** Arguments, or why there are none. */
export type ReadArguments =
  | { readonly value: Value; readonly violations: null }
  | { readonly value: null; readonly violations: readonly Violation[] }

/** The element that an argument is written in; `none` where there is one value only. */
export type InputKind = 'none' | 'text' | 'line' | 'json'

export function innerOf(field: ValidatorJson | OptionalJson): ValidatorJson {
  return field.type === 'optional' ? field.inner : field
}

/** Returns the alternatives of an argument: the members of a union, both booleans, or null. */
export function choicesOf(validator: ValidatorJson): readonly ValidatorJson[] {
  switch (validator.type) {
    case 'boolean':
      return [false, true].map((boolean) => ({ type: 'literal', value: { boolean } }))
    case 'union':
      return validator.members.flatMap(choicesOf)
    case 'nullable':
      return [...choicesOf(validator.inner), { type: 'null' }]
    case 'open':
      return choicesOf(validator.inner)
    default:
      return [validator]
  }
}

export function inputKindOf({ type }: ValidatorJson): InputKind {
  switch (type) {
    case 'null':
    case 'literal':
      return 'none'
    case 'string':
      return 'text'
    case 'int64':
    case 'float64':
    case 'id':
    case 'bytes':
    case 'timestamp':
      return 'line'
    default:
      return 'json'
  }
}

/** Returns the entries of an empty form. */
export function emptyEntries(fields: FieldsJson): Entries {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, emptyEntry(field)]),
  )
}

function emptyEntry(field: FieldsJson[string]): Entry {
  const { type } = choicesOf(innerOf(field))[0]!
  const text = type === 'array' ? '[]' : type === 'object' || type === 'record' ? '{}' : ''
  return { isAbsent: field.type === 'optional', choice: 0, text }
}

/** Reads the entries of a form; all of its violations, not the first alone. */
export function argumentsOf(entries: Entries, fields: FieldsJson): ReadArguments {
  const values = new Map<string, Value>()
  const violations: Violation[] = []
  for (const [name, field] of Object.entries(fields)) {
    const entry = entries[name]!
    if (entry.isAbsent) continue
    const read = attempt(() => valueOfEntry(entry, innerOf(field), `$.${name}`))
    if (read.violations === null) values.set(name, read.value)
    else violations.push(...read.violations)
  }
  if (violations.length > 0) return { value: null, violations }
  return attempt(() => checkedArguments(values, fields))
}

/** Checks the bounds of all arguments together, such as the characters of defaults. */
function checkedArguments(values: ValueObject, fields: FieldsJson): Value {
  compileValidator({ type: 'object', fields }, { coerce: false })(values, '$')
  return values
}

function valueOfEntry({ choice, text }: Entry, validator: ValidatorJson, path: string): Value {
  const member = choicesOf(validator)[choice]!
  return plainToValue(jsonOf(member, text, path), member, path)
}

function jsonOf(member: ValidatorJson, text: string, path: string): Json {
  if (member.type === 'literal') return literalValue(member.value)
  if (member.type === 'null') return null
  return inputKindOf(member) === 'json' ? parsed(text, path) : text
}

function literalValue(literal: LiteralJson): Json {
  if ('string' in literal) return literal.string
  return 'boolean' in literal ? literal.boolean : literal.int64
}

/** Parses JSON that a person has written. Throws ValidationError. */
function parsed(text: string, path: string): Json {
  try {
    return parseStrictJson(text)
  } catch (error) {
    if (error instanceof ValidationError) throw new ValidationError(`JSON (${error.rule})`, path)
    throw error
  }
}

/** Reads all arguments from one text of plain JSON. */
export function argumentsOfJson(text: string, fields: FieldsJson): ReadArguments {
  return attempt(() => plainToArguments(parsed(text, '$'), fields))
}

function attempt(read: () => Value): ReadArguments {
  try {
    return { value: read(), violations: null }
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return { value: null, violations: [{ path: error.path, rule: error.rule }] }
  }
}

/** Returns the entries that hold these arguments; null if a form cannot hold them. */
export function entriesOf(value: Value, fields: FieldsJson): Entries | null {
  const values = value as ValueObject
  const entries = Object.entries(fields).map(([name, field]) => {
    const given = values.get(name)
    return [name, given === undefined ? emptyEntry(field) : entryOf(given, innerOf(field))] as const
  })
  return entries.some(([, entry]) => entry === null)
    ? null
    : (Object.fromEntries(entries) as Entries)
}

/** An unknown member of an open union has no choice. */
function entryOf(value: Value, validator: ValidatorJson): Entry | null {
  const choices = choicesOf(validator)
  const choice = choices.findIndex((member) =>
    accepts(compileValidator(member, { coerce: false }), value),
  )
  if (choice < 0) return null
  return { isAbsent: false, choice, text: textOf(value, choices[choice]!) }
}

function textOf(value: Value, member: ValidatorJson): string {
  switch (inputKindOf(member)) {
    case 'none':
      return ''
    case 'json':
      return editable(plainWriter(member)(value))
    default:
      return String(valueToPlain(value))
  }
}

/** Returns plain JSON of all arguments, which an entry that cannot be read yet has as it is. */
export function draftOf(entries: Entries, fields: FieldsJson): string {
  const plain: Record<string, Json> = {}
  for (const [name, field] of Object.entries(fields)) {
    const entry = entries[name]!
    if (entry.isAbsent) continue
    const validator = innerOf(field)
    const read = attempt(() => valueOfEntry(entry, validator, '$'))
    plain[name] = read.violations === null ? plainWriter(validator)(read.value) : entry.text
  }
  return editable(plain)
}

export function plainArguments(value: Value, fields: FieldsJson): Json {
  return plainWriter({ type: 'object', fields })(value)
}

export function taggedArguments(value: Value): Json {
  return JSON.parse(encodeTagged(value)) as Json
}
