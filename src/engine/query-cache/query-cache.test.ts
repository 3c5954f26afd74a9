import { expect, test } from 'vitest'
import { TestConfiguration } from '../../../testing/configurations.ts'
import { TestSystem } from '../../system/system.ts'
import { ReadSet } from '../commits/read-set.ts'
import { CACHE_CHARACTERS_MAX } from '../limits.ts'
import { QueryCache } from './query-cache.ts'

test('the least recently used results are evicted, an eighth at a time, and counted', () => {
  const system = new TestSystem()
  const cache = new QueryCache({
    system,
    configuration: new TestConfiguration(),
  })
  const resultText = 'x'.repeat(CACHE_CHARACTERS_MAX / 8 - 100)
  const put = (key: string) => {
    for (let request = 0; request < 2; request++) {
      cache.put(key, { resultText, hasRead: false, configuration: null }, new ReadSet(), null)
    }
  }
  const isCached = (key: string) => cache.get({ shared: key, perCaller: key }) !== null
  for (let i = 0; i < 8; i++) put(`key ${i}`)
  expect(cache.statistics).toMatchObject({ entries: 8, evictions: 0 })
  // Uses within a second count as one.
  system.advance(1_001)
  expect(isCached('key 0')).toBe(true)
  put('another')
  expect(cache.statistics).toMatchObject({ entries: 7, evictions: 2 })
  const cached = ['key 0', 'key 1', 'key 2', 'key 3', 'another'].map(isCached)
  expect(cached).toEqual([true, false, false, true, true])
  expect(cache.statistics).toMatchObject({ hits: 4, misses: 2 })
})
