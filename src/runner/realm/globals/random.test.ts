import { expect, test } from 'vitest'
import { RandomStream } from '../random-stream.ts'
import { createRandom } from './random.ts'

test('the key stream of a seed of zeros is that of RFC 8439, A.1', () => {
  const stream = new RandomStream('0'.repeat(64))
  const bytes = Buffer.from(Array.from({ length: 96 }, () => stream.byte())).toString('hex')
  expect(bytes.slice(0, 64)).toBe(
    '76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7',
  )
  // The second block has the counter 1.
  expect(bytes.slice(128)).toBe('9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed')
})

test('random numbers are distributed evenly over [0, 1)', () => {
  const stream = new RandomStream('5'.repeat(64))
  const { random } = createRandom(() => stream)
  const buckets = new Array<number>(10).fill(0)
  for (let i = 0; i < 100_000; i++) buckets[Math.floor(random() * 10)]! += 1
  // Six standard deviations around 10,000.
  for (const count of buckets) expect(Math.abs(count - 10_000)).toBeLessThan(570)
})

test('a UUID is of version 4 and unique', () => {
  const stream = new RandomStream('7'.repeat(64))
  const { crypto } = createRandom(() => stream)
  const ids = Array.from({ length: 1_000 }, () => crypto.randomUUID())
  const form = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
  expect(ids.every((id) => form.test(id))).toBe(true)
  expect(new Set(ids).size).toBe(1_000)
})
