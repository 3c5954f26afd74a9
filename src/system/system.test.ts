import { expect, test } from 'vitest'
import { realSystem } from './system.ts'

test('random bytes never repeat and are not erased in a returned array', () => {
  const { randomBytes } = realSystem()
  const drawn = Array.from({ length: 2_000 }, (_, i) => randomBytes(i % 3 === 0 ? 10 : 32))
  for (const length of [1, 511, 512, 513, 5_000]) drawn.push(randomBytes(length))
  const texts = drawn.map((bytes) => Buffer.from(bytes).toString('hex'))
  expect(new Set(texts).size).toBe(drawn.length)
  expect(texts.filter((text) => text.length > 20 && /^0+$/.test(text))).toEqual([])
})

test('identifiers ascend', () => {
  const { ids } = realSystem()
  const made = Array.from({ length: 5_000 }, () => ids.make('req'))
  expect(made.toSorted()).toEqual(made)
})
