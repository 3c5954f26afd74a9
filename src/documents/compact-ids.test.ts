import { describe, expect, test } from 'vitest'
import { fc, inputs } from '../../testing/properties.ts'
import { encodeUlid } from '../value/ids.ts'
import {
  CompactTable,
  compactId,
  tableOf,
  ULID_BYTES,
  ulidBytes,
  ulidMicros,
} from './compact-ids.ts'
import { encodeTrailer, encodeValue } from './key-encoding.ts'
import { keySuccessor, prefixEnd } from './keys.ts'

const ulid = fc
  .tuple(fc.nat(2 ** 31 - 1), fc.nat(2 ** 17 - 1), fc.uint8Array({ minLength: 10, maxLength: 10 }))
  .map(([low, high, entropy]) => encodeUlid(high * 2 ** 31 + low, entropy))
const table = new CompactTable('notes')
const id = ulid.map((text) => `notes_${text}`)
const key = fc
  .tuple(fc.string(), fc.bigInt({ min: -(2n ** 52n), max: 2n ** 52n }), id)
  .map(([text, micros, of]) => {
    return encodeValue(text) + encodeTrailer({ createdAtMicros: micros, id: of })
  })

function sign(number: number): number {
  return Math.sign(number)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

describe('compact IDs', () => {
  test('an ID and its time are read back from the bytes', () => {
    fc.assert(
      fc.property(
        fc.nat(2 ** 31 - 1),
        fc.uint8Array({ minLength: 10, maxLength: 10 }),
        (n, bytes) => {
          const text = `notes_${encodeUlid(n * 2 ** 17, bytes)}`
          const compact = compactId(text)!
          expect(compact.length).toBe('notes_'.length + ULID_BYTES)
          expect(table.idAtEnd(compact)).toBe(text)
          expect(ulidMicros(compact, 6)).toBe(n * 2 ** 17 * 1_000)
          expect(compact.subarray(6).equals(ulidBytes(text)!)).toBe(true)
          expect(tableOf(text)).toBe('notes')
        },
      ),
    )
  })

  test('bytes have the order of the IDs', () => {
    fc.assert(
      fc.property(id, id, (a, b) => {
        expect(sign(compactId(a)!.compare(compactId(b)!))).toBe(compare(a, b))
      }),
    )
  })

  const zeros = '0'.repeat(25)
  test.each([
    '',
    '_',
    zeros,
    `_${zeros}`,
    `notes${zeros}0`,
    `notes-${zeros}0`,
    `notés_${zeros}0`,
    `notes_8${zeros}`,
    ...['I', 'L', 'O', 'U', 'a', '-', 'İ', '\u{1f600}'].flatMap((character) => [
      `notes_${zeros}${character}`,
      `notes_0${character}${'0'.repeat(24)}`,
      `notes_00000${character}${'0'.repeat(20)}`,
    ]),
  ])('%j is not an ID', (text) => {
    expect(compactId(text)).toBeNull()
  })
})

describe('compact keys', () => {
  test('a key is read back from its bytes', () => {
    fc.assert(
      fc.property(key, (text) => {
        expect(table.keyOf(table.key(text))).toBe(text)
        expect(table.key(text).length).toBe(text.length - 'notes_'.length - 10)
      }),
    )
  })

  test('bytes have the order of the keys, their successors and all other bounds', () => {
    const bound = fc.oneof(
      key,
      key.map(keySuccessor),
      fc.string().map((text) => encodeValue(text)),
      fc.string().map((text) => prefixEnd(encodeValue(text))),
      key.map((text) => text.slice(0, -32)),
      key.map((text) => prefixEnd(text.slice(0, -32))),
      fc.constantFrom('', '\xff'),
    )
    fc.assert(
      fc.property(key, bound, (text, of) => {
        expect(sign(table.key(text).compare(table.bound(of)))).toBe(compare(text, of))
        expect(sign(table.key(text).compare(table.bound(text)))).toBe(0)
        expect(sign(table.key(text).compare(table.bound(keySuccessor(text))))).toBe(-1)
      }),
      { numRuns: inputs(1_000) },
    )
  })

  test('the key of a document of another table is rejected', () => {
    const other = encodeTrailer({ createdAtMicros: 0n, id: `other_${'0'.repeat(26)}` })
    expect(() => table.key(other)).toThrowError('an index key does not end with an ID')
  })
})
