import { describe, expect, test } from 'vitest'
import { fc } from '../../../testing/properties.ts'
import type { TableManifest } from '../../value/manifest.ts'
import {
  compileValidator,
  type FieldsJson,
  type OptionalJson,
  type ValidatorJson,
} from '../../value/validators.ts'
import { Timestamp, TypedId, type Value } from '../../value/values.ts'
import { removedTables, SchemaComparison, STEPS_MAX } from './schema-comparison.ts'

type Tables = ReadonlyMap<string, TableManifest>

function tables(fields: FieldsJson, names: readonly string[] = ['notes']): Tables {
  return new Map(names.map((name) => [name, { name, fields, indexes: [] }]))
}
function rejected(next: FieldsJson, previous: FieldsJson): string[] {
  return new SchemaComparison().rejectedDocuments(tables(next), tables(previous))
}

const string: ValidatorJson = { type: 'string' }
const optional = (inner: ValidatorJson): OptionalJson => ({ type: 'optional', inner })
const union = (...members: ValidatorJson[]): ValidatorJson => ({ type: 'union', members })
const slug: ValidatorJson = { type: 'string', pattern: '[a-z-]+' }
const literal = (text: string): ValidatorJson => ({ type: 'literal', value: { string: text } })
const nullable = (inner: ValidatorJson): ValidatorJson => ({ type: 'nullable', inner })
const object = (fields: FieldsJson): ValidatorJson => ({ type: 'object', fields })

test('a removed table is reported by its name', () => {
  expect(removedTables(new Map(), tables({}))).toEqual(['notes'])
  expect(removedTables(tables({}), new Map())).toEqual([])
  expect(new SchemaComparison().rejectedDocuments(new Map(), tables({ a: string }))).toEqual([])
})

describe('earlier documents stay valid', () => {
  test.each<[string, FieldsJson, FieldsJson]>([
    ['the same schema', { a: string }, { a: string }],
    ['a new optional field', { a: string }, { a: string, b: optional(string) }],
    ['a required field that became optional', { a: string }, { a: optional(string) }],
    ['a field that accepts anything', { a: string }, { a: { type: 'any' } }],
    ['a field that became nullable', { a: string }, { a: nullable(string) }],
    ['a wider union', { a: literal('x') }, { a: union(literal('y'), literal('x')) }],
    [
      'a union in another order',
      { a: union(literal('x'), string) },
      { a: union(string, literal('x')) },
    ],
    ['a literal that became its type', { a: literal('x') }, { a: string }],
    [
      'a literal inside new bounds',
      { a: literal('xy') },
      { a: { type: 'string', maximumLength: 2 } },
    ],
    [
      'nullable as a union with null',
      { a: nullable(string) },
      { a: union(string, { type: 'null' }) },
    ],
    [
      'a union with null as nullable',
      { a: union(string, { type: 'null' }) },
      { a: nullable(string) },
    ],
    [
      'longer strings',
      { a: { type: 'string', maximumLength: 5 } },
      { a: { type: 'string', maximumLength: 6 } },
    ],
    ['the same pattern', { a: slug }, { a: slug }],
    ['a pattern that went away', { a: slug }, { a: string }],
    ['a literal that matches the pattern', { a: literal('a-b') }, { a: slug }],
    ['a bound that went away', { a: { type: 'int64', minimum: '5' } }, { a: { type: 'int64' } }],
    ['a deeper optional field', { a: object({}) }, { a: object({ b: optional(string) }) }],
  ])('earlier documents stay valid under %s', (_, previous, next) => {
    expect(rejected(next, previous)).toEqual([])
  })
})

describe('earlier documents may be rejected', () => {
  test.each<[string, FieldsJson, FieldsJson, string]>([
    ['a removed field', { a: string, b: string }, { a: string }, 'notes.b'],
    ['a removed optional field', { b: optional(string) }, {}, 'notes.b'],
    ['a new required field', {}, { c: string }, 'notes.c'],
    ['an optional field that became required', { a: optional(string) }, { a: string }, 'notes.a'],
    ['another type', { a: string }, { a: { type: 'int64' } }, 'notes.a'],
    ['anything that became something', { a: { type: 'any' } }, { a: string }, 'notes.a'],
    ['null that is rejected', { a: nullable(string) }, { a: string }, 'notes.a'],
    [
      'a smaller union',
      { a: union(literal('x'), literal('y')) },
      { a: union(literal('x')) },
      'notes.a',
    ],
    ['a type that became a literal', { a: string }, { a: literal('x') }, 'notes.a'],
    ['a new pattern', { a: string }, { a: slug }, 'notes.a'],
    ['another pattern', { a: { ...slug, pattern: '[a-z]' } }, { a: slug }, 'notes.a'],
    ['a literal outside the pattern', { a: literal('A') }, { a: slug }, 'notes.a'],
    ['shorter strings', { a: string }, { a: { type: 'string', maximumLength: 5 } }, 'notes.a'],
    [
      'a higher lower bound',
      { a: { type: 'int64' } },
      { a: { type: 'int64', minimum: '0' } },
      'notes.a',
    ],
    [
      'IDs of another table',
      { a: { type: 'id', table: 'x' } },
      { a: { type: 'id', table: 'y' } },
      'notes.a',
    ],
    [
      'a deeper change',
      { a: { type: 'array', items: object({ b: string }) } },
      { a: { type: 'array', items: object({ b: string, c: string }) } },
      'notes.a[].c',
    ],
    [
      'fewer entries',
      { a: { type: 'record', values: string } },
      { a: { type: 'record', values: string, maximumItems: 3 } },
      'notes.a',
    ],
  ])('earlier documents may be rejected under %s', (_, previous, next, path) => {
    expect(rejected(next, previous)).toEqual([expect.stringContaining(`${path}: `)])
  })
})

describe('the cost of a comparison is bounded:', () => {
  const times = <T>(count: number, make: (i: number) => T): T[] =>
    Array.from({ length: count }, (_, i) => make(i))
  const literals = (count: number, prefix = 'v'): ValidatorJson =>
    union(...times(count, (i) => literal(`${prefix}${i}`)))
  const fields = (count: number, field: ValidatorJson): FieldsJson =>
    Object.fromEntries(times(count, (i) => [`f${i}`, field]))
  const tooComplex = [expect.stringMatching(/^[a-z0-9]+: too complex to compare$/)]

  function compared(next: Tables, previous: Tables) {
    const comparison = new SchemaComparison()
    return { rejected: comparison.rejectedDocuments(next, previous), steps: comparison.steps }
  }

  test('a literal costs one step against a validator of any size that accepts no literal', () => {
    const huge = object(fields(1_000, object(fields(32, { type: 'null' }))))
    const next = tables({ a: union({ type: 'array', items: huge }, string) })
    const previous = tables({ a: union(...times(64, (i) => literals(64, `v${i}_`))) })
    const { rejected, steps } = compared(next, previous)
    expect(rejected).toEqual([])
    expect(steps).toBeLessThan(4 * 64 * 64)
  })

  test('a union costs as many steps as it has members while their order is kept', () => {
    const names = times(300, (i) => `t${i}`)
    const next = tables({ a: literals(256), b: optional(string) }, names)
    const { rejected, steps } = compared(next, tables({ a: literals(256) }, names))
    expect(rejected).toEqual([])
    expect(steps).toBeLessThan(300 * 3 * 256)
    const grown = tables({ a: union(literal('new'), ...times(255, (i) => literal(`v${i}`))) })
    expect(compared(grown, tables({ a: literals(255) })).steps).toBeLessThan(3 * 256)
  })

  test('equal tables cost no step', () => {
    const names = times(300, (i) => `t${i}`)
    const { rejected, steps } = compared(
      tables({ a: literals(256) }, names),
      tables({ a: literals(256) }, names),
    )
    expect({ rejected, steps }).toEqual({ rejected: [], steps: 0 })
  })

  test('all tables and pairs of one request share the steps', () => {
    const names = times(1_000, (i) => `t${i}`)
    const reversed = union(...times(200, (i) => literal(`v${199 - i}`)))
    const comparison = new SchemaComparison()
    const next = tables({ a: reversed }, names)
    const previous = tables({ a: literals(200) }, names)
    expect(comparison.rejectedDocuments(next, previous)).toEqual(tooComplex)
    expect(comparison.steps).toBeLessThan(STEPS_MAX + 10_000)
    expect([comparison.conflict(previous, next)]).toEqual(tooComplex)
    expect(comparison.steps).toBeLessThan(STEPS_MAX + 20_000)
  })

  test.each<[string, ValidatorJson, ValidatorJson]>([
    [
      'unions inside unions',
      union(...times(250, () => ({ type: 'null' }) as const), string),
      union(...times(200, () => nullable(union(...times(200, () => nullable(string)))))),
    ],
    [
      'unions of wide objects',
      union(...times(60, (i) => object({ ...fields(1_000, string), [`x${i}`]: string }))),
      union(...times(60, (i) => object({ ...fields(1_000, string), [`x${59 - i}`]: string }))),
    ],
    [
      'long literals that differ in their last character',
      union(...times(256, (i) => literal('x'.repeat(8_000) + String.fromCharCode(256 + i)))),
      union(...times(256, (i) => literal('x'.repeat(8_000) + String.fromCharCode(511 - i)))),
    ],
    ['a long literal and a pattern', slug, literal('a'.repeat(30_000))],
    [
      'many patterns',
      union(...times(30, (i) => union(...times(30, (j) => ({ ...slug, pattern: `${i}_${j}` }))))),
      literal('a'),
    ],
  ])('a comparison of %s is too complex', (_, next, previous) => {
    const { rejected, steps } = compared(tables({ a: next }), tables({ a: previous }))
    expect(rejected).toEqual(['notes: too complex to compare'])
    expect(steps).toBeLessThan(2 * STEPS_MAX)
  })

  test('a comparison of many indexes is too complex', () => {
    const index = (i: number) => ({ name: `i${i}`, fields: ['a', 'b'], unique: true })
    const indexed = (count: number): Tables =>
      new Map(
        times(1_000, (t) => {
          const name = `t${t}`
          return [name, { name, fields: {}, indexes: times(count, index) }]
        }),
      )
    const one = indexed(64)
    const other = indexed(63)
    const comparison = new SchemaComparison()
    const found = times(10, () => comparison.conflict(one, other))
    expect(found[0]).toBeNull()
    expect(found.slice(-1)).toEqual(tooComplex)
  })
})

describe('a comparison is sound:', () => {
  const small = fc.integer({ min: 0, max: 3 })
  const { validator } = fc.letrec<{ validator: ValidatorJson; field: FieldsJson[string] }>(
    (tie) => ({
      validator: fc.oneof(
        { maxDepth: 3, withCrossShrink: true },
        fc.constantFrom<ValidatorJson>(
          { type: 'null' },
          { type: 'boolean' },
          { type: 'any' },
          { type: 'timestamp' },
          { type: 'float64' },
          { type: 'id', table: 'a' },
          literal('x'),
          { type: 'literal', value: { int64: '1' } },
          { type: 'literal', value: { boolean: true } },
        ),
        fc.record({ type: fc.constant('string' as const), maximumLength: small }),
        fc.record({ type: fc.constant('string' as const), minimumLength: small }),
        fc.record({ type: fc.constant('int64' as const), minimum: small.map(String) }),
        fc.record({ type: fc.constant('int64' as const), maximum: small.map(String) }),
        fc.record({ type: fc.constant('bytes' as const), maximumLength: small }),
        fc.record({ type: fc.constant('nullable' as const), inner: tie('validator') }),
        fc.record({
          type: fc.constant('union' as const),
          members: fc.array(tie('validator'), { minLength: 1, maxLength: 3 }),
        }),
        fc.record({
          type: fc.constant('array' as const),
          items: tie('validator'),
          maximumItems: small,
        }),
        fc.record({ type: fc.constant('record' as const), values: tie('validator') }),
        fc.record({
          type: fc.constant('object' as const),
          fields: fc.dictionary(fc.constantFrom('p', 'q'), tie('field')),
        }),
      ),
      field: fc.oneof(
        tie('validator'),
        tie('validator').map((inner) => optional(inner)),
      ),
    }),
  )
  const { value } = fc.letrec<{ value: Value }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<Value>(
        null,
        true,
        false,
        0n,
        1n,
        3n,
        0.5,
        '',
        'x',
        'xyz',
        new Uint8Array(2),
        new Timestamp(5n),
        new TypedId('a_01ARZ3NDEKTSV4RRFFQ69G5FAV'),
      ),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('p', 'q'), tie('value')).map((entries) => {
        return new Map(Object.entries(entries))
      }),
    ),
  }))

  function accepts(json: ValidatorJson, candidate: Value): boolean {
    try {
      compileValidator(json, { coerce: false })(candidate, '$')
      return true
    } catch {
      return false
    }
  }

  test('a schema that passes rejects no value that fitted', () => {
    let passed = 0
    let checked = 0
    fc.assert(
      fc.property(validator, validator, fc.array(value, { maxLength: 20 }), (a, b, values) => {
        if (rejected({ f: b }, { f: a }).length > 0) return
        passed += 1
        for (const candidate of values) {
          if (!accepts(a, candidate)) continue
          checked += 1
          expect(accepts(b, candidate)).toBe(true)
        }
      }),
      { numRuns: 20_000, verbose: true },
    )
    // With fewer the test would prove nothing.
    expect(passed).toBeGreaterThan(200)
    expect(checked).toBeGreaterThan(200)
  })
})
