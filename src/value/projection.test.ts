import { describe, expect, test } from 'vitest'
import { arbitraryDocument } from '../../testing/arbitrary/validators.ts'
import { fc } from '../../testing/properties.ts'
import { SEED } from '../../testing/seeds.ts'
import { accepts } from './plain/tags.ts'
import { changesReads, compileProjection } from './projection.ts'
import { decodeStored, encodeStored } from './stored.ts'
import { type Json, parseStrictJson } from './strict-json.ts'
import { parseFields } from './validator-json.ts'
import { compileValidator, type FieldsJson, type ValidatorJson } from './validators.ts'
import type { Value, ValueObject } from './values.ts'

const STRING = { type: 'string' } as const
const BLUE: ValidatorJson = { type: 'literal', value: { string: 'blue' } }
const COLOR: ValidatorJson = { type: 'open', inner: { type: 'union', members: [BLUE] } }
const object = (fields: FieldsJson): ValidatorJson => ({ type: 'object', fields })
const optional = (inner: ValidatorJson, byDefault?: Json) =>
  ({ type: 'optional', inner, ...(byDefault !== undefined && { default: byDefault }) }) as const

/** A table, as a Release that reads and writes it does both. */
function release(fields: FieldsJson) {
  const table = object(parseFields(fields as unknown as Json))
  const projection = compileProjection(fields)
  const check = compileValidator(table, { coerce: true, unknown: 'as-kept' })
  const stored = (json: unknown) => decodeStored(JSON.stringify(json)) as ValueObject
  const shown = (value: ValueObject): unknown => JSON.parse(encodeStored(value))
  return {
    read: (json: unknown) => shown(projection.read(stored(json))),
    replace: (before: unknown, json: unknown) => {
      const written = check(stored(json), '$') as ValueObject
      return shown(projection.keep(before === null ? null : stored(before), written, '$'))
    },
    countHidden: (json: unknown) => projection.countHidden(stored(json)),
  }
}

describe('a projection', () => {
  const person = object({ first: STRING })
  const { read, replace, countHidden } = release({
    name: STRING,
    home: person,
    work: optional({ type: 'nullable', inner: person }),
    all: optional({ type: 'array', items: person }),
    byKey: optional({ type: 'record', values: person }),
    either: optional({ type: 'union', members: [person, { type: 'null' }] }),
    raw: optional({ type: 'any' }),
  })
  const grown = { first: 'a', last: 'b' }

  test('a projection hides undeclared fields of the document and of objects in fields', () => {
    const stored = { name: 'n', age: { $i: '1' }, home: grown, work: grown }
    const seen = { name: 'n', home: { first: 'a' }, work: { first: 'a' } }
    expect(read(stored)).toEqual(seen)
    expect(countHidden(stored)).toBe(3)
    expect(replace(stored, seen)).toEqual(stored)
  })

  test('a projection hides nothing inside arrays, records, members of unions and any', () => {
    const parts = { all: [grown], byKey: { k: grown }, either: grown, raw: grown }
    const stored = { name: 'n', home: { first: 'a' }, ...parts }
    expect(read(stored)).toEqual(stored)
    expect(countHidden(stored)).toBe(0)
  })

  test('hidden fields of an object are dropped with the object', () => {
    const stored = { name: 'n', home: grown, work: grown }
    const written = { name: 'n', home: { first: 'c' } }
    const home = { first: 'c', last: 'b' }
    expect(replace(stored, written)).toEqual({ name: 'n', home })
    expect(replace(stored, { ...written, work: null })).toEqual({ name: 'n', home, work: null })
    expect(replace(null, written)).toEqual(written)
  })

  test('a value that is not of its declared type is read as it is', () => {
    const stored = { name: { $i: '1' }, home: 'none', work: [], all: [grown] }
    expect(read(stored)).toEqual(stored)
    expect(countHidden(stored)).toBe(0)
    expect(replace(stored, { name: 'n', home: { first: 'a' } })).toEqual({
      name: 'n',
      home: { first: 'a' },
    })
  })

  test('a document with nothing hidden is returned itself', () => {
    const fields = { name: STRING, tag: optional(STRING, 'none'), home: person, color: COLOR }
    const { read } = compileProjection(fields)
    const home = new Map([['first', 'a']])
    const whole = new Map<string, Value>(
      Object.entries({ name: 'n', tag: 't', home, color: 'blue' }),
    )
    expect(read(whole)).toBe(whole)
    expect(changesReads(fields)).toBe(true)
    expect(changesReads({ name: STRING, home: person })).toBe(false)
  })
})

describe('defaults and unknown members in a document', () => {
  const fields = {
    level: optional({ type: 'int64' }, { $i: '3' }),
    home: optional(object({ city: optional(STRING, 'Rome') })),
    color: optional({ type: 'nullable', inner: COLOR }),
    colors: optional({ type: 'array', items: COLOR }),
    list: optional({ type: 'array', items: object({ n: optional(STRING, 'x') }) }),
  } as const
  const { read, replace } = release(fields)
  const unknown = { unknown: true }

  test('an absent field is read with its default, also inside objects and arrays', () => {
    expect(read({ home: {}, list: [{}, { n: 'y' }] })).toEqual({
      level: { $i: '3' },
      home: { city: 'Rome' },
      list: [{ n: 'x' }, { n: 'y' }],
    })
    expect(read({ level: { $i: '4' } })).toEqual({ level: { $i: '4' } })
  })

  test('a write stores the defaults that it leaves out', () => {
    expect(replace(null, { home: {}, list: [{}] })).toEqual({
      level: { $i: '3' },
      home: { city: 'Rome' },
      list: [{ n: 'x' }],
    })
  })

  test('an unknown member is read as { unknown: true }, and stays when that is written', () => {
    const stored = { level: { $i: '1' }, color: { name: 'green' }, colors: ['blue', 'green'] }
    const seen = { level: { $i: '1' }, color: unknown, colors: ['blue', unknown] }
    expect(read(stored)).toEqual(seen)
    expect(replace(stored, { ...seen, colors: ['blue'] })).toEqual({ ...stored, colors: ['blue'] })
    expect(replace(stored, { color: 'blue' })).toEqual({ level: { $i: '3' }, color: 'blue' })
  })

  test('an array with an unknown member stays where it is written as it was read', () => {
    const stored = { color: 'blue', colors: ['green', 'blue'], list: [{}] }
    const seen = { color: null, colors: [unknown, 'blue'], list: [{ n: 'x' }] }
    const level = { level: { $i: '3' } }
    expect(read(stored)).toEqual({ ...level, ...seen, color: 'blue' })
    expect(replace(stored, seen)).toEqual({ ...level, ...seen, colors: ['green', 'blue'] })
  })

  test.each([
    ['in a new document', '$.color', null, { color: unknown }],
    ['over a known member', '$.color', { color: 'blue' }, { color: unknown }],
    ['over null', '$.color', { color: null }, { color: unknown }],
    ['over an absent field', '$.color', {}, { color: unknown }],
    ['in a changed array', '$.colors[1]', { colors: ['green'] }, { colors: ['blue', unknown] }],
    ['in a shorter array', '$.colors[0]', { colors: ['a', 'b'] }, { colors: [unknown] }],
  ])('{ unknown: true } is rejected %s', (_, path, stored, written) => {
    expect(() => replace(stored, written)).toThrow(
      `${path}: a member of the union: { unknown: true } can only be written back`,
    )
  })
})

/** Makes what other Releases may have stored of a document: more fields, and unknown members. */
class Later {
  hidden = 0
  unknown = 0
  readonly #pick: (max: number) => number

  constructor(pick: (max: number) => number) {
    this.#pick = pick
  }

  document(fields: FieldsJson, document: ValueObject): ValueObject {
    const stored = new Map<string, Value>()
    for (const [name, value] of document) {
      const field = fields[name]!
      if (field.type !== 'optional') stored.set(name, this.#value(field, value))
      else if (field.default === undefined || this.#pick(1) === 0) {
        stored.set(name, this.#value(field.inner, value))
      }
    }
    for (let i = this.#pick(2); i > 0; i--) {
      this.hidden += 1
      stored.set(`later${i}`, new Map([['at', BigInt(this.#pick(9))]]))
    }
    return stored
  }

  #value(json: ValidatorJson, value: Value): Value {
    if (json.type === 'nullable') return value === null ? null : this.#value(json.inner, value)
    if (json.type === 'object') return this.document(json.fields, value as ValueObject)
    return this.#part(json, value)
  }

  /** Puts unknown members, and no other fields, into the parts of arrays and records. */
  #part(json: ValidatorJson, value: Value): Value {
    switch (json.type) {
      case 'nullable':
        return value === null ? null : this.#part(json.inner, value)
      case 'array':
        return (value as readonly Value[]).map((item) => this.#part(json.items, item))
      case 'record': {
        const items = [...(value as ValueObject)]
        return new Map(items.map(([name, item]) => [name, this.#part(json.values, item)]))
      }
      case 'open':
        return this.#unknown(json, value)
      default:
        return value
    }
  }

  #unknown(json: Extract<ValidatorJson, { readonly type: 'open' }>, value: Value): Value {
    if (this.#pick(1) === 0) return value
    const later = ['later', BigInt(this.#pick(9))]
    if (accepts(compileValidator(json.inner, { coerce: false }), later)) return value
    this.unknown += 1
    return later
  }
}

test(`no write loses what its Release does not see (SVC_SEED=${SEED})`, { tags: ['slow'] }, () => {
  const met = { hidden: 0, unknown: 0, defaults: 0, written: 0 }
  const numbers = fc.infiniteStream(fc.nat({ max: 1_000 }))
  const property = fc.property(arbitraryDocument, numbers, ([table, document], stream) => {
    const pick = (max: number): number => (stream.next().value ?? 0) % (max + 1)
    const { fields } = table as Extract<ValidatorJson, { readonly type: 'object' }>
    const later = new Later(pick)
    const stored = later.document(fields, document as ValueObject)
    const text = encodeStored(stored)
    const projection = compileProjection(fields)
    expect(projection.countHidden(stored)).toBe(later.hidden)

    const seen = projection.read(stored)
    expect(encodeStored(stored)).toBe(text)
    expect(encodeStored(projection.read(seen))).toBe(encodeStored(seen))
    expect(projection.countHidden(seen)).toBe(0)
    const checkRead = compileValidator(table, { coerce: false, unknown: 'as-read' })
    expect(encodeStored(checkRead(seen, '$'))).toBe(encodeStored(seen))

    const checkWrite = compileValidator(table, { coerce: false, unknown: 'as-kept' })
    const written = checkWrite(seen, '$') as ValueObject
    const kept = projection.keep(stored, written, '$')
    expect(encodeStored(projection.read(kept))).toBe(encodeStored(seen))
    expect(projection.countHidden(kept)).toBe(later.hidden)
    expect(texts(kept)).toEqual(expect.arrayContaining(texts(stored)))
    met.written += 1
    met.hidden += later.hidden
    met.unknown += later.unknown
    if (!changesReads(fields)) expect(encodeStored(kept)).toBe(text)
    else if (encodeStored(kept) !== text) met.defaults += 1
  })
  fc.assert(property, { seed: SEED, numRuns: 3_000 })
  for (const count of Object.values(met)) expect(count).toBeGreaterThan(50)
})

/** Returns the paths of a document with the text of each scalar, and of each empty composite. */
function texts(value: Value, path = '$'): string[] {
  const parts: (readonly [string, Value])[] =
    value instanceof Map
      ? [...(value as ValueObject)].map(([key, item]) => [`.${key}`, item] as const)
      : Array.isArray(value)
        ? (value as readonly Value[]).map((item, i) => [`[${i}]`, item] as const)
        : []
  if (parts.length === 0) {
    // An empty object may get defaults.
    return value instanceof Map ? [] : [`${path} ${encodeStored(value)}`]
  }
  return parts.flatMap(([part, item]) => texts(item, `${path}${part}`))
}

test(`a check returns what it returned before unchanged (SVC_SEED=${SEED})`, () => {
  const property = fc.property(arbitraryDocument, fc.nat(), ([table, document], gone) => {
    const whole = [...(document as ValueObject)]
    const partial = new Map(whole.filter((_, i) => (gone & (1 << i)) === 0))
    for (const unknown of ['as-value', 'as-read'] as const) {
      const check = compileValidator(table, { coerce: false, unknown })
      if (!accepts(check, partial)) continue
      const once = check(partial, '$')
      expect(encodeStored(check(once, '$'))).toBe(encodeStored(once))
    }
  })
  fc.assert(property, { seed: SEED, numRuns: 3_000 })
})

test('stored JSON of a default survives a strict parser', () => {
  const json = { n: { type: 'optional', inner: { type: 'int64' }, default: { $i: '-5' } } } as const
  const parsed = parseFields(parseStrictJson(JSON.stringify(json)))
  expect(encodeStored(compileProjection(parsed).read(new Map()))).toBe('{"n":{"$i":"-5"}}')
})

test('a member with an unknown member inside is kept as a whole', () => {
  const shapes: ValidatorJson = {
    type: 'open',
    inner: { type: 'union', members: [object({ color: COLOR })] },
  }
  const { read, replace } = release({ name: STRING, shape: optional(shapes) })
  const stored = { name: 'a', shape: { color: 'red' } }
  const seen = { name: 'a', shape: { color: { unknown: true } } }
  expect(read(stored)).toEqual(seen)
  expect(replace(stored, seen)).toEqual(stored)
  const changed = { name: 'a', shape: { color: 'blue' } }
  expect(replace(stored, changed)).toEqual(changed)
  const moved = { name: 'a', shape: { color: { unknown: true } } }
  expect(() => replace(changed, moved)).toThrow('$.shape: a member of the union')
})
