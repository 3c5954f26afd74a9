import fc from 'fast-check'
import { expect, test } from 'vitest'
import { makeCpuClock } from './cpu-clocks.ts'

/** Steps of time that passed, and of CPU that was used in each: never more than passed. */
const STEPS = fc.array(
  fc
    .tuple(fc.integer({ min: 0, max: 20_000 }), fc.double({ min: 0, max: 1, noNaN: true }))
    .map(([passed, share]) => ({ passed, used: passed * share })),
  { minLength: 1, maxLength: 200 },
)

function replay(steps: readonly { passed: number; used: number }[]) {
  let passed = 0
  let used = 0
  let asked = 0
  const clock = makeCpuClock(
    () => passed,
    () => {
      asked += 1
      return used
    },
  )
  const first = clock()
  const readings = steps.map((step) => {
    passed += step.passed
    used += step.used
    return clock() - first
  })
  return { readings, passed, used, asked }
}

test('a step never counts as less than the CPU that it used, nor as more than what passed', () => {
  fc.assert(
    fc.property(STEPS, (steps) => {
      const { readings } = replay(steps)
      let before = 0
      for (const [i, step] of steps.entries()) {
        const counted = readings[i]! - before
        before = readings[i]!
        expect(counted).toBeGreaterThanOrEqual(step.used - 1e-3)
        expect(counted).toBeLessThanOrEqual(step.passed + 1e-3)
      }
    }),
  )
})

test('waiting for a busy machine counts as a millisecond at most', () => {
  const { readings } = replay([
    { passed: 900, used: 900 },
    { passed: 500_000, used: 10 },
  ])
  expect(readings[1]! - readings[0]!).toBeLessThanOrEqual(1_000)
})

test('the kernel is asked once a millisecond at most', () => {
  const { asked, passed } = replay(Array.from({ length: 10_000 }, () => ({ passed: 3, used: 3 })))
  expect(asked).toBeLessThanOrEqual(2 + passed / 1_000)
})

/** The kernel's clock alone: so much time passes between two readings that each asks it. */
function kernelMicros(): () => number {
  let passed = 0
  return makeCpuClock(() => {
    passed += 1e9
    return passed
  })
}

const isLinux = process.platform === 'linux'

test.skipIf(!isLinux)('the CPU that a thread uses counts', () => {
  const clock = kernelMicros()
  const before = clock()
  const giveUpAt = performance.now() + 10_000
  while (clock() - before < 1_000 && performance.now() < giveUpAt);
  expect(clock() - before).toBeGreaterThanOrEqual(1_000)
})

test.skipIf(!isLinux)(
  'a thread uses no more CPU than its process, also while it sleeps',
  async () => {
    const clock = kernelMicros()
    const processBefore = process.cpuUsage()
    const threadBefore = clock()
    await Bun.sleep(100)
    const thread = clock() - threadBefore
    const { user, system } = process.cpuUsage(processBefore)
    // The kernel rounds each of the two down to a microsecond.
    expect(thread).toBeLessThanOrEqual(user + system + 2)
  },
)
