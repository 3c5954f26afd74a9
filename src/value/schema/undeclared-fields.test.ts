import { expect, test } from 'vitest'
import { fc, inputs } from '../../../testing/properties.ts'
import { compileProjection } from '../projection.ts'
import {
  compileValidator,
  type FieldsJson,
  type OptionalJson,
  type ValidatorJson,
} from '../validators.ts'
import type { ValueObject } from '../values.ts'
import { isCovered, mergeShapes } from './field-shapes.ts'
import { declaredShape, withoutUndeclared } from './undeclared-fields.ts'

const string: ValidatorJson = { type: 'string' }
const object = (fields: FieldsJson): ValidatorJson => ({ type: 'object', fields })
const known = { type: 'literal', value: { string: 'a' } } as const
const parts: Record<string, ValidatorJson> = {
  string,
  object: object({ x: string, y: object({ x: string }) }),
  nullable: { type: 'nullable', inner: object({ y: string }) },
  open: { type: 'open', inner: { type: 'union', members: [known, object({ x: string })] } },
  array: { type: 'array', items: object({ x: string }) },
}
const arbitraryFields = fc.dictionary(
  fc.constantFrom('a', 'b'),
  fc
    .constantFrom(...Object.values(parts))
    .map((inner): OptionalJson => ({ type: 'optional', inner })),
  { noNullPrototype: true },
)
/** Objects with fields that some of the declarations have, and `z`, which none has. */
const { document: arbitraryDocument } = fc.letrec<{ document: ValueObject; value: never }>(
  (tie) => ({
    document: fc
      .dictionary(fc.constantFrom('a', 'b', 'x', 'y', 'z'), tie('value'), { noNullPrototype: true })
      .map((fields) => new Map(Object.entries(fields))),
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom('', null),
      tie('document'),
      fc.array(tie('document'), { maxLength: 1 }),
    ) as fc.Arbitrary<never>,
  }),
)

/** Returns whether a Release with these fields can read the document. */
function isReadable(fields: FieldsJson, document: ValueObject): boolean {
  const check = compileValidator(object(fields), { coerce: false, unknown: 'as-read' })
  try {
    check(compileProjection(fields).read(document), '$')
    return true
  } catch {
    return false
  }
}

test('every declaration sees the same of a document without undeclared fields', {
  tags: ['slow'],
}, () => {
  let removals = 0
  let readable = 0
  fc.assert(
    fc.property(arbitraryFields, arbitraryFields, arbitraryDocument, (one, other, document) => {
      const shape = mergeShapes(declaredShape(one), declaredShape(other))
      const { fields, removed } = withoutUndeclared(shape, document)
      removals += removed
      expect(fields === document).toBe(removed === 0)
      for (const declared of [one, other].filter((each) => isReadable(each, document))) {
        readable += 1
        const { read } = compileProjection(declared)
        expect(read(fields)).toEqual(read(document))
      }
      const whole = { ...other, ...one }
      if (isCovered(whole, shape)) expect(compileProjection(whole).countHidden(fields)).toBe(0)
    }),
    { numRuns: inputs(2_000) },
  )
  expect(removals).toBeGreaterThan(inputs(1_000))
  expect(readable).toBeGreaterThan(inputs(200))
})

test('fields of objects are removed where no declaration has them, and nowhere else', () => {
  const fields: FieldsJson = {
    part: { type: 'nullable', inner: object({ x: string }) },
    open: parts.open!,
    list: parts.array!,
    any: { type: 'any' },
  }
  const inner = new Map([
    ['x', ''],
    ['z', ''],
  ])
  const document: ValueObject = new Map<string, never>([
    ['part', inner as never],
    ['open', inner as never],
    ['list', [inner] as never],
    ['any', inner as never],
    ['z', '' as never],
  ])
  const { fields: left, removed } = withoutUndeclared(declaredShape(fields), document)
  expect(removed).toBe(2)
  const expected = new Map<string, unknown>(document)
  expected.delete('z')
  expect(left).toEqual(expected.set('part', new Map([['x', '']])))
})
