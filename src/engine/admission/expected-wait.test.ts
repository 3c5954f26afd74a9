/** The estimate of the wait, over calls that a queue serves at a rate which the test chooses. */
import { expect, test } from 'vitest'
import { ExpectedWait } from './expected-wait.ts'

/** Serves calls in the order of their arrival. */
function queue() {
  let now = 1_000
  let served = 0
  const waiting: number[] = []
  const wait = new ExpectedWait({ monotonicMillis: () => now })
  return {
    wait,
    arrive(calls: number): void {
      for (let i = 0; i < calls; i++) waiting.push(wait.begin())
    },
    /** Advances the clock, while `perSecond` calls arrive and `servedPerSecond` end. */
    run(millis: number, { perSecond = 0, servedPerSecond = 0 }): void {
      let due = 0
      for (let i = 0; i < millis; i++) {
        now += 1
        for (due += perSecond / 1_000; due >= 1; due--) this.arrive(1)
        for (served += servedPerSecond / 1_000; served >= 1; served--) {
          const arrival = waiting.shift()
          if (arrival !== undefined) wait.end(arrival)
        }
      }
    },
    get length(): number {
      return waiting.length
    },
  }
}

test('calls that end as fast as they come do not queue, however many they are', () => {
  const calls = queue()
  calls.run(2_000, { perSecond: 20_000, servedPerSecond: 20_000 })
  calls.arrive(1_000)
  expect(calls.wait.millis()).toBe(0)
})

test.each([20, 200, 5_000])(
  'a queue that is served at %d a second waits for its length, divided by that rate',
  (servedPerSecond) => {
    const calls = queue()
    calls.run(5_000, { perSecond: 4 * servedPerSecond, servedPerSecond })
    const millis = (calls.length / servedPerSecond) * 1_000
    expect(calls.wait.millis() / millis).toBeGreaterThan(0.8)
    expect(calls.wait.millis() / millis).toBeLessThan(1.25)
  },
)

test('slower calls after fast ones are noticed within three seconds', () => {
  const calls = queue()
  calls.run(5_000, { perSecond: 5_000, servedPerSecond: 5_000 })
  calls.run(3_000, { perSecond: 500, servedPerSecond: 50 })
  expect(calls.wait.millis()).toBeGreaterThan(5_000)
})

test('a burst after a pause is not taken for a queue before its rate is known', () => {
  const calls = queue()
  calls.run(1_000, { perSecond: 20, servedPerSecond: 20 })
  calls.run(5_000, { servedPerSecond: 20 })
  calls.arrive(2_000)
  expect(calls.wait.millis()).toBe(0)
  // A runner starts, and no call ends meanwhile: so far they have waited that long.
  calls.run(1_200, {})
  expect(calls.wait.millis()).toBe(1_200)
})

test('a stall of less than a second is no queue', () => {
  const calls = queue()
  calls.run(5_000, { perSecond: 500, servedPerSecond: 500 })
  for (let millis = 0; millis < 900; millis += 100) {
    calls.run(100, { perSecond: 500 })
    expect(calls.wait.millis()).toBe(0)
  }
})

test('few calls are no queue, however long they take', () => {
  const calls = queue()
  calls.arrive(15)
  calls.run(5_000, {})
  expect(calls.wait.millis()).toBe(0)
  calls.arrive(1)
  expect(calls.wait.millis()).toBeGreaterThan(4_000)
})
