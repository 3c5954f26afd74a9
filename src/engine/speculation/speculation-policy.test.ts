import { expect, test } from 'vitest'
import { SpeculationPolicy } from './speculation-policy.ts'

const next = (pace: SpeculationPolicy, calls: number) =>
  Array.from({ length: calls }, () => pace.next())

test('a Function runs ahead until an attempt of it is void', () => {
  expect(new Set(next(new SpeculationPolicy(), 1_000))).toEqual(new Set([true]))
})

test('behind a void attempt 64 calls run in step, and then ahead again', () => {
  const pace = new SpeculationPolicy()
  pace.onVoid()
  expect(next(pace, 64)).not.toContain(true)
  expect(next(pace, 100)).not.toContain(false)
})

test('another void attempt begins the 64 anew, and does not add to them', () => {
  const pace = new SpeculationPolicy()
  pace.onVoid()
  expect(next(pace, 40)).not.toContain(true)
  // Of a call that began before the first one was void.
  pace.onVoid()
  expect(next(pace, 64)).not.toContain(true)
  expect(pace.next()).toBe(true)
})
