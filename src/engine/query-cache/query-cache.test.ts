import { expect, test } from 'vitest'
import { TestConfiguration } from '../../../testing/configurations.ts'
import { DEFAULT_PLAN } from '../../system/memory/memory-plan.ts'
import { TestSystem } from '../../system/system.ts'
import { ReadSet } from '../commits/read-set.ts'
import { QueryCache } from './query-cache.ts'

const { resultCharacters: CHARACTERS_MAX } = DEFAULT_PLAN

test('the least recently used results are evicted, an eighth at a time, and counted', () => {
  const system = new TestSystem()
  const cache = new QueryCache({
    system,
    configuration: new TestConfiguration(),
  })
  const resultText = 'x'.repeat(CHARACTERS_MAX / 8 - 100)
  const result = { resultText, hasRead: false, hasGrant: false, configuration: null }
  const put = (key: string) => {
    for (let request = 0; request < 2; request++) {
      cache.put(key, result, new ReadSet(), null)
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

test('the longest response is cached, so that equal calls share its text', () => {
  const cache = new QueryCache({
    system: new TestSystem(),
    configuration: new TestConfiguration(),
  })
  const resultText = 'x'.repeat(8 * 1024 * 1024 - 1_024)
  const result = { resultText, hasRead: false, hasGrant: false, configuration: null }
  for (let request = 0; request < 2; request++) cache.put('key', result, new ReadSet(), null)
  expect(cache.get({ shared: 'key', perCaller: 'key' })?.resultText).toHaveLength(resultText.length)
})

test('compressed forms are charged to the bound, and kept as long as their result', () => {
  const system = new TestSystem()
  const cache = new QueryCache({ system, configuration: new TestConfiguration() })
  const result = { resultText: 'text', hasRead: false, hasGrant: false, configuration: null }
  const form = (bytes: number) => {
    const blocks = new Uint8Array(bytes)
    return { coding: 'gzip' as const, blocks, length: bytes, checksum: 0 }
  }
  for (let request = 0; request < 2; request++) cache.put('key', result, new ReadSet(), null)
  const keys = { shared: 'key', perCaller: 'key' }
  const { characters } = cache.statistics
  const { compressed } = cache.get(keys)!
  expect(compressed.find('gzip')).toBeUndefined()
  compressed.keep('gzip', form(1_000))
  expect(cache.get(keys)!.compressed.find('gzip')).toEqual(form(1_000))
  expect(cache.get(keys)!.compressed.find('zstd')).toBeUndefined()
  expect(cache.statistics.characters).toBe(characters + 1_000)
  // A form that arrives twice is charged once, and one of too many bytes is not kept.
  compressed.keep('gzip', form(1_000))
  compressed.keep('zstd', form(CHARACTERS_MAX / 2))
  expect(cache.statistics.characters).toBe(characters + 1_000)
  expect(compressed.find('zstd')).toBeUndefined()
  // That compression does not shorten the text is kept too.
  compressed.keep('zstd', null)
  expect(compressed.find('zstd')).toBeNull()
  cache.clear()
  expect(cache.statistics).toMatchObject({ entries: 0, characters: 0 })
  // A compression that ends after its result was removed changes nothing.
  for (let request = 0; request < 2; request++) cache.put('key', result, new ReadSet(), null)
  const removed = cache.get(keys)!.compressed
  cache.put('key', result, new ReadSet(), null)
  removed.keep('gzip', form(1_000))
  expect(cache.statistics.characters).toBe(characters)
})

test('compressed forms evict the least recently used results', () => {
  const system = new TestSystem()
  const cache = new QueryCache({ system, configuration: new TestConfiguration() })
  const resultText = 'x'.repeat(CHARACTERS_MAX / 10 - 100)
  const result = { resultText, hasRead: false, hasGrant: false, configuration: null }
  const keysOf = (key: string) => ({ shared: key, perCaller: key })
  for (let i = 0; i < 9; i++) {
    const key = `key ${i}`
    for (let request = 0; request < 2; request++) cache.put(key, result, new ReadSet(), null)
  }
  expect(cache.statistics).toMatchObject({ entries: 9, evictions: 0 })
  for (let i = 2; i < 9; i++) {
    const blocks = new Uint8Array(CHARACTERS_MAX / 50)
    const { compressed } = cache.get(keysOf(`key ${i}`))!
    compressed.keep('gzip', { coding: 'gzip', blocks, length: resultText.length, checksum: 0 })
  }
  expect(cache.get(keysOf('key 0'))).toBeNull()
  expect(cache.get(keysOf('key 8'))).not.toBeNull()
  expect(cache.statistics.characters).toBeLessThanOrEqual(CHARACTERS_MAX)
})
