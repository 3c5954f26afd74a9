import { expect, test } from 'vitest'
import { NewestVersions } from './newest-versions.ts'

const version = (id: string, sequence: number, text = '{}') => ({
  id,
  sequence,
  text,
  createdAtMicros: 0n,
})

test('a snapshot before the newest version is not found in the cache', () => {
  const newest = new NewestVersions()
  newest.put(version('a', 5))
  expect(newest.find('a', 4)).toBeUndefined()
  expect(newest.find('a', 5)).toEqual(version('a', 5))
  newest.put(version('a', 7))
  expect(newest.find('a', 6)).toBeUndefined()
  newest.forget('a')
  expect(newest.find('a', 9)).toBeUndefined()
})

test('versions that were not used for a generation are evicted', () => {
  const newest = new NewestVersions(20)
  newest.put(version('a', 1, 'xxxx'))
  newest.put(version('b', 1, 'xxxx'))
  // The third version starts the second generation.
  newest.put(version('c', 1, 'xxxx'))
  expect(newest.find('a', 1)?.id).toBe('a')
  newest.put(version('d', 1, 'xxxx'))
  newest.put(version('e', 1, 'xxxx'))
  expect(['a', 'b', 'c', 'd', 'e'].map((id) => newest.find(id, 1)?.id)).toEqual([
    'a',
    undefined,
    undefined,
    'd',
    'e',
  ])
})

test('a cleared cache finds no version, and caches those that are read again', () => {
  const newest = new NewestVersions(20)
  for (const id of ['a', 'b', 'c']) newest.put(version(id, 1, 'xxxx'))
  newest.clear()
  expect(['a', 'b', 'c'].map((id) => newest.find(id, 1))).toEqual([undefined, undefined, undefined])
  for (let read = 0; read < 2; read++) newest.keep(version('a', 1))
  expect(newest.find('a', 1)).toEqual(version('a', 1))
})

test('a version larger than the cache is not found, nor is the one that it replaces', () => {
  const newest = new NewestVersions(20)
  newest.put(version('a', 1, 'xxxx'))
  newest.put(version('a', 2, 'x'.repeat(30)))
  newest.put(version('b', 1, 'x'.repeat(30)))
  expect(newest.find('a', 2)).toBeUndefined()
  newest.put(version('a', 3, 'xxxx'))
  expect(newest.find('a', 3)?.sequence).toBe(3)
  newest.forget('a')
  expect(newest.find('a', 9)).toBeUndefined()
})

test('an older version in the earlier generation is never returned as the newest', () => {
  const newest = new NewestVersions(20)
  newest.put(version('a', 1, 'xxxx'))
  for (const id of ['b', 'c', 'd']) newest.put(version(id, 1, 'xxxx'))
  newest.put(version('a', 2, 'xxxx'))
  expect(newest.find('a', 1)).toBeUndefined()
  expect(newest.find('a', 2)?.sequence).toBe(2)
  newest.forget('a')
  expect(newest.find('a', 9)).toBeUndefined()
})

test('a version is cached from its second read on', () => {
  const newest = new NewestVersions()
  const first = version('a', 1)
  expect(newest.keep(first)).toBe(first)
  expect(newest.find('a', 1)).toBeUndefined()
  const second = version('a', 1)
  expect(newest.keep(second)).toBe(second)
  expect(newest.find('a', 1)).toBe(second)
  expect(newest.keep(version('a', 1))).toBe(second)
  newest.forget('a')
  expect(newest.keep(version('a', 2))).toEqual(version('a', 2))
  expect(newest.find('a', 2)).toBeUndefined()
})

test('a version that was read replaces an older one at once', () => {
  const newest = new NewestVersions()
  newest.put(version('a', 1))
  newest.keep(version('a', 2))
  expect(newest.find('a', 1)).toBeUndefined()
  expect(newest.find('a', 2)?.sequence).toBe(2)
})
