/**
 * Whoever kills a runner from outside (an operator, the kernel short of memory) is no call's fault:
 * what ran there is run again, but not for ever.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../build/testing/engines.ts'
import { killRunners } from '../../../build/testing/runners.ts'
import { isFault } from '../../errors/fault.ts'

let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(`
    spin: query(() => { let n = 0; for (let i = 0; i < 3e8; i++) n += i % 7; return n > 0 }, {}),
    quick: query(() => true, {}),
  `)
})
afterAll(() => bench.close())

test('a call whose runner is killed under it is run again', async () => {
  const spun = bench.call('spin')
  await delay(100)
  killRunners()
  expect(await spun).toBe(true)
  expect(bench.log.text()).toContain('signal SIGKILL')
})

test('a call whose runner is killed every time fails, and others go on', async () => {
  let settled = false
  const spun = bench.call('spin').finally(() => {
    settled = true
  })
  const failure = spun.catch((error: unknown) => error)
  while (!settled) {
    killRunners()
    await delay(80)
  }
  // Where one is killed before it greets, none can be started at that moment.
  const codes = ['FUNCTION_FAILED', 'DEADLINE_EXCEEDED', 'UNAVAILABLE'] as const
  const error = await failure
  expect(codes.some((code) => isFault(error, code))).toBe(true)
  await expect.poll(() => bench.call('quick').catch(() => null)).toBe(true)
})
