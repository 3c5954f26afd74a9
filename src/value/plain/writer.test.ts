/** Plain JSON with tags where a validator does not decide the type: round trips of any schema. */
import { describe, expect, it } from 'vitest'
import { arbitraryTyped } from '../../../testing/arbitrary/validators.ts'
import { fc, inputs } from '../../../testing/properties.ts'
import { SEED } from '../../../testing/seeds.ts'
import { plainReader } from '../plain.ts'
import { type Json, parseStrictJson, ROUNDED } from '../strict-json.ts'
import { encodeTagged } from '../tagged.ts'
import type { ValidatorJson } from '../validators.ts'
import { Timestamp, TypedId, type Value } from '../values.ts'
import { plainWriter } from './writer.ts'

const ANY = { type: 'any' } as const
const INT64 = { type: 'int64' } as const
const STRING = { type: 'string' } as const
const ID = 'messages_01ARZ3NDEKTSV4RRFFQ69G5FAV'
const union = (...members: ValidatorJson[]): ValidatorJson => ({ type: 'union', members })

describe('plain JSON by a validator', () => {
  it(`a written value is read back unchanged under any schema (SVC_SEED=${SEED})`, () => {
    fc.assert(
      fc.property(arbitraryTyped, ([validator, value]) => {
        const text = JSON.stringify(plainWriter(validator)(value))
        for (const limits of [undefined, ROUNDED]) {
          const back = plainReader(validator)(parseStrictJson(text, limits))
          expect(encodeTagged(back)).toBe(encodeTagged(value))
        }
      }),
      { seed: SEED, numRuns: inputs(3_000) },
    )
  })

  it.each<[ValidatorJson, Value, Json]>([
    [ANY, 'text', 'text'],
    [ANY, 1.5, 1.5],
    [ANY, 2 ** 60, { type: 'float64', value: '43b0000000000000' }],
    [ANY, 5n, { type: 'int64', value: '5' }],
    [ANY, new Timestamp(5n), { type: 'timestamp', value: '5' }],
    [ANY, new TypedId(ID), { type: 'typed_id', value: ID }],
    [ANY, Uint8Array.of(1), { type: 'bytes', value: 'AQ' }],
    [ANY, new Map<string, Value>([['a', [1n, 'x']]]), { a: [{ type: 'int64', value: '1' }, 'x'] }],
    [union(INT64, STRING), 5n, 5],
    [union(INT64, STRING), 'five', 'five'],
    [union(INT64, STRING), '5', { type: 'string', value: '5' }],
    [union(STRING, { type: 'timestamp' }), new Timestamp(0n), { type: 'timestamp', value: '0' }],
    [union(STRING, { type: 'null' }), null, null],
    [union({ type: 'id', table: 'messages' }, STRING), ID, { type: 'string', value: ID }],
    [INT64, 2n ** 60n, '1152921504606846976'],
  ])('plain JSON of %o has %o as %o', (validator, value, expected) => {
    expect(plainWriter(validator)(value)).toEqual(expected)
  })

  it('plain JSON tags an object that would be read as a tagged value', () => {
    const value = new Map<string, Value>([
      ['type', 'int64'],
      ['value', '5'],
    ])
    const entry = (key: string, text: string) => ({ key, value: { type: 'string', value: text } })
    const expected = { type: 'object', value: [entry('type', 'int64'), entry('value', '5')] }
    expect(plainWriter(ANY)(value)).toEqual(expected)
    const decided = { type: 'object', fields: { type: STRING, value: STRING } } as const
    expect(plainWriter(decided)(value)).toEqual({ type: 'int64', value: '5' })
    // A malformed tag is an object like any other.
    const other = new Map<string, Value>([
      ['type', 'int64'],
      ['value', 'five'],
    ])
    expect(plainWriter(ANY)(other)).toEqual({ type: 'int64', value: 'five' })
  })

  it('plain JSON accepts no tag where the validator decides the type', () => {
    for (const validator of [STRING, INT64, { type: 'boolean' } as const]) {
      const tagged = { type: validator.type, value: validator.type === 'boolean' ? true : '5' }
      expect(() => plainReader(validator)(tagged)).toThrow('$: a')
    }
  })

  it('plain JSON reads an integer beyond 2^53 as a float64, and as no int64', () => {
    const read = (validator: ValidatorJson) =>
      plainReader(validator)(parseStrictJson('100000000000000000000', ROUNDED))
    expect(read({ type: 'float64' })).toBe(1e20)
    expect(() => read(INT64)).toThrow('an int64: an integer within 2^53, or a string')
    expect(() => parseStrictJson('100000000000000000000')).toThrow('within 2^53')
  })
})
