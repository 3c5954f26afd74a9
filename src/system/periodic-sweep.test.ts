import { expect, test } from 'vitest'
import { PeriodicSweep } from './periodic-sweep.ts'

test('one run follows the other, also after a failure, and stop waits for the last', async () => {
  const errors: unknown[] = []
  let running = 0
  let runs = 0
  let ended = 0
  const sweep = new PeriodicSweep({
    periodMillis: 1,
    sweep: async (isStopped) => {
      runs += 1
      running += 1
      expect(running).toBe(1)
      if (runs === 3) while (!isStopped()) await new Promise((resolve) => setTimeout(resolve, 1))
      running -= 1
      ended += 1
      if (runs === 1) throw new Error('first')
    },
    onError: (error) => errors.push(error),
  })
  sweep.start()
  await expect.poll(() => runs, { interval: 1 }).toBe(3)
  await sweep.stop()
  expect([runs, ended, running]).toEqual([3, 3, 0])
  expect(errors).toEqual([new Error('first')])
})
