/**
 * Prints values as plain JSON from which `plainReader` of the same validator reads equal values:
 * where the validator does not decide the type, a value that would be read as another is tagged.
 */
import { plainReader, valueToPlain } from '../plain.ts'
import type { Json } from '../strict-json.ts'
import { encodeTagged } from '../tagged.ts'
import {
  compileValidator,
  type FieldsJson,
  UNKNOWN_MEMBER,
  type ValidatorJson,
} from '../validators.ts'
import { type Value, type ValueObject, valueEquals } from '../values.ts'
import { accepts, taggedOrNull } from './tags.ts'

type Write = (value: Value) => Json

/** Returns a function that prints values, also those that the validator rejects. */
export function plainWriter(validator: ValidatorJson): Write {
  switch (validator.type) {
    case 'any':
      return anything
    case 'union':
      return union(validator)
    case 'open': {
      const write = plainWriter(validator.inner)
      return (value) => (valueEquals(value, UNKNOWN_MEMBER) ? valueToPlain(value) : write(value))
    }
    case 'nullable': {
      const write = plainWriter(validator.inner)
      return (value) => (value === null ? null : write(value))
    }
    case 'array': {
      const write = plainWriter(validator.items)
      return (value) => (Array.isArray(value) ? value.map(write) : valueToPlain(value))
    }
    case 'record': {
      const write = plainWriter(validator.values)
      return object(() => write)
    }
    case 'object': {
      const writers = writersOf(validator.fields)
      return object((name) => writers.get(name) ?? anything)
    }
    default:
      return valueToPlain
  }
}

function writersOf(fields: FieldsJson): ReadonlyMap<string, Write> {
  return new Map(
    Object.entries(fields).map(([name, field]) => {
      return [name, plainWriter(field.type === 'optional' ? field.inner : field)]
    }),
  )
}

function object(writerOf: (name: string) => Write): Write {
  return (value) => {
    if (!(value instanceof Map)) return valueToPlain(value)
    const fields = [...(value as ValueObject)]
    return Object.fromEntries(fields.map(([name, item]) => [name, writerOf(name)(item)]))
  }
}

/** Tags each part whose type JSON does not have, and an object that looks like a tagged value. */
function anything(value: Value): Json {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value
  if (typeof value === 'number' && (!Number.isInteger(value) || Number.isSafeInteger(value))) {
    return value
  }
  if (Array.isArray(value)) return value.map(anything)
  if (!(value instanceof Map)) return tagged(value)
  const json = object(() => anything)(value)
  return taggedOrNull(json) === null ? json : tagged(value)
}

/** Prints by the first member that accepts the value, unless the union would read another value. */
function union(validator: ValidatorJson & { readonly type: 'union' }): Write {
  const read = plainReader(validator)
  const members = validator.members.map((member) => {
    return { check: compileValidator(member, { coerce: false }), write: plainWriter(member) }
  })
  return (value) => {
    const member = members.find(({ check }) => accepts(check, value))
    if (member === undefined) return anything(value)
    const json = member.write(value)
    return valueEquals(read(json), value) ? json : tagged(value)
  }
}

function tagged(value: Value): Json {
  return JSON.parse(encodeTagged(value)) as Json
}
