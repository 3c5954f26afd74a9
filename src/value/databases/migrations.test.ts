import { expect, test } from 'vitest'
import { canUse, isOneWay, type Migration, summaryOf } from './migrations.ts'

const migration = (version: number, readableFrom?: number): Migration => ({
  version,
  name: `m${version}`,
  sql: `-- Migration ${version} adds.\n\nselect 1;\n`,
  ...(readableFrom !== undefined && { readableFrom }),
})

test('a migration without a statement about earlier versions is one way', () => {
  expect(isOneWay([migration(1), migration(2)], 1)).toBe(true)
  expect(isOneWay([migration(1), migration(2, 1)], 1)).toBe(false)
})

test('nothing is one way in an empty database, and without pending migrations', () => {
  expect(isOneWay([migration(1), migration(2)], 0)).toBe(false)
  expect(isOneWay([migration(1), migration(2)], 2)).toBe(false)
})

test('a step over two versions is one way where the second is for the one between alone', () => {
  const all = [migration(1), migration(2, 1), migration(3, 2)]
  expect([1, 2].map((found) => isOneWay(all, found))).toEqual([true, false])
})

test('a program can use later migrations only if each of them names its version', () => {
  expect(canUse(2, [])).toBe(true)
  expect(canUse(2, [{ version: 3, readableFrom: 2 }])).toBe(true)
  expect(canUse(2, [{ version: 3, readableFrom: null }])).toBe(false)
  const later = [
    { version: 3, readableFrom: 3 },
    { version: 4, readableFrom: 2 },
  ]
  expect(canUse(2, later)).toBe(false)
})

test('the summary of a migration is the first sentence of its comment', () => {
  const summary = (sql: string) => summaryOf({ version: 1, name: 'a', sql })
  expect(summary('-- Mounts: names of\n-- routes. The name is first.\n\nselect 1;')).toBe(
    'Mounts: names of routes.',
  )
  expect(summary('-- One, e.g. `http.ts` of it.\nselect 1;')).toBe('One, e.g. `http.ts` of it.')
  expect(summary('select 1;')).toBe('')
})
