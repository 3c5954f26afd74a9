import { expect, test } from 'vitest'
import { NewestVersions } from './newest-versions.ts'

const version = (id: string, sequence: number, text = '{}') => ({
  id,
  sequence,
  text,
  createdAtMicros: 0n,
})

test('a snapshot before the newest version is left to the database', () => {
  const newest = new NewestVersions()
  newest.keep(version('a', 5))
  expect(newest.find('a', 4)).toBeUndefined()
  expect(newest.find('a', 5)).toEqual(version('a', 5))
  newest.keep(version('a', 7))
  expect(newest.find('a', 6)).toBeUndefined()
  newest.forget('a')
  expect(newest.find('a', 9)).toBeUndefined()
})

test('what was not used while half of the bound was filled twice makes room', () => {
  const newest = new NewestVersions(20)
  newest.keep(version('a', 1, 'xxxx'))
  newest.keep(version('b', 1, 'xxxx'))
  // The third begins the second generation.
  newest.keep(version('c', 1, 'xxxx'))
  expect(newest.find('a', 1)?.id).toBe('a')
  newest.keep(version('d', 1, 'xxxx'))
  newest.keep(version('e', 1, 'xxxx'))
  expect(['a', 'b', 'c', 'd', 'e'].map((id) => newest.find(id, 1)?.id)).toEqual([
    ...['a', undefined, undefined, 'd', 'e'],
  ])
})

test('a version larger than all that is kept is not found, nor what it replaces', () => {
  const newest = new NewestVersions(20)
  newest.keep(version('a', 1, 'xxxx'))
  newest.keep(version('a', 2, 'x'.repeat(30)))
  newest.keep(version('b', 1, 'x'.repeat(30)))
  expect(newest.find('a', 2)).toBeUndefined()
  newest.keep(version('a', 3, 'xxxx'))
  expect(newest.find('a', 3)?.sequence).toBe(3)
  newest.forget('a')
  expect(newest.find('a', 9)).toBeUndefined()
})

test('an older version of an earlier generation never stands for the newest', () => {
  const newest = new NewestVersions(20)
  newest.keep(version('a', 1, 'xxxx'))
  for (const id of ['b', 'c', 'd']) newest.keep(version(id, 1, 'xxxx'))
  newest.keep(version('a', 2, 'xxxx'))
  expect(newest.find('a', 1)).toBeUndefined()
  expect(newest.find('a', 2)?.sequence).toBe(2)
  newest.forget('a')
  expect(newest.find('a', 9)).toBeUndefined()
})
