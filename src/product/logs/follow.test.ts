/**
 * Tests the end of a stream that follows a log in which nothing is written.
 *
 * @module-tag slow
 */
import { expect, onTestFinished, test } from 'vitest'
import { openTestLogs } from '../../../testing/logs.ts'
import { RECHECK_MILLIS } from './follow.ts'

test('a quiet stream ends within a second of the authorization of its caller', async () => {
  const opened = await openTestLogs()
  onTestFinished(() => opened.dispose())
  let checks = 0
  const reauthorize = async () => {
    checks += 1
    if (checks > 1) throw new Error('revoked')
  }
  const stream = opened.logs.follow({}, reauthorize, new AbortController().signal)
  expect(JSON.parse((await stream.next()).value!)).toMatchObject({ heartbeat: true })
  expect(await stream.next()).toEqual({ done: true, value: undefined })
  expect(checks).toBe(2)
  expect(RECHECK_MILLIS).toBeLessThan(1_000)
})
