/**
 * Decides which unions plain JSON can express: those in which no JSON is the plain form of two
 * different values. The values of all others are tagged, as those of `any`.
 */
import type { Json } from '../strict-json.ts'
import type { FieldsJson, ValidatorJson } from '../validators.ts'
import { type ValueType, valueEquals } from '../values.ts'
import { Failure } from './failures.ts'
import { compileScalar, literalOf, type Of, type Scalar } from './scalars.ts'

/** A form of JSON that one member of a union takes. Open unions and nullables have several. */
type Form = Scalar | Of<'array'> | Of<'object'> | Of<'record'> | { readonly type: 'tagged' }

/** Comparisons for one union. A manifest may have unions that would take minutes. */
const COMPARISONS_MAX = 100_000

/** The `type` of every tagged value. */
export const TAGS: readonly ValueType[] = [
  'null',
  'boolean',
  'int64',
  'float64',
  'string',
  'bytes',
  'timestamp',
  'typed_id',
  'array',
  'object',
]

/** The form of UNKNOWN_MEMBER, which open unions accept besides their members. */
export const UNKNOWN: Of<'object'> = {
  type: 'object',
  fields: { unknown: { type: 'literal', value: { boolean: true } } },
}

const known = new WeakMap<ValidatorJson, boolean>()
const knownForms = new WeakMap<ValidatorJson, readonly Form[]>()

/** Returns whether members share a plain form, so that the union does not decide the type. */
export function isUndecided(union: Of<'union'>): boolean {
  const before = known.get(union)
  if (before !== undefined) return before
  const comparison = new Comparison()
  const members = union.members.map(formsOf)
  const undecided = members.some((forms, i) => {
    return members.slice(i + 1).some((others) => comparison.differ(forms, others))
  })
  known.set(union, undecided)
  return undecided
}

function formsOf(json: ValidatorJson): readonly Form[] {
  const forms = knownForms.get(json) ?? findForms(json)
  knownForms.set(json, forms)
  return forms
}

function findForms(json: ValidatorJson): readonly Form[] {
  switch (json.type) {
    case 'any':
      return [{ type: 'tagged' }]
    case 'nullable':
      return [{ type: 'null' }, ...formsOf(json.inner)]
    case 'union':
      return isUndecided(json) ? [{ type: 'tagged' }] : json.members.flatMap(formsOf)
    case 'open': {
      const inner = formsOf(json.inner)
      return inner[0]?.type === 'tagged' ? inner : [...inner, UNKNOWN]
    }
    default:
      return [json as Form]
  }
}

const innerOf = (field: FieldsJson[string]): ValidatorJson => {
  return field.type === 'optional' ? field.inner : field
}

/** Returns the value of JSON that the form takes; undefined for other JSON. */
function read(form: Form, json: Json) {
  switch (form.type) {
    case 'tagged':
    case 'array':
    case 'object':
    case 'record':
      return undefined
    default:
      return compileScalar(form)(json, 0, new Failure())
  }
}

/** Returns every JSON that is the plain form of a literal. */
function literalForms({ value }: Of<'literal'>): readonly Json[] {
  const literal = literalOf(value)
  if (typeof literal !== 'bigint') return [literal]
  const number = Number(literal)
  return Number.isSafeInteger(number) ? [number, String(literal)] : [String(literal)]
}

class Comparison {
  #count = 0

  /** Returns whether some JSON may be a form of both with different values. */
  differ(a: readonly Form[], b: readonly Form[]): boolean {
    return a.some((one) => b.some((other) => this.#differ(one, other)))
  }

  #differIn(a: FieldsJson[string], b: FieldsJson[string]): boolean {
    return this.differ(formsOf(innerOf(a)), formsOf(innerOf(b)))
  }

  /** Returns whether some JSON may be a form of both. */
  #meet(a: FieldsJson[string], b: FieldsJson[string]): boolean {
    const others = formsOf(innerOf(b))
    return formsOf(innerOf(a)).some((one) => others.some((other) => this.#meets(one, other)))
  }

  #differ(a: Form, b: Form): boolean {
    if (isLiteralPair(a, b)) return false
    if (!this.#meets(a, b)) return false
    if (this.#count > COMPARISONS_MAX) return true
    if (a.type === 'literal') return differFrom(a, b)
    if (b.type === 'literal') return differFrom(b, a)
    if (a.type === 'object' && b.type === 'object') {
      return Object.keys(a.fields).some((name) => {
        return Object.hasOwn(b.fields, name) && this.#differIn(a.fields[name]!, b.fields[name]!)
      })
    }
    if (a.type === 'object' && b.type === 'record') return this.#fieldsDiffer(a, b)
    if (a.type === 'record' && b.type === 'object') return this.#fieldsDiffer(b, a)
    if (a.type === 'array' && b.type === 'array') return this.#differIn(a.items, b.items)
    if (a.type === 'record' && b.type === 'record') return this.#differIn(a.values, b.values)
    // A scalar type, and the tagged form, read equal JSON as equal values with any bounds.
    return a.type !== b.type
  }

  #fieldsDiffer({ fields }: Of<'object'>, { values }: Of<'record'>): boolean {
    return Object.values(fields).some((field) => this.#differIn(field, values))
  }

  #meets(a: Form, b: Form): boolean {
    if (a.type === 'literal' && b.type === 'literal' && isLiteralPair(a, b)) {
      return literalOf(a.value) === literalOf(b.value)
    }
    this.#count += 1
    if (this.#count > COMPARISONS_MAX) return true
    if (a.type === 'literal') return literalForms(a).some((json) => read(b, json) !== undefined)
    if (b.type === 'literal') return literalForms(b).some((json) => read(a, json) !== undefined)
    switch (a.type) {
      case 'null':
      case 'boolean':
      case 'array':
        return a.type === b.type
      case 'float64':
        return ['float64', 'int64', 'timestamp'].includes(b.type)
      case 'int64':
      case 'timestamp':
        return ['float64', 'int64', 'timestamp', 'string', 'bytes'].includes(b.type)
      case 'string':
      case 'bytes':
        return ['int64', 'timestamp', 'string', 'bytes', 'id'].includes(b.type)
      case 'id':
        return b.type === 'string' || b.type === 'bytes' || (b.type === 'id' && a.table === b.table)
      case 'object':
        if (b.type === 'object') return this.#objectsMeet(a.fields, b.fields)
        if (b.type === 'record') return this.#recordMeets(a, b)
        return b.type === 'tagged' && this.#taggedMeets(a)
      case 'record':
        if (b.type === 'object') return this.#recordMeets(b, a)
        return b.type === 'record' || (b.type === 'tagged' && this.#takesTag(a.values))
      case 'tagged':
        if (b.type === 'object') return this.#taggedMeets(b)
        return b.type === 'tagged' || (b.type === 'record' && this.#takesTag(b.values))
    }
  }

  /** Returns false if one requires a field that the other lacks, or has in another form. */
  #objectsMeet(a: FieldsJson, b: FieldsJson): boolean {
    const allows = (one: FieldsJson, other: FieldsJson): boolean => {
      return Object.entries(one).every(([name, field]) => {
        if (field.type === 'optional') return true
        return Object.hasOwn(other, name) && this.#meet(field, other[name]!)
      })
    }
    return allows(a, b) && allows(b, a)
  }

  #recordMeets({ fields }: Of<'object'>, { values }: Of<'record'>): boolean {
    return Object.values(fields).every((field) => {
      return field.type === 'optional' || this.#meet(field, values)
    })
  }

  /** Returns whether an object may look like a tagged value: `type`, and `value` or not. */
  #taggedMeets({ fields }: Of<'object'>): boolean {
    const required = Object.keys(fields).filter((name) => fields[name]!.type !== 'optional')
    if (required.some((name) => name !== 'type' && name !== 'value')) return false
    return Object.hasOwn(fields, 'type') && this.#takesTag(innerOf(fields.type!))
  }

  #takesTag(json: ValidatorJson): boolean {
    return formsOf(json).some((form) => TAGS.some((tag) => read(form, tag) !== undefined))
  }
}

/** Returns whether both are literals of one type, of which equal JSON has equal values. */
function isLiteralPair(a: Form, b: Form): boolean {
  if (a.type !== 'literal' || b.type !== 'literal') return false
  return typeof literalOf(a.value) === typeof literalOf(b.value)
}

/** Returns whether another form reads the JSON of a literal as another value. */
function differFrom(literal: Of<'literal'>, other: Form): boolean {
  return literalForms(literal).some((json) => {
    const [own, others] = [read(literal, json), read(other, json)]
    return own !== undefined && others !== undefined && !valueEquals(own, others)
  })
}
