import { expect, it } from 'vitest'
import { fc } from '../../testing/properties.ts'
import { printable, printableJson, printableLines } from './visible-text.ts'

const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/u

/** All UTF-16 code units, and code points around the hidden ones. */
const texts = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
  fc
    .array(fc.integer({ min: 0xe0000, max: 0xe0fff }))
    .map((points) => String.fromCodePoint(...points)),
)

it('JSON keeps its value when hidden characters are escaped', () => {
  fc.assert(
    fc.property(fc.dictionary(texts, fc.array(texts)), (value) => {
      const json = printableJson(value)
      expect(json.replaceAll('\n', '')).not.toMatch(HIDDEN)
      expect(JSON.parse(json)).toEqual(value)
    }),
  )
})

it('text keeps its visible characters and no hidden one', () => {
  fc.assert(
    fc.property(texts, (text) => {
      expect(printable(text)).not.toMatch(HIDDEN)
      expect(printableLines(text).replace(/[\n\t]/g, '')).not.toMatch(HIDDEN)
      expect(printable(printable(text))).toBe(printable(text))
    }),
  )
  expect(printable('Zoë, 京都, 🙂\u{1f1e8}\u{1f1ed}')).toBe('Zoë, 京都, 🙂\u{1f1e8}\u{1f1ed}')
  expect(printable('a\nb\tc')).toBe('a\\u{a}b\\u{9}c')
  expect(printableLines('a\nb\tc')).toBe('a\nb\tc')
})
