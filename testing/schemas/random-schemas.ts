/** Random schemas of a table, changes of them, and values that fit them. */
import { encodeStored } from '../../src/value/stored.ts'
import type { Json } from '../../src/value/strict-json.ts'
import { ValidationError } from '../../src/value/validation-error.ts'
import { parseFields } from '../../src/value/validator-json.ts'
import {
  type Check,
  compileValidator,
  type FieldsJson,
  type OptionalJson,
  type ValidatorJson,
} from '../../src/value/validators.ts'
import { Timestamp, TypedId, type Value } from '../../src/value/values.ts'
import type { Random } from '../fuzzing/fuzz.ts'

export const FIELD_NAMES = ['a', 'b', 'c', 'd'] as const
const PATTERNS = ['[a-c]+', '[a-z]+', '[a-z0-9]*', 'a|b', 'a(b|c)*', '[a-z]+-[0-9]+']
const TEXTS = ['', 'a', 'b', 'ab', 'abc', 'cab', 'a1', 'A', 'x-1', 'abcdef', 'zz']
const LITERALS = ['a', 'b', 'draft', 'done']

/** Returns fields that a manifest may have: random ones, or `fields` with a change. */
export function randomSchema(random: Random, fields?: FieldsJson): FieldsJson {
  for (;;) {
    const made = fields === undefined ? randomFields(random) : changedFields(random, fields)
    try {
      return parseFields(made as unknown as Json)
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error
    }
  }
}

function randomFields(random: Random, depth = 0): FieldsJson {
  const fields: Record<string, ValidatorJson | OptionalJson> = {}
  for (const name of FIELD_NAMES) {
    if (!random.chance(3)) fields[name] = randomField(random, depth)
  }
  return fields
}

/**
 * Returns a table whose field is an object, and one where it is a union or a record of few values:
 * pairs that random changes seldom make.
 */
export function randomObjectPair(random: Random): readonly [FieldsJson, FieldsJson] {
  const member = () => ({ type: 'object', fields: smallFields(random) }) as const
  const whole: ValidatorJson = random.chance(3)
    ? { type: 'record', values: { type: 'string' }, maximumItems: 1 + random.below(3) }
    : { type: 'union', members: [member(), member(), ...(random.chance(2) ? [member()] : [])] }
  return [{ a: member() }, { a: whole }]
}

function smallFields(random: Random): FieldsJson {
  const fields: Record<string, ValidatorJson | OptionalJson> = {}
  for (const name of FIELD_NAMES) {
    if (random.chance(2)) continue
    const literal = { type: 'literal', value: { string: random.pick(['a', 'b']) } } as const
    const open = { type: 'open', inner: { type: 'union', members: [literal] } } as const
    const inner = random.pick([{ type: 'string' } as const, literal, open])
    fields[name] = random.chance(3) ? inner : { type: 'optional', inner }
  }
  return fields
}

function randomField(random: Random, depth: number): ValidatorJson | OptionalJson {
  const inner = randomValidator(random, depth)
  if (random.chance(2)) return inner
  return random.chance(2) ? { type: 'optional', inner } : withDefault(random, inner)
}

function withDefault(random: Random, inner: ValidatorJson): OptionalJson {
  const value = randomValue(random, inner)
  if (value === undefined) return { type: 'optional', inner }
  const check = compileValidator(inner, { coerce: false, unknown: 'rejected' })
  const text = encodeStored(check(value, '$'))
  return { type: 'optional', inner, default: JSON.parse(text) as Json }
}

const COMPOSITES = ['array', 'record', 'object', 'object', 'union', 'nullable', 'open'] as const
const SCALARS = [
  'null',
  'boolean',
  'timestamp',
  'any',
  'int64',
  'float64',
  'string',
  'string',
  'bytes',
  'id',
  'literal',
  'literal',
] as const

function randomValidator(random: Random, depth = 0): ValidatorJson {
  if (depth >= 3 || random.chance(2)) return randomScalar(random)
  const type = random.pick(COMPOSITES)
  const inner = () => randomValidator(random, depth + 1)
  switch (type) {
    case 'array':
      return { type, items: inner(), ...maximumItems(random) }
    case 'record':
      return { type, values: inner(), ...maximumItems(random) }
    case 'object':
      return { type, fields: randomFields(random, depth + 1) }
    case 'nullable':
      return { type, inner: inner() }
    case 'union':
      return randomUnion(random, depth)
    case 'open':
      return { type, inner: randomUnion(random, depth) }
  }
}

function randomUnion(random: Random, depth: number): ValidatorJson {
  const members = Array.from({ length: 1 + random.below(3) }, () =>
    randomValidator(random, depth + 1),
  )
  return { type: 'union', members }
}

function maximumItems(random: Random): { maximumItems?: number } {
  return random.chance(2) ? { maximumItems: random.below(4) } : {}
}

function randomScalar(random: Random): ValidatorJson {
  const type = random.pick(SCALARS)
  switch (type) {
    case 'int64': {
      const low = random.below(4)
      return {
        type,
        ...(random.chance(2) ? { minimum: String(low) } : {}),
        ...(random.chance(2) ? { maximum: String(low + random.below(4)) } : {}),
      }
    }
    case 'float64': {
      const low = random.below(3) - 0.5
      return {
        type,
        ...(random.chance(2) ? { minimum: low } : {}),
        ...(random.chance(2) ? { maximum: low + random.below(3) } : {}),
      }
    }
    case 'string': {
      if (random.chance(3)) return { type, pattern: random.pick(PATTERNS) }
      const low = random.below(3)
      return {
        type,
        ...(random.chance(2) ? { minimumLength: low } : {}),
        ...(random.chance(2) ? { maximumLength: low + random.below(4) } : {}),
      }
    }
    case 'bytes':
      return { type, ...(random.chance(2) ? { maximumLength: random.below(4) } : {}) }
    case 'id':
      return { type, table: random.pick(['notes', 'users']) }
    case 'literal': {
      const values = [
        { string: random.pick(LITERALS) },
        { boolean: random.chance(2) },
        { int64: String(random.below(5)) },
      ]
      return { type, value: random.pick(values) }
    }
    default:
      return { type }
  }
}

/** Returns fields that differ in one place, at any depth. */
function changedFields(random: Random, fields: FieldsJson, depth = 0): FieldsJson {
  const names = Object.keys(fields)
  const name =
    names.length === 0 || random.chance(3) ? random.pick(FIELD_NAMES) : random.pick(names)
  const { [name]: field, ...others } = fields
  if (field === undefined) return { ...others, [name]: randomField(random, depth) }
  switch (random.below(5)) {
    case 0:
      return others
    case 1: {
      const inner = field.type === 'optional' ? field.inner : field
      const options = [inner, { type: 'optional', inner } as const, withDefault(random, inner)]
      return { ...others, [name]: random.pick(options) }
    }
    default: {
      if (field.type !== 'optional') {
        return { ...others, [name]: changedValidator(random, field, depth) }
      }
      const inner = changedValidator(random, field.inner, depth)
      const isKept = field.default !== undefined && random.chance(2)
      return {
        ...others,
        [name]: isKept ? withDefault(random, inner) : { type: 'optional', inner },
      }
    }
  }
}

function changedValidator(random: Random, json: ValidatorJson, depth: number): ValidatorJson {
  const deeper = (inner: ValidatorJson) => changedValidator(random, inner, depth + 1)
  if (random.chance(8)) return randomValidator(random, depth)
  if (random.chance(8)) return { type: 'nullable', inner: json }
  switch (json.type) {
    case 'object': {
      const changed = () =>
        ({ ...json, fields: changedFields(random, json.fields, depth + 1) }) as const
      if (random.chance(4)) {
        const [one, other] = [random.chance(2) ? json : changed(), changed()]
        return { type: 'union', members: [one, other] }
      }
      if (!random.chance(8)) return changed()
      const values = Object.values(json.fields).map((field) =>
        field.type === 'optional' ? field.inner : field,
      )
      const members = values.length === 0 ? [randomScalar(random)] : values
      return { type: 'record', values: { type: 'union', members }, ...maximumItems(random) }
    }
    case 'array':
      return {
        type: 'array',
        items: random.chance(2) ? deeper(json.items) : json.items,
        ...maximumItems(random),
      }
    case 'record':
      return {
        type: 'record',
        values: random.chance(2) ? deeper(json.values) : json.values,
        ...maximumItems(random),
      }
    case 'nullable':
      return random.chance(2) ? json.inner : { ...json, inner: deeper(json.inner) }
    case 'open':
      return random.chance(3) ? json.inner : { ...json, inner: deeper(json.inner) }
    case 'union': {
      const at = random.below(json.members.length)
      const members = [...json.members]
      // Whether a projection hides fields depends on it.
      if (members[at]!.type === 'object' && random.chance(4)) return members[at]!
      if (random.chance(3)) members[at] = deeper(members[at]!)
      else if (random.chance(2) && members.length > 1) members.splice(at, 1)
      else members.push(randomValidator(random, depth + 1))
      return random.chance(6) ? { type: 'open', inner: json } : { type: 'union', members }
    }
    default: {
      if (random.chance(3)) return { type: 'union', members: [json, randomScalar(random)] }
      const other = randomScalar(random)
      for (let i = 0; i < 20; i++) {
        const same = randomScalar(random)
        if (same.type === json.type) return same
      }
      return other
    }
  }
}

/** Returns a value that fits; undefined if none was found. */
export function randomValue(random: Random, json: ValidatorJson): Value | undefined {
  const value = proposedValue(random, json)
  return value !== undefined && fits(json, value) ? value : undefined
}

const checks = new WeakMap<ValidatorJson, Check>()

/** Returns whether a Release with the validator may write the value. */
export function fits(json: ValidatorJson, value: Value): boolean {
  let check = checks.get(json)
  if (check === undefined) {
    check = compileValidator(json, { coerce: false, unknown: 'rejected' })
    checks.set(json, check)
  }
  try {
    check(value, '$')
    return true
  } catch (error) {
    if (error instanceof ValidationError) return false
    throw error
  }
}

const ANYTHING: readonly Value[] = [null, true, 1n, 0.5, 'a', 'other', new Timestamp(1n), []]

function proposedValue(random: Random, json: ValidatorJson): Value | undefined {
  switch (json.type) {
    case 'null':
      return null
    case 'any':
      return random.chance(3) ? new Map([['a', random.pick(ANYTHING)]]) : random.pick(ANYTHING)
    case 'boolean':
      return random.chance(2)
    case 'timestamp':
      return new Timestamp(BigInt(random.below(3)))
    case 'int64':
      return oneThatFits(random, json, [-1n, 0n, 1n, 2n, 3n, 4n, 5n, 6n])
    case 'float64':
      return oneThatFits(random, json, [-2, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4])
    case 'string':
      return oneThatFits(random, json, TEXTS)
    case 'bytes':
      return new Uint8Array(random.below((json.maximumLength ?? 4) + 1))
    case 'id':
      return new TypedId(`${json.table}_${'0'.repeat(25)}${random.below(4)}`)
    case 'literal': {
      const { value } = json
      if ('string' in value) return value.string
      return 'boolean' in value ? value.boolean : BigInt(value.int64)
    }
    case 'array':
      return repeated(random, json.items, json.maximumItems)
    case 'record':
      return randomRecord(random, json.values, json.maximumItems)
    case 'object':
      return randomObject(random, json.fields)
    case 'nullable':
      return random.chance(3) ? null : proposedValue(random, json.inner)
    case 'open':
      return proposedValue(random, json.inner)
    case 'union':
      return proposedValue(random, random.pick(json.members))
  }
}

function oneThatFits<T extends Value>(
  random: Random,
  json: ValidatorJson,
  values: readonly T[],
): T | undefined {
  const fitting = values.filter((value) => fits(json, value))
  return fitting.length === 0 ? undefined : random.pick(fitting)
}

function repeated(random: Random, items: ValidatorJson, most = 3): Value[] | undefined {
  const values: Value[] = []
  for (let i = random.below(most + 1); i > 0; i--) {
    const value = proposedValue(random, items)
    if (value === undefined) return undefined
    values.push(value)
  }
  return values
}

function randomRecord(random: Random, json: ValidatorJson, most?: number): Value | undefined {
  const values = repeated(random, json, most)
  if (values === undefined) return undefined
  const keys = random.chance(2) ? FIELD_NAMES : ['x', 'y', 'a', 'b']
  return new Map(values.map((value, i) => [keys[i % keys.length]!, value]))
}

export function randomObject(random: Random, fields: FieldsJson): Map<string, Value> | undefined {
  const object = new Map<string, Value>()
  for (const [name, field] of Object.entries(fields)) {
    if (field.type === 'optional' && random.chance(2)) continue
    const value = proposedValue(random, field.type === 'optional' ? field.inner : field)
    if (value === undefined) {
      if (field.type === 'optional') continue
      return undefined
    }
    object.set(name, value)
  }
  return object
}
