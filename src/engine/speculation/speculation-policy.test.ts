import { expect, test } from 'vitest'
import { SpeculationPolicy } from './speculation-policy.ts'

const decisions = (policy: SpeculationPolicy, calls: number) =>
  Array.from({ length: calls }, () => policy.decide())

test('calls are speculative until one is misspeculated', () => {
  expect(new Set(decisions(new SpeculationPolicy(), 1_000))).toEqual(new Set([true]))
})

test('64 calls after a misspeculated one are synchronous, later ones are speculative', () => {
  const policy = new SpeculationPolicy()
  policy.onMisspeculation()
  expect(decisions(policy, 64)).not.toContain(true)
  expect(decisions(policy, 100)).not.toContain(false)
})

test('named documents are read for a call unless the call before it read none of them', () => {
  const policy = new SpeculationPolicy()
  expect(policy.readsNamed).toBe(true)
  policy.noteNamed(false)
  expect(policy.readsNamed).toBe(false)
  policy.noteNamed(true)
  expect(policy.readsNamed).toBe(true)
})

test('another misspeculation restarts the 64 synchronous calls and does not add to them', () => {
  const policy = new SpeculationPolicy()
  policy.onMisspeculation()
  expect(decisions(policy, 40)).not.toContain(true)
  // A call that started before the first misspeculation may report its own.
  policy.onMisspeculation()
  expect(decisions(policy, 64)).not.toContain(true)
  expect(policy.decide()).toBe(true)
})
