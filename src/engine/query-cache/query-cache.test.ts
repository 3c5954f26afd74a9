import { expect, test } from 'vitest'
import { TestConfiguration } from '../../../build/testing/configurations.ts'
import { TestSystem } from '../../system/system.ts'
import { ReadSet } from '../commits/read-set.ts'
import { CACHE_CHARACTERS_MAX } from '../limits.ts'
import { QueryCache } from './query-cache.ts'

test('results that were used longest ago make room, an eighth at once, and are counted', () => {
  const system = new TestSystem()
  const cache = new QueryCache({
    system,
    configuration: new TestConfiguration(),
  })
  const resultText = 'x'.repeat(CACHE_CHARACTERS_MAX / 8 - 100)
  const put = (key: string) => {
    for (let ask = 0; ask < 2; ask++) {
      cache.put(key, { resultText, hasRead: false, configuration: null }, new ReadSet(), null)
    }
  }
  const isKept = (key: string) => cache.get({ shared: key, own: key }) !== null
  for (let i = 0; i < 8; i++) put(`key ${i}`)
  expect(cache.statistics).toMatchObject({ entries: 8, evictions: 0 })
  // Uses within a second count as one.
  system.advance(1_001)
  expect(isKept('key 0')).toBe(true)
  put('another')
  expect(cache.statistics).toMatchObject({ entries: 7, evictions: 2 })
  const kept = ['key 0', 'key 1', 'key 2', 'key 3', 'another'].map(isKept)
  expect(kept).toEqual([true, false, false, true, true])
  expect(cache.statistics).toMatchObject({ hits: 4, misses: 2 })
})
