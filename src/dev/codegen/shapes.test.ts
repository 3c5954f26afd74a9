/** Arguments as a client encodes them by shapes, and as the server checks them. */
import { expect, test } from 'vitest'
import { encodeArguments } from '../../app-client/shapes.ts'
import { v, validatorJson } from '../../sdk/validators.ts'
import { encodeStored } from '../../value/stored.ts'
import type { Json } from '../../value/strict-json.ts'
import { decodeTagged } from '../../value/tagged.ts'
import { compileValidator, type FieldsJson } from '../../value/validators.ts'
import { toShapes } from './shapes.ts'

const ARGUMENTS = v.object({
  limit: v.optional(v.int64()).default(10n),
  kind: v.open(v.union(v.literal('a'), v.object({ at: v.timestamp() }))),
})

test.each<[what: string, args: object, checked: string]>([
  ['a known member', { kind: 'a' }, '{"kind":"a","limit":{"$i":"10"}}'],
  [
    'an object as a member',
    { kind: { at: 5n }, limit: 3n },
    '{"kind":{"at":{"$t":"5"}},"limit":{"$i":"3"}}',
  ],
  [
    'an unknown member',
    { kind: { unknown: true } },
    '{"kind":{"unknown":true},"limit":{"$i":"10"}}',
  ],
])('the server reads %s as its client sent it, with the default', (_, args, checked) => {
  const json = validatorJson(ARGUMENTS, 'arguments') as { readonly fields: FieldsJson }
  const text = encodeArguments(toShapes(json.fields), args)
  const check = compileValidator({ type: 'object', fields: json.fields }, { coerce: false })
  expect(encodeStored(check(decodeTagged(JSON.parse(text) as Json), '$'))).toBe(checked)
})

test.each([{ kind: 'b' }, { kind: { unknown: false } }, { kind: {} }, {}])(
  'a client sends no arguments %j, which the server would reject',
  (args) => {
    const json = validatorJson(ARGUMENTS, 'arguments') as { readonly fields: FieldsJson }
    expect(() => encodeArguments(toShapes(json.fields), args)).toThrow()
  },
)
