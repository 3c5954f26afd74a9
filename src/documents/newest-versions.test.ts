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

test('the oldest versions make room when the bound is passed', () => {
  const newest = new NewestVersions(12)
  newest.keep(version('a', 1, 'xxxx'))
  newest.keep(version('b', 1, 'xxxx'))
  newest.keep(version('c', 1, 'xxxx'))
  expect([newest.find('a', 1), newest.find('b', 1)?.id, newest.find('c', 1)?.id]).toEqual([
    undefined,
    'b',
    'c',
  ])
  newest.keep(version('d', 1, 'x'.repeat(20)))
  expect(newest.find('d', 1)).toBeUndefined()
})
