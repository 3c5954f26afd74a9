import { expect, test } from 'vitest'
import { BATCH_BESIDE_CALLS, BatchSize } from './batch-pacing.ts'

test('a batch has the declared size, and a smaller one with a pause beside calls', () => {
  const size = new BatchSize(500)
  expect([size.next(false), size.next(true)]).toEqual([500, BATCH_BESIDE_CALLS])
  expect(size.succeeded(false, 40)).toBe(0)
  expect(size.succeeded(true, 40)).toBe(20)
  expect(size.succeeded(true, 0)).toBe(1)
  expect(new BatchSize(5).next(true)).toBe(5)
})

test('a batch that fails as a whole is halved down to one document, which is the cause', () => {
  const size = new BatchSize(5)
  const sizes: number[] = []
  for (;;) {
    const documents = size.next(false)
    sizes.push(documents)
    if (size.failed('LIMIT_EXCEEDED', documents).kind === 'blocked') break
  }
  expect(sizes).toEqual([5, 3, 2, 1])
  size.succeeded(false, 1)
  size.succeeded(false, 1)
  expect(size.next(false)).toBe(4)
})

test('a failure of the server is retried with growing pauses and keeps the size', () => {
  const size = new BatchSize(500)
  const pauses = ['BUSY', null, 'WRITE_CONFLICT'].map((code) => size.failed(code, 500))
  expect(pauses).toEqual([200, 400, 800].map((afterMillis) => ({ kind: 'retry', afterMillis })))
  for (let i = 0; i < 10; i++) size.failed('UNAVAILABLE', 1)
  expect(size.failed('UNAVAILABLE', 1)).toEqual({ kind: 'retry', afterMillis: 10_000 })
  size.succeeded(false, 1)
  expect(size.failed('BUSY', 1)).toEqual({ kind: 'retry', afterMillis: 200 })
})

test('a document is the cause of a timeout only after several in a row', () => {
  const size = new BatchSize(1)
  const kinds = Array.from({ length: 5 }, () => size.failed('DEADLINE_EXCEEDED', 1).kind)
  expect(kinds).toEqual(['retry', 'retry', 'retry', 'retry', 'blocked'])
})
