/**
 * A kill of a runner from outside (by an operator, or by the kernel when memory is short) is
 * attributed to no call: its calls run again, a bounded number of times.
 */
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'
import { killRunners, oneDocument, poolBench } from '../../../testing/runners.ts'
import { isFault } from '../../errors/fault.ts'
import { LOST_RUNS_MAX } from '../limits.ts'

let bench: EngineBench
beforeAll(async () => {
  const schema = `tables({ notes: { fields: {}, indexes: [] } })`
  bench = await engineBench(
    `
    reads: query(async (ctx) => (await ctx.db.table('notes').scan().first()) === null, {}),
    quick: query(() => true, {}),
  `,
    { schema },
  )
  // What the first call of a Release reads would be a kill too.
  await bench.call('quick')
})
afterEach(() => void vi.restoreAllMocks())
afterAll(() => bench.close())

/** Kills the runners in the next `times` reads, whose calls are in them. Counts the kills. */
function killWhileReading(times: number): { kills: number } {
  const counted = { kills: 0 }
  const range = bench.store.range.bind(bench.store)
  vi.spyOn(bench.store, 'range').mockImplementation((request) => {
    if (counted.kills < times) {
      counted.kills += 1
      killRunners()
    }
    return range(request)
  })
  return counted
}

test('a call whose runner is killed runs again', async () => {
  const counted = killWhileReading(1)
  expect(await bench.call('reads')).toBe(true)
  expect(counted.kills).toBe(1)
  expect(bench.log.text()).toContain('signal SIGKILL')
})

test('a call whose runner is killed every time fails, and other calls succeed', {
  tags: ['slow'],
}, async () => {
  const counted = killWhileReading(Number.POSITIVE_INFINITY)
  const failure = bench.call('reads').catch((error: unknown) => error)
  // A runner that is killed before its hello counts as a failed start.
  const codes = ['FUNCTION_FAILED', 'DEADLINE_EXCEEDED', 'UNAVAILABLE'] as const
  const error = await failure
  expect(counted.kills).toBeGreaterThan(1)
  expect(counted.kills).toBeLessThanOrEqual(LOST_RUNS_MAX + 1)
  expect(codes.some((code) => isFault(error, code))).toBe(true)
  await expect.poll(() => bench.call('quick').catch(() => null)).toBe(true)
})

test('a call whose runner is killed before its hello waits for another', {
  tags: ['slow'],
}, async () => {
  let kills = 0
  const onSpawn = (pid: number) => {
    if (kills === 2) return
    kills += 1
    process.kill(pid, 'SIGKILL')
  }
  const { pool, log, call, release } = poolBench({ onSpawn })
  try {
    const code = release('quick: query(() => true, {}),')
    const first = pool.invoke(code, call('quick'), oneDocument)
    await expect.poll(() => log.text(), { interval: 1 }).toContain('signal SIGKILL')
    // It mostly comes in the pause after the first kill, in which no runner is started.
    const second = pool.invoke(code, call('quick'), oneDocument)
    const outcomes = await Promise.all([first, second])
    expect(kills).toBe(2)
    expect(outcomes.map(({ kind }) => kind)).toEqual(['returned', 'returned'])
  } finally {
    await pool.close()
  }
})
