import { describe, expect, test } from 'vitest'
import { fc, inputs } from '../../testing/properties.ts'
import { encodeStored } from '../value/stored.ts'
import type { Value } from '../value/values.ts'
import { CompactTexts, parseNames } from './compact-texts.ts'

const texts = new CompactTexts()
texts.set('items', ['body', 'channel', 'number', 'title'])

describe('compact texts', () => {
  test('names and the begin of integers are one character each', () => {
    const text = '{"body":"a","channel":"b","number":{"$i":"0"},"title":"c"}'
    const stored = texts.compact('items', text)
    expect(stored).toBe('\x04"a"\x05"b"\x06\x010"}\x07"c"}')
    expect(texts.expand('items', stored)).toBe(text)
  })

  test('every stored text is read back as it was written', () => {
    const name = fc.oneof(
      fc.constantFrom('body', 'channel', 'a', '$i', '"', ',"body":'),
      fc.string(),
    )
    const value = fc.letrec<{ value: Value }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.string(),
        fc.constantFrom('{"body":', ',"channel":', '","title":', '{"$i":"', '\x01\x04', '\\'),
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        fc.constant(null),
        fc.array(tie('value')),
        fc
          .dictionary(name, tie('value'))
          .map((object) => new Map(Object.entries(object)) as unknown as Value),
      ),
    })).value
    fc.assert(
      fc.property(
        fc.dictionary(name, value),
        fc.constantFrom('items', 'other'),
        (object, table) => {
          const text = encodeStored(new Map(Object.entries(object)))
          const stored = texts.compact(table, text)
          expect(texts.expand(table, stored)).toBe(text)
          expect(stored.length).toBeLessThanOrEqual(text.length)
        },
      ),
      { numRuns: inputs(1_000) },
    )
  })

  test('names keep their codes when others are added, and some have none', () => {
    const grown = new CompactTexts()
    const shape = (names: readonly string[]) =>
      Object.fromEntries(names.map((name) => [name, null]))
    grown.set('items', grown.namesWith('items', shape(['b', 'a', 'ü', '$x', 'a-b'])))
    const stored = grown.compact('items', '{"a":1,"ü":2}')
    const many = Array.from({ length: 40 }, (_, i) => `n${i}`)
    const names = grown.namesWith('items', shape(['a', ...many]))
    expect(names).toEqual(['b', 'a', ...many.slice(0, 26)])
    grown.set('items', names)
    expect(grown.expand('items', stored)).toBe('{"a":1,"ü":2}')
    const last = `{"n25":1,"n26":2}`
    expect(grown.compact('items', last)).toBe('\x1f1,"n26":2}')
    expect(grown.expand('items', grown.compact('items', last))).toBe(last)
    expect(grown.namesWith('items', 'any')).toEqual(names)
  })

  test('a text whose names are not known is rejected', () => {
    expect(() => texts.expand('other', '\x041}')).toThrowError('has a field without a name')
  })

  test.each(['', '{}', '[1]', '["a b"]', '["a\\"b"]', JSON.stringify(Array(29).fill('a'))])(
    'names that are stored as %j are rejected',
    (text) => {
      expect(() => parseNames(text)).toThrowError('not a list of names')
    },
  )
})
