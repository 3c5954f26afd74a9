import { expect, test } from 'vitest'
import { fc } from '../../../testing/properties.ts'
import { makeCpuClock } from './cpu-clocks.ts'

/** Steps of elapsed time, and the CPU time used in each, which is never more. */
const STEPS = fc.array(
  fc
    .tuple(fc.integer({ min: 0, max: 20_000 }), fc.double({ min: 0, max: 1, noNaN: true }))
    .map(([elapsed, share]) => ({ elapsed, used: elapsed * share })),
  { minLength: 1, maxLength: 200 },
)

function replay(steps: readonly { elapsed: number; used: number }[]) {
  let elapsed = 0
  let used = 0
  let kernelReads = 0
  const clock = makeCpuClock(
    () => elapsed,
    () => {
      kernelReads += 1
      return used
    },
  )
  const first = clock()
  const readings = steps.map((step) => {
    elapsed += step.elapsed
    used += step.used
    return clock() - first
  })
  return { readings, elapsed, used, kernelReads }
}

test('a step counts no less than the CPU time used and no more than the elapsed time', () => {
  fc.assert(
    fc.property(STEPS, (steps) => {
      const { readings } = replay(steps)
      let before = 0
      for (const [i, step] of steps.entries()) {
        const counted = readings[i]! - before
        before = readings[i]!
        expect(counted).toBeGreaterThanOrEqual(step.used - 1e-3)
        expect(counted).toBeLessThanOrEqual(step.elapsed + 1e-3)
      }
    }),
  )
})

test('a wait for a busy machine counts at most a millisecond', () => {
  const { readings } = replay([
    { elapsed: 900, used: 900 },
    { elapsed: 500_000, used: 10 },
  ])
  expect(readings[1]! - readings[0]!).toBeLessThanOrEqual(1_000)
})

test('the clock reads the kernel at most once a millisecond', () => {
  const steps = Array.from({ length: 10_000 }, () => ({ elapsed: 3, used: 3 }))
  const { kernelReads, elapsed } = replay(steps)
  expect(kernelReads).toBeLessThanOrEqual(2 + elapsed / 1_000)
})

test('the clock of a thread advances while it computes and not while it sleeps', async () => {
  const clock = makeCpuClock()
  const before = clock()
  await Bun.sleep(100)
  const slept = clock() - before
  for (const counter = { value: 0 }; counter.value < 3e7; counter.value++);
  expect(slept).toBeLessThan(50_000)
  expect(clock() - before - slept).toBeGreaterThan(1_000)
})
