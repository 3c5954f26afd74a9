import { expect, test } from 'vitest'
import { Throttle } from './throttle.ts'

/** Returns whether each of the steps, of these milliseconds, was followed by a wait. */
async function waits(stepsMillis: readonly number[]): Promise<boolean[]> {
  let now = 0
  const throttle = new Throttle({ monotonicMillis: () => now })
  const found: boolean[] = []
  for (const millis of stepsMillis) {
    const end = throttle.begin()
    now += millis
    const wait = end()
    found.push(wait !== undefined)
    await wait
  }
  return found
}

test('calls get their turn after steps that take long together', async () => {
  expect(await waits([0.2, 0.2, 0.2, 0.2, 5])).toEqual([false, true, false, true, true])
})

test('calls get their turn after some steps although the clock stands still', async () => {
  const found = await waits(new Array(32).fill(0))
  expect(found.map((isWait, i) => (isWait ? i : -1)).filter((i) => i >= 0)).toEqual([15, 31])
})

test('a step that waits for a store counts up to its wait alone', async () => {
  let now = 0
  const throttle = new Throttle({ monotonicMillis: () => now })
  const { promise, resolve } = Promise.withResolvers<string>()
  const read = throttle.stepBeforeWait(() => promise)
  now += 50
  resolve('a page')
  expect(await read).toBe('a page')
  expect(throttle.begin()()).toBeUndefined()
  const long = throttle.stepBeforeWait(() => {
    now += 50
    return 'a page'
  })
  expect(await Promise.race([long, 'it waits'])).toBe('it waits')
  expect(await long).toBe('a page')
})
