/** The bound of a comparison, and its soundness with values of all kinds. */
import { describe, expect, test } from 'vitest'
import { fc, inputs } from '../../../../testing/properties.ts'
import {
  compileValidator,
  type FieldsJson,
  type OptionalJson,
  type ValidatorJson,
} from '../../../value/validators.ts'
import { Timestamp, TypedId, type Value } from '../../../value/values.ts'
import type { Refusal } from './refusals.ts'
import { SchemaComparison, STEPS_MAX, type Tables } from './schema-comparison.ts'

function tables(fields: FieldsJson, names: readonly string[] = ['notes']): Tables {
  return new Map(names.map((name) => [name, { name, fields, indexes: [] }]))
}

function unreadable(next: Tables, previous: Tables): Refusal[] {
  return new SchemaComparison().unreadable({ reader: next, writer: previous, newer: 'reader' })
}

/** Returns what a Release with `next` cannot read of one with `previous`. */
function refused(next: FieldsJson, previous: FieldsJson): Refusal[] {
  return unreadable(tables(next), tables(previous))
}

const string: ValidatorJson = { type: 'string' }
const optional = (inner: ValidatorJson): OptionalJson => ({ type: 'optional', inner })
const union = (...members: ValidatorJson[]): ValidatorJson => ({ type: 'union', members })
const slug: ValidatorJson = { type: 'string', pattern: '[a-z-]+' }
const literal = (text: string): ValidatorJson => ({ type: 'literal', value: { string: text } })
const nullable = (inner: ValidatorJson): ValidatorJson => ({ type: 'nullable', inner })
const object = (fields: FieldsJson): ValidatorJson => ({ type: 'object', fields })
const array = (items: ValidatorJson): ValidatorJson => ({ type: 'array', items })

describe('the cost of a comparison is bounded:', () => {
  const times = <T>(count: number, make: (i: number) => T): T[] =>
    Array.from({ length: count }, (_, i) => make(i))
  const literals = (count: number, prefix = 'v'): ValidatorJson =>
    union(...times(count, (i) => literal(`${prefix}${i}`)))
  const fields = (count: number, field: ValidatorJson): FieldsJson =>
    Object.fromEntries(times(count, (i) => [`f${i}`, field]))
  const tooComplex = [expect.objectContaining({ path: '', change: 'too complex to compare' })]

  function compared(next: Tables, previous: Tables) {
    const comparison = new SchemaComparison()
    const found = comparison.unreadable({ reader: next, writer: previous, newer: 'reader' })
    return { rejected: found, steps: comparison.steps }
  }

  test('a literal costs one step against a validator of any size that accepts no literal', () => {
    const huge = object(fields(1_000, object(fields(32, { type: 'null' }))))
    const next = tables({ a: union({ type: 'array', items: huge }, string) })
    const previous = tables({ a: union(...times(64, (i) => literals(64, `v${i}_`))) })
    const { rejected, steps } = compared(next, previous)
    expect(rejected).toEqual([])
    expect(steps).toBeLessThan(5 * 64 * 64)
  })

  test('a union costs as many steps as it has members while their order is kept', () => {
    const names = times(300, (i) => `t${i}`)
    const next = tables({ a: literals(256), b: optional(string) }, names)
    const { rejected, steps } = compared(next, tables({ a: literals(256) }, names))
    expect(rejected).toEqual([])
    expect(steps).toBeLessThan(300 * 3 * 256)
    const grown = tables({ a: union(literal('new'), ...times(255, (i) => literal(`v${i}`))) })
    expect(compared(grown, tables({ a: literals(255) })).steps).toBeLessThan(5 * 256)
  })

  test('equal tables cost no step', () => {
    const names = times(300, (i) => `t${i}`)
    const { rejected, steps } = compared(
      tables({ a: literals(256) }, names),
      tables({ a: literals(256) }, names),
    )
    expect({ rejected, steps }).toEqual({ rejected: [], steps: 0 })
  })

  test('all tables and pairs of one request share the steps', { tags: ['slow'] }, () => {
    const names = times(1_000, (i) => `t${i}`)
    const objects = times(200, (i) => object({ kind: literal(`v${i}`) }))
    const reversed = array(union(...objects.toReversed()))
    const comparison = new SchemaComparison()
    const next = tables({ a: reversed }, names)
    const previous = tables({ a: array(union(...objects)) }, names)
    const pair = { reader: next, writer: previous, newer: 'reader' } as const
    expect(comparison.unreadable(pair)).toEqual(tooComplex)
    expect(comparison.steps).toBeLessThan(STEPS_MAX + 10_000)
    const reverse = { reader: previous, writer: next, newer: 'writer' } as const
    expect(comparison.conflicts(reverse)).toEqual(tooComplex)
    expect(comparison.steps).toBeLessThan(STEPS_MAX + 20_000)
  })

  test.each<[string, ValidatorJson, ValidatorJson]>([
    [
      'unions of wide objects',
      union(...times(60, (i) => object({ ...fields(1_000, string), [`x${i}`]: string }))),
      union(...times(60, (i) => object({ ...fields(1_000, string), [`x${59 - i}`]: string }))),
    ],
    ['a long literal and a pattern', slug, literal('a'.repeat(30_000))],
    [
      'many patterns',
      union(...times(30, (i) => union(...times(30, (j) => ({ ...slug, pattern: `${i}_${j}` }))))),
      literal('a'),
    ],
  ])('a comparison of %s is too complex', { tags: ['slow'] }, (_, next, previous) => {
    const { rejected, steps } = compared(tables({ a: next }), tables({ a: previous }))
    expect(rejected).toEqual(tooComplex)
    expect(steps).toBeLessThan(2 * STEPS_MAX)
  })

  test.each<[string, ValidatorJson, ValidatorJson]>([
    [
      'unions inside unions',
      union(...times(250, () => ({ type: 'null' }) as const), string),
      union(...times(200, () => nullable(union(...times(200, () => nullable(string)))))),
    ],
    [
      'long literals that differ in their last character',
      union(...times(256, (i) => literal('x'.repeat(8_000) + String.fromCharCode(256 + i)))),
      union(...times(256, (i) => literal('x'.repeat(8_000) + String.fromCharCode(511 - i)))),
    ],
  ])('a comparison of %s is cheap', (_, next, previous) => {
    const { rejected, steps } = compared(tables({ a: next }), tables({ a: previous }))
    expect(rejected).toEqual([])
    expect(steps).toBeLessThan(STEPS_MAX / 10)
  })

  test('a comparison of many indexes is too complex', { tags: ['slow'] }, () => {
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
    const pair = { reader: other, writer: one, newer: 'writer' } as const
    const found = times(10, () => comparison.conflicts(pair))
    expect(found[0]).toEqual([])
    expect(found.at(-1)).toEqual(tooComplex)
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

  test('a schema that passes rejects no value that fitted', { tags: ['slow'] }, () => {
    let passed = 0
    let checked = 0
    fc.assert(
      fc.property(validator, validator, fc.array(value, { maxLength: 20 }), (a, b, values) => {
        // Inside an array a value is read as a whole, without a projection.
        if (refused({ f: array(b) }, { f: array(a) }).length > 0) return
        passed += 1
        for (const candidate of values) {
          if (!accepts(a, candidate)) continue
          checked += 1
          expect(accepts(b, candidate)).toBe(true)
        }
      }),
      { numRuns: inputs(20_000) },
    )
    // With fewer the test would prove nothing. On average there are 1,300 and 250.
    expect(passed).toBeGreaterThan(inputs(400))
    expect(checked).toBeGreaterThan(inputs(60))
  })
})
