import { expect, test } from 'vitest'
import { retryDelayMillis } from './retries.ts'

const RETRY = {
  maximumAttempts: 4,
  backoff: { initialMillis: 100, factor: 3, maximumMillis: 500 },
}

test('pauses grow by the factor up to the maximum and end after the last attempt', () => {
  const delays = [1, 2, 3, 4, 5].map((attempts) => retryDelayMillis(RETRY, attempts))
  expect(delays).toEqual([100, 300, 500, null, null])
})

test('an Action without a declaration is not attempted again', () => {
  expect(retryDelayMillis(undefined, 1)).toBeNull()
})
