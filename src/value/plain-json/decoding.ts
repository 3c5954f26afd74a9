/**
 * Reads plain JSON as the values of a validator. What the validator leaves open (`undecided.ts`) is
 * tagged. Nothing is coerced: JSON that fits no declared type is rejected. `value/plain.ts` is a
 * second codec because people type and read it: there a union or `any` of unambiguous values stays
 * untagged, which no schema can describe.
 */
import { accepts } from '../plain/tags.ts'
import { isJsonObject, type Json } from '../strict-json.ts'
import { decodeTagged } from '../tagged.ts'
import { keyPart, ValidationError } from '../validation-error.ts'
import {
  changesRead,
  compileValidator,
  type FieldsJson,
  UNKNOWN_MEMBER,
  type ValidatorJson,
} from '../validators.ts'
import { VALUE_ENTRIES_MAX, type Value } from '../values.ts'
import { Failure } from './failures.ts'
import { compileScalar, type Decode, type Of, type Scalar } from './scalars.ts'
import { isUndecided } from './undecided.ts'

/** Returns a reader, which throws ValidationError with the path of the first defect. */
export function compilePlainDecoder(validator: ValidatorJson): (json: Json, path: string) => Value {
  const decode = compile(validator, false)
  return (json, path) => {
    const failure = new Failure()
    const value = decode(json, 0, failure)
    if (value === undefined) throw new ValidationError(failure.rule, path + failure.path)
    return value
  }
}

/** Compiles a reader; with `exact` one that rejects an absent field that has a default. */
function compile(json: ValidatorJson, exact: boolean): Decode {
  switch (json.type) {
    case 'any':
      return tagged
    case 'array':
      return array(json, compile(json.items, exact))
    case 'object':
      return object(json.fields, exact)
    case 'record':
      return record(json, compile(json.values, exact))
    case 'union':
      return isUndecided(json) ? taggedMember(json, exact) : union(membersOf(json, exact))
    case 'open':
      return json.inner.type === 'union' && isUndecided(json.inner)
        ? taggedMember(json, exact)
        : open(compile(json.inner, exact))
    case 'nullable': {
      const inner = compile(json.inner, exact)
      return (given, depth, failure) => (given === null ? null : inner(given, depth, failure))
    }
    default:
      return compileScalar(json as Scalar)
  }
}

const tagged: Decode = (json, depth, failure) => {
  try {
    return decodeTagged(json, '', depth)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return failure.fail(error.rule, error.path)
  }
}

function array({ maximumItems = VALUE_ENTRIES_MAX }: Of<'array'>, items: Decode): Decode {
  return (json, depth, failure) => {
    if (!Array.isArray(json)) return failure.fail('an array')
    if (json.length > maximumItems) return failure.fail(`at most ${maximumItems} items`)
    const values: Value[] = []
    for (const item of json) {
      const value = items(item, depth + 1, failure)
      if (value === undefined) return failure.within(`[${values.length}]`)
      values.push(value)
    }
    return values
  }
}

function record({ maximumItems = VALUE_ENTRIES_MAX }: Of<'record'>, values: Decode): Decode {
  return (json, depth, failure) => {
    if (!isJsonObject(json)) return failure.fail('an object')
    const entries = new Map<string, Value>()
    for (const name of Object.keys(json)) {
      const value = values(json[name]!, depth + 1, failure)
      if (value === undefined) return failure.within(keyPart(name))
      entries.set(name, value)
    }
    if (entries.size <= maximumItems) return entries
    return failure.fail(`at most ${maximumItems} entries`)
  }
}

const FIELDS_SHOWN_MAX = 16

function expectedField(fields: FieldsJson): string {
  const names = Object.keys(fields)
  if (names.length === 0) return 'no field'
  if (names.length > FIELDS_SHOWN_MAX) return 'no undeclared field'
  return `no undeclared field, but one of ${names.join(', ')}`
}

function object(fields: FieldsJson, exact: boolean): Decode {
  const declared = new Map<string, Decode>()
  const required: string[] = []
  for (const [name, field] of Object.entries(fields)) {
    const isOptional = field.type === 'optional'
    declared.set(name, compile(isOptional ? field.inner : field, exact))
    if (!isOptional || (exact && field.default !== undefined)) required.push(name)
  }
  const unknown = expectedField(fields)
  return (json, depth, failure) => {
    if (!isJsonObject(json)) return failure.fail('an object')
    const values = new Map<string, Value>()
    for (const name of Object.keys(json)) {
      const decode = declared.get(name)
      if (decode === undefined) return failure.fail(unknown, keyPart(name))
      const value = decode(json[name]!, depth + 1, failure)
      if (value === undefined) return failure.within(keyPart(name))
      values.set(name, value)
    }
    for (const name of required) {
      if (!values.has(name)) return failure.fail('a required field', `.${name}`)
    }
    return values
  }
}

/** Returns the readers of a union in the order in which the check tries its members. */
function membersOf({ members }: Of<'union'>, exact: boolean): Decode[] {
  const all = (each: boolean) => members.map((member) => compile(member, each))
  return exact || !members.some(changesRead) ? all(exact) : [...all(true), ...all(false)]
}

const UNION_RULE = 'a member of the union'

function union(members: readonly Decode[]): Decode {
  return (json, depth, failure) => {
    for (const decode of members) {
      const value = decode(json, depth, failure)
      if (value !== undefined) return value
    }
    return failure.fail(UNION_RULE)
  }
}

/** Reads a tagged value that the validator accepts. */
function taggedMember(validator: Of<'union'> | Of<'open'>, exact: boolean): Decode {
  const check = compileValidator(validator, { coerce: false, exact })
  return (json, depth, failure) => {
    const value = tagged(json, depth, failure)
    if (value === undefined) return undefined
    return accepts(check, value) ? value : failure.fail(UNION_RULE)
  }
}

/** Takes `{"unknown":true}`, which no member of an open union accepts. */
function open(decode: Decode): Decode {
  return (json, depth, failure) => {
    const isUnknown = isJsonObject(json) && json.unknown === true && Object.keys(json).length === 1
    return isUnknown ? UNKNOWN_MEMBER : decode(json, depth, failure)
  }
}
