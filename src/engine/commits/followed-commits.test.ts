import { expect, test } from 'vitest'
import { FollowedCommits } from './followed-commits.ts'
import { ReadSet } from './read-set.ts'

const writes = (documents: readonly string[], keys: readonly string[] = []) => ({
  documents,
  keys: new Map([[1, keys]]),
})

function reading(document: string): ReadSet {
  const readSet = new ReadSet()
  readSet.addDocument(document)
  return readSet
}

test('a followed commit is the newest one, and changes what it wrote', () => {
  const commits = new FollowedCommits(10)
  expect([commits.durable, commits.pinSnapshot().sequence]).toEqual([10, 10])
  commits.follow(11, writes(['a']))
  commits.follow(13, writes(['b']))
  expect(commits.durable).toBe(13)
  expect(commits.changedSince(reading('a'), 10)).toBe(true)
  expect(commits.changedSince(reading('a'), 11)).toBe(false)
  expect(commits.changedSince(reading('b'), 11)).toBe(true)
  expect(commits.changedSince(reading('c'), 10)).toBe(false)
})

test('a key that appears in an interval changes a read of the interval', () => {
  const commits = new FollowedCommits(0)
  const pin = commits.pinSnapshot()
  const readSet = new ReadSet()
  readSet.addInterval(1, { lower: 'k', upper: 'm' })
  commits.follow(1, writes(['new'], ['z']))
  expect(commits.changedSince(readSet, 0)).toBe(false)
  commits.follow(2, writes(['other'], ['l']))
  expect(commits.changedSince(readSet, 0)).toBe(true)
  commits.unpinSnapshot(pin)
})

test('a read at a snapshot that the log no longer covers counts as changed', () => {
  const commits = new FollowedCommits(0)
  commits.follow(1, writes(['a']))
  commits.follow(2, writes(['b']))
  // No read pinned a snapshot, so only the newest commits are kept.
  for (let sequence = 3; sequence < 20_000; sequence++) commits.follow(sequence, writes(['c']))
  expect(commits.changedSince(reading('untouched'), 0)).toBe(true)
})
