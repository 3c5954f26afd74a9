import { expect, test } from 'vitest'
import { functionManifest } from '../../../testing/products.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { readQuery } from './call-envelopes.ts'
import { ParsedQueries } from './parsed-queries.ts'

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
const envelope = (note: string): Uint8Array =>
  bytesOf(
    '{"version":1,"target":"channel:production","function":"notes.list","arguments":' +
      `{"type":"object","value":[{"key":"note","value":{"type":"string","value":"${note}"}}]}}`,
  )
/** Characters that a short envelope counts as. */
const ENVELOPE_CHARACTERS = 4 * envelope('a').length + 200

function small(envelopes: number): ParsedQueries {
  return new ParsedQueries({ parsedCharacters: 2 * envelopes * ENVELOPE_CHARACTERS })
}

test('an envelope is kept when it arrives the second time', () => {
  const parsed = new ParsedQueries()
  const [first, second, third] = [1, 2, 3].map(() => readQuery(parsed, envelope('a')))
  expect(second).toEqual(first)
  expect(second).not.toBe(first)
  expect(third).toBe(second)
  expect(readQuery(parsed, envelope('b')).arguments).toEqual(new Map([['note', 'b']]))
})

test('an entry is evicted after two generations of others', () => {
  const parsed = small(10)
  const twice = (note: string) => {
    readQuery(parsed, envelope(note))
    return readQuery(parsed, envelope(note))
  }
  const kept = twice('a')
  for (let i = 0; i < 10; i++) twice(String(i))
  expect(readQuery(parsed, envelope('a'))).toBe(kept)
  for (let i = 10; i < 40; i++) twice(String(i))
  expect(readQuery(parsed, envelope('a'))).not.toBe(kept)
})

test('the entries of both forms have one bound, which counts their values', () => {
  const parsed = small(10)
  const definition = functionManifest('notes.list', {})
  readQuery(parsed, envelope('a'))
  const kept = readQuery(parsed, envelope('a'))
  const nested = new Map([['list', Array.from({ length: 60 }, () => new Map())]])
  for (const text of ['first', 'second', 'third']) {
    for (let times = 0; times < 2; times++) {
      parsed.keep('plain', text, { definition, arguments: nested })
    }
  }
  expect(parsed.find('plain', 'third')?.arguments).toBe(nested)
  expect(parsed.find('tagged', 'third')).toBeUndefined()
  expect(readQuery(parsed, envelope('a'))).not.toBe(kept)
})

test('an entry that is longer than a generation removes no other', () => {
  const parsed = small(1)
  readQuery(parsed, envelope('a'))
  const kept = readQuery(parsed, envelope('a'))
  const long = envelope('x'.repeat(1_000))
  const [, second, third] = [1, 2, 3].map(() => readQuery(parsed, long))
  expect(third).not.toBe(second)
  expect(readQuery(parsed, envelope('a'))).toBe(kept)
})

test('a long envelope is parsed each time', () => {
  const parsed = new ParsedQueries()
  const long = envelope('x'.repeat(2_048))
  const [, second, third] = [1, 2, 3].map(() => readQuery(parsed, long))
  expect(third).toEqual(second)
  expect(third).not.toBe(second)
})

test('an invalid envelope is rejected each time', () => {
  const parsed = new ParsedQueries()
  for (let times = 0; times < 3; times++) {
    expect(() => readQuery(parsed, bytesOf('{"version":1,"version":1}'))).toThrow(ValidationError)
  }
})
