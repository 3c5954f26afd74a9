/** The flush of unhandled rejections, in a process of its own: this one has other listeners. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { watchRejections } from './rejections.ts'

const MODULE = join(import.meta.dirname, 'rejections.ts')
const FAILURE = /reports unhandled rejections in its event loop only.*build svc with Bun 1\.4\.5/

test('a flush reports a rejection before it returns, and handled ones not at all', () => {
  const program = `
    const { watchRejections } = await import(${JSON.stringify(MODULE)})
    const reported = []
    const rejections = watchRejections((reason) => reported.push(reason))
    const unhandled = Promise.reject('unhandled')
    Promise.reject('handled').catch(() => {})
    const before = [...reported]
    rejections.flush()
    const after = [...reported]
    rejections.flush()
    unhandled.catch(() => {})
    rejections.release()
    console.log(JSON.stringify([before, after, reported]))`
  const run = spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' })
  expect(run.stderr).toBe('')
  expect(JSON.parse(run.stdout)).toEqual([[], ['unhandled'], ['unhandled']])
})

test.each([
  ['lacks the test library', undefined],
  ['has a test library without matchers', {}],
  [
    'has matchers that report nothing',
    { expect: () => ({ not: { toThrow() {} }, resolves: { toBeUndefined() {} } }) },
  ],
])('a runtime that %s starts no runner', (_, library) => {
  // A default parameter would replace undefined by the library of this runtime.
  expect(() => watchRejections(() => {}, library ?? null)).toThrow(FAILURE)
})
