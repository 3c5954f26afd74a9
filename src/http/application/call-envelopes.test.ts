import { expect, test } from 'vitest'
import { QueryEnvelopes } from './call-envelopes.ts'

const envelope = (note: string): Uint8Array =>
  new TextEncoder().encode(
    '{"version":1,"target":"channel:production","function":"notes.list","arguments":' +
      `{"type":"object","value":[{"key":"note","value":{"type":"string","value":"${note}"}}]}}`,
  )

test('an envelope is cached when it arrives the second time', () => {
  const envelopes = new QueryEnvelopes()
  const [first, second, third] = [1, 2, 3].map(() => envelopes.read(envelope('a')))
  expect(second).toEqual(first)
  expect(second).not.toBe(first)
  expect(third).toBe(second)
  expect(envelopes.read(envelope('b')).arguments).toEqual(new Map([['note', 'b']]))
})

test('a cached envelope is evicted after two generations of 2,048 others', () => {
  const envelopes = new QueryEnvelopes()
  const twice = (note: string) => {
    envelopes.read(envelope(note))
    return envelopes.read(envelope(note))
  }
  const kept = twice('a')
  for (let i = 0; i < 3_000; i++) twice(`${i}`)
  expect(envelopes.read(envelope('a'))).toBe(kept)
  for (let i = 3_000; i < 9_000; i++) twice(`${i}`)
  expect(envelopes.read(envelope('a'))).not.toBe(kept)
})

test('a long envelope is parsed each time', () => {
  const envelopes = new QueryEnvelopes()
  const long = envelope('x'.repeat(2_048))
  const [, second, third] = [1, 2, 3].map(() => envelopes.read(long))
  expect(third).toEqual(second)
  expect(third).not.toBe(second)
})
