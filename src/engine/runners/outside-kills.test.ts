/**
 * A kill of a runner from outside (by an operator, or by the kernel when memory is short) is
 * attributed to no call: its calls run again, a bounded number of times.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'
import { killRunners } from '../../../testing/runners.ts'
import { isFault } from '../../errors/fault.ts'

let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(`
    spin: query(() => { let n = 0; for (let i = 0; i < 3e8; i++) n += i % 7; return n > 0 }, {}),
    quick: query(() => true, {}),
  `)
})
afterAll(() => bench.close())

test('a call whose runner is killed runs again', async () => {
  const call = bench.call('spin')
  await delay(100)
  killRunners()
  expect(await call).toBe(true)
  expect(bench.log.text()).toContain('signal SIGKILL')
})

test('a call whose runner is killed every time fails, and other calls succeed', async () => {
  let hasEnded = false
  const call = bench.call('spin').finally(() => {
    hasEnded = true
  })
  const failure = call.catch((error: unknown) => error)
  while (!hasEnded) {
    killRunners()
    await delay(80)
  }
  // A runner that is killed before its hello counts as a failed start.
  const codes = ['FUNCTION_FAILED', 'DEADLINE_EXCEEDED', 'UNAVAILABLE'] as const
  const error = await failure
  expect(codes.some((code) => isFault(error, code))).toBe(true)
  await expect.poll(() => bench.call('quick').catch(() => null)).toBe(true)
})
