import { expect, test } from 'vitest'
import { ManualTimers } from '../../engine/scheduling/timers.ts'
import { SimulatedClock } from './simulated-system.ts'
import { type SimulatedScheduler, SimulatedTime } from './simulated-time.ts'

function timeOf(scheduler: Partial<SimulatedScheduler>) {
  const clock = new SimulatedClock(0)
  const timers = new ManualTimers(clock, Number.POSITIVE_INFINITY)
  const idle = { statistics: { succeeded: 0, failed: 0 }, wake: () => undefined }
  const whenSettled = async () => undefined
  const time = new SimulatedTime(clock, timers, { ...idle, whenSettled, ...scheduler })
  return { clock, timers, time }
}

test('timers run in the order of their times, and each sees its time on the clock', async () => {
  const { clock, timers, time } = timeOf({})
  const seen: number[] = []
  for (const millis of [300, 100, 200, 5_000]) timers.set(millis, () => seen.push(clock.millis))
  await Promise.all([time.advance(250), time.advance(250)])
  expect(seen).toEqual([100, 200, 300])
  expect(clock.millis).toBe(500)
})

test('work runs only while the clock is advanced', async () => {
  const admitted: boolean[] = []
  const { time } = timeOf({ wake: () => admitted.push(time.admits) })
  expect(time.admits).toBe(false)
  await time.advance(1)
  expect([...admitted, time.admits]).toEqual([true, false])
})

test('work that schedules itself without a delay fails the advance', async () => {
  const statistics = { succeeded: 0, failed: 0 }
  const timer = setInterval(() => {
    statistics.succeeded += 5_000
  }, 1)
  // Such work never ends.
  const { time } = timeOf({ statistics, whenSettled: () => new Promise(() => undefined) })
  const stopped = expect.objectContaining({ code: 'LIMIT_EXCEEDED' })
  await expect(time.advance(1)).rejects.toEqual(stopped)
  clearInterval(timer)
  expect(time.admits).toBe(false)
})
