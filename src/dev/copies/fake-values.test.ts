import { describe, expect, test } from 'vitest'
import { fc } from '../../../testing/properties.ts'
import { INT64_MAX, INT64_MIN, Timestamp } from '../../value/values.ts'
import { FakeValues } from './fake-values.ts'
import { KeyedValues } from './keyed-values.ts'

const keyed = new KeyedValues(Buffer.alloc(32, 1))
const fakes = new FakeValues(keyed)
const others = new FakeValues(new KeyedValues(Buffer.alloc(32, 2)))
const UNBOUNDED = { minimum: null, maximum: null }

describe('a permutation', () => {
  test.each([2n, 3n, 10n, 26n, 1_000n])('moves each of %s positions to another one', (size) => {
    const moved = Array.from({ length: Number(size) }, (_, i) =>
      keyed.permute('x', BigInt(i), size),
    )
    expect(new Set(moved).size).toBe(Number(size))
    expect(moved.every((to, from) => to !== BigInt(from) && to >= 0n && to < size)).toBe(true)
  })

  test('a permutation of many positions has as many results', () => {
    const size = 2n ** 21n + 5n
    const from = Array.from({ length: 20_000 }, (_, i) => size - 1n - BigInt(i))
    const moved = from.map((position) => keyed.permute('x', position, size))
    expect(new Set(moved).size).toBe(from.length)
    expect(moved.every((to, i) => to !== from[i] && to >= 0n && to < size)).toBe(true)
  })

  test('depends on the key and on the kind of value', () => {
    const all = (values: KeyedValues, kind: string) =>
      Array.from({ length: 40 }, (_, i) => values.permute(kind, BigInt(i), 40n)).join()
    const other = new KeyedValues(Buffer.alloc(32, 2))
    expect(new Set([all(keyed, 'x'), all(keyed, 'y'), all(other, 'x')]).size).toBe(3)
  })
})

describe('a fake text', () => {
  const form = (text: string) =>
    text
      .replace(/[0-9]/g, '0')
      .replace(/[A-Z]/g, 'A')
      .replace(/[^0A\p{P}\p{Z}\p{Cc}$+<=>^`|~]/gu, 'a')

  test('a fake text keeps the length and the kinds of characters, and is another one', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 40 })
    fc.assert(
      fc.property(text, (original) => {
        const fake = fakes.text(original)
        expect(fakes.text(original)).toBe(fake)
        if (original.includes('@') || original.includes('://')) return
        expect(form(fake)).toBe(form(original))
        if (/[0Aa]/.test(form(original))) expect(fake).not.toBe(original)
      }),
    )
  })

  test('differs where the originals of one form differ, however short they are', () => {
    const codes = Array.from({ length: 100 }, (_, i) => String(i).padStart(2, '0'))
    expect(new Set(codes.map((code) => fakes.text(code))).size).toBe(100)
  })

  test('keeps what has no letter and no digit', () => {
    expect(['', ' ', '- / -'].map((text) => fakes.text(text))).toEqual(['', ' ', '- / -'])
  })

  test('a fake of an e-mail address is one that reaches no person', () => {
    const addresses = ['jane.doe+tag@mail.example.com', 'a@b.co', `${'x'.repeat(64)}@example.org`]
    for (const address of addresses) {
      expect(fakes.text(address)).toMatch(/^[a-z]{12,64}@[a-z]{4,60}\.test$/)
      expect(fakes.text(address)).toHaveLength(Math.max(address.length, 22))
    }
    expect(fakes.text('a@b.co')).not.toBe(fakes.text('b@b.co'))
    expect(fakes.text('Call jane@example.com now')).not.toContain('example')
  })

  test('a fake of an address on the web has its scheme and leads nowhere', () => {
    expect(fakes.text('https://www.example.com/u/Jane7?x=1')).toMatch(
      /^https:\/\/[a-z]{12,}\.test\/[a-z]\/[A-Z][a-z]{3}\d\?[a-z]=\d$/,
    )
  })

  test('depends on the key of the copy', () => {
    expect(fakes.text('Jane Doe')).not.toBe(others.text('Jane Doe'))
    expect(fakes.text('jane@example.com')).not.toBe(others.text('jane@example.com'))
  })
})

describe('a fake number', () => {
  test('a fake integer has as many digits and the same sign, and is another one', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: INT64_MIN, max: INT64_MAX }), (value) => {
        const fake = fakes.integer(value, UNBOUNDED)
        expect(fake).not.toBe(value)
        expect(fakes.integer(value, UNBOUNDED)).toBe(fake)
        expect(String(fake)).toHaveLength(String(value).length)
        expect(fake >= INT64_MIN && fake <= INT64_MAX && fake < 0n === value < 0n).toBe(true)
      }),
    )
  })

  test('a fake integer is within the bounds of the schema', () => {
    const bounds = { minimum: 18n, maximum: 120n }
    fc.assert(
      fc.property(fc.bigInt({ min: 18n, max: 120n }), (value) => {
        const fake = fakes.integer(value, bounds)
        expect([fake >= 18n && fake <= 120n, fake === value]).toEqual([true, false])
      }),
    )
    expect(fakes.integer(7n, { minimum: 7n, maximum: 7n })).toBe(7n)
  })

  test('a fake fraction is finite, another one, and within the bounds', () => {
    const value = fc.double({ min: -1e6, max: 1e6, noNaN: true })
    const low = fc.option(fc.double({ min: -2e6, max: -1e6, noNaN: true }), { nil: null })
    const high = fc.option(fc.double({ min: 1e6, max: 2e6, noNaN: true }), { nil: null })
    fc.assert(
      fc.property(value, low, high, (original, minimum, maximum) => {
        const fake = fakes.float(original, { minimum, maximum })
        expect(fake).not.toBe(original)
        expect(Number.isFinite(fake)).toBe(true)
        expect(fake >= (minimum ?? -Infinity) && fake <= (maximum ?? Infinity)).toBe(true)
      }),
    )
    expect(String(fakes.float(12.75, UNBOUNDED))).toMatch(/^[1-9]{2}\.[1-9]{2}$/)
    expect(fakes.float(5e-324, UNBOUNDED)).not.toBe(5e-324)
    const least = fakes.float(0.5, { minimum: 0, maximum: 1 })
    expect(least > 0 && least < 1).toBe(true)
  })
})

test('a fake time is another day within half a year', () => {
  const day = 86_400_000_000n
  for (const micros of [0n, 1_800_000_000_000_000n, INT64_MAX, INT64_MIN]) {
    const fake = fakes.timestamp(new Timestamp(micros)).micros
    const distance = fake > micros ? fake - micros : micros - fake
    expect(distance >= day && distance <= 182n * day).toBe(true)
    expect(fake >= INT64_MIN && fake <= INT64_MAX).toBe(true)
  }
})

test('fake bytes have the same length', () => {
  const bytes = Buffer.from('a photograph of Jane')
  expect(fakes.bytes(bytes)).toHaveLength(bytes.length)
  expect(Buffer.from(fakes.bytes(bytes))).not.toEqual(bytes)
})
