import { expect, test } from 'vitest'
import { arbitraryTyped, type Typed } from '../../../testing/arbitrary/validators.ts'
import { fc, inputs } from '../../../testing/properties.ts'
import { compileProjection } from '../projection.ts'
import { ValidationError } from '../validation-error.ts'
import { compileValidator, type FieldsJson, type ValidatorJson } from '../validators.ts'
import type { Value, ValueObject } from '../values.ts'
import {
  EMPTY_SHAPE,
  type FieldShape,
  isCovered,
  isFieldShape,
  mergeShapes,
  SHAPE_NAMES_MAX,
  shapeOf,
} from './field-shapes.ts'

const string: ValidatorJson = { type: 'string' }
const object = (fields: FieldsJson): ValidatorJson => ({ type: 'object', fields })
const nullable = (inner: ValidatorJson): ValidatorJson => ({ type: 'nullable', inner })
const union = (...members: ValidatorJson[]): ValidatorJson => ({ type: 'union', members })

interface Schema {
  readonly fields: FieldsJson
  /** A document that the fields accept. */
  readonly document: ValueObject
}

function schemaOf(fields: readonly (readonly [string, Typed])[]): Schema {
  return {
    fields: Object.fromEntries(fields.map(([name, [validator]]) => [name, validator])),
    document: new Map(fields.map(([name, [, value]]): [string, Value] => [name, value])),
  }
}

/** Returns whether a Release stores the document: one with `{ unknown: true }` is never stored. */
function isStored({ fields, document }: Schema): boolean {
  try {
    compileValidator(object(fields), { coerce: false, unknown: 'rejected' })(document, '$')
    return true
  } catch (error) {
    if (error instanceof ValidationError) return false
    throw error
  }
}

const arbitrarySchema = fc
  .uniqueArray(fc.tuple(fc.constantFrom('a', 'b', 'c'), arbitraryTyped), {
    maxLength: 3,
    selector: ([name]) => name,
  })
  .map(schemaOf)
  .filter(isStored)

/** Some schemas, and a declaration that takes each of their fields from one of them. */
const arbitraryHistory = fc
  .tuple(fc.array(arbitrarySchema, { minLength: 1, maxLength: 3 }), fc.infiniteStream(fc.nat()))
  .map(([schemas, choices]) => {
    const names = new Set(schemas.flatMap(({ fields }) => Object.keys(fields)))
    const entries = [...names].map((name) => {
      const declaring = schemas.filter(({ fields }) => Object.hasOwn(fields, name))
      return [name, declaring[choices.next().value % declaring.length]!.fields[name]!] as const
    })
    return { schemas, declaration: Object.fromEntries(entries) }
  })

function mergedShape(schemas: readonly Schema[]): FieldShape {
  return schemas.map(({ fields }) => shapeOf(fields)).reduce(mergeShapes, EMPTY_SHAPE)
}

test('a declaration that covers a shape hides nothing of the documents of its schemas', {
  tags: ['slow'],
}, () => {
  let covered = 0
  fc.assert(
    fc.property(arbitraryHistory, ({ schemas, declaration }) => {
      if (!isCovered(declaration, mergedShape(schemas))) return
      covered += 1
      const projection = compileProjection(declaration)
      for (const { document } of schemas) expect(projection.countHidden(document)).toBe(0)
    }),
    { numRuns: inputs(2_000) },
  )
  expect(covered).toBeGreaterThan(inputs(200))
})

test('a merged shape has each field of its parts, and is the first part if that has them', () => {
  fc.assert(
    fc.property(arbitrarySchema, arbitrarySchema, (one, other) => {
      const shape = mergedShape([one, other])
      expect(mergeShapes(shape, shapeOf(other.fields))).toBe(shape)
      expect(mergeShapes(shape, shapeOf(one.fields))).toBe(shape)
      expect(isFieldShape(JSON.parse(JSON.stringify(shape)))).toBe(true)
    }),
  )
})

test.each<[string, FieldsJson, FieldsJson, boolean]>([
  ['the same field', { a: string }, { a: string }, true],
  ['a further field', { a: string, b: string }, { a: string }, true],
  ['an absent field', { a: string }, { a: string, b: string }, false],
  ['a field with the name of an inherited property', {}, { constructor: string }, false],
  ['the fields of an object', { a: object({ b: string }) }, { a: object({ b: string }) }, true],
  ['an absent field of an object', { a: object({}) }, { a: object({ b: string }) }, false],
  [
    'an absent field of a nullable object',
    { a: nullable(object({})) },
    { a: nullable(object({ b: string })) },
    false,
  ],
  [
    'an absent field of a member of a union',
    { a: object({}) },
    { a: union(string, object({ b: string })) },
    false,
  ],
  [
    'an absent field of a member of an open union',
    { a: object({}) },
    { a: { type: 'open', inner: union(object({ b: string })) } },
    false,
  ],
  [
    'objects of any field, read as an object',
    { a: object({ b: string }) },
    { a: { type: 'record', values: string } },
    false,
  ],
  [
    'objects of any field, read as a whole',
    { a: { type: 'any' } },
    { a: { type: 'record', values: string } },
    true,
  ],
  [
    'an absent field of the items of an array, which are read as a whole',
    { a: { type: 'array', items: object({}) } },
    { a: { type: 'array', items: object({ b: string }) } },
    true,
  ],
  ['an optional field', { a: { type: 'optional', inner: string } }, { a: string }, true],
])('a shape with %s is covered or not', (_, declaration, stored, expected) => {
  expect(isCovered(declaration, shapeOf(stored))).toBe(expected)
})

test('a shape of unknown fields is covered by no declaration', () => {
  expect(isCovered({ a: { type: 'any' } }, 'any')).toBe(false)
})

test('a shape of too many names becomes one of unknown fields', () => {
  const wide = (prefix: string, count: number): FieldsJson =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`${prefix}${i}`, string]))
  const half = SHAPE_NAMES_MAX / 2
  const shape = shapeOf({ ...wide('a', half - 1), o: object(wide('b', half)) })
  expect(shape).not.toBe('any')
  expect(mergeShapes(shape, shapeOf({ c: string }))).toBe('any')
  expect(shapeOf(wide('a', SHAPE_NAMES_MAX + 1))).toBe('any')
})

test.each([null, 1, 'all', [], { a: 1 }, { a: { b: [] } }])('%j is not a shape', (json) => {
  expect(isFieldShape(json)).toBe(false)
})
