import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { TableManifest } from '../value/manifest.ts'
import {
  compileValidator,
  type FieldsJson,
  type OptionalJson,
  type ValidatorJson,
} from '../value/validators.ts'
import { Timestamp, TypedId, type Value } from '../value/values.ts'
import { refusedDocuments, removedTables } from './schema-compatibility.ts'

function tables(fields: FieldsJson): ReadonlyMap<string, TableManifest> {
  return new Map([['notes', { name: 'notes', fields, indexes: [] }]])
}
function refused(next: FieldsJson, previous: FieldsJson): string[] {
  return refusedDocuments(tables(next), tables(previous))
}

const string: ValidatorJson = { type: 'string' }
const optional = (inner: ValidatorJson): OptionalJson => ({ type: 'optional', inner })
const union = (...members: ValidatorJson[]): ValidatorJson => ({ type: 'union', members })
const slug: ValidatorJson = { type: 'string', pattern: '[a-z-]+' }
const literal = (text: string): ValidatorJson => ({ type: 'literal', value: { string: text } })
const nullable = (inner: ValidatorJson): ValidatorJson => ({ type: 'nullable', inner })
const object = (fields: FieldsJson): ValidatorJson => ({ type: 'object', fields })

test('a removed table is named', () => {
  expect(removedTables(new Map(), tables({}))).toEqual(['notes'])
  expect(removedTables(tables({}), new Map())).toEqual([])
  expect(refusedDocuments(new Map(), tables({ a: string }))).toEqual([])
})

describe('earlier documents stay valid', () => {
  test.each<[string, FieldsJson, FieldsJson]>([
    ['the same schema', { a: string }, { a: string }],
    ['a new optional field', { a: string }, { a: string, b: optional(string) }],
    ['a required field that became optional', { a: string }, { a: optional(string) }],
    ['a field that takes anything', { a: string }, { a: { type: 'any' } }],
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
  ])('under %s', (_, previous, next) => {
    expect(refused(next, previous)).toEqual([])
  })
})

describe('earlier documents may be refused', () => {
  test.each<[string, FieldsJson, FieldsJson, string]>([
    ['a removed field', { a: string, b: string }, { a: string }, 'notes.b'],
    ['a removed optional field', { b: optional(string) }, {}, 'notes.b'],
    ['a new required field', {}, { c: string }, 'notes.c'],
    ['an optional field that became required', { a: optional(string) }, { a: string }, 'notes.a'],
    ['another type', { a: string }, { a: { type: 'int64' } }, 'notes.a'],
    ['anything that became something', { a: { type: 'any' } }, { a: string }, 'notes.a'],
    ['null that is refused', { a: nullable(string) }, { a: string }, 'notes.a'],
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
  ])('under %s', (_, previous, next, path) => {
    expect(refused(next, previous)).toEqual([expect.stringContaining(`${path}: `)])
  })

  test('where the schemas are too complex to compare, in bounded time', () => {
    const wide = (depth: number): ValidatorJson =>
      depth === 0 ? string : union(...Array.from({ length: 200 }, () => nullable(wide(depth - 1))))
    const started = performance.now()
    const result = refused(
      { a: union(...Array(250).fill({ type: 'null' }), wide(2)) },
      { a: wide(2) },
    )
    // One that takes all is among the members, beyond what is looked at.
    expect(result).toHaveLength(1)
    expect(performance.now() - started).toBeLessThan(2_000)
  })
})

describe('soundness', () => {
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

  function takes(json: ValidatorJson, candidate: Value): boolean {
    try {
      compileValidator(json, { coerce: false })(candidate, '$')
      return true
    } catch {
      return false
    }
  }

  test('no value that fitted is refused by a schema that passes', () => {
    let passed = 0
    let tried = 0
    fc.assert(
      fc.property(validator, validator, fc.array(value, { maxLength: 20 }), (a, b, values) => {
        if (refused({ f: b }, { f: a }).length > 0) return
        passed += 1
        for (const candidate of values) {
          if (!takes(a, candidate)) continue
          tried += 1
          expect(takes(b, candidate)).toBe(true)
        }
      }),
      { numRuns: 20_000, verbose: true },
    )
    // Otherwise the test would say nothing.
    expect(passed).toBeGreaterThan(200)
    expect(tried).toBeGreaterThan(200)
  })
})
