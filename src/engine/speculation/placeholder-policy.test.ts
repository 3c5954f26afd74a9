import { expect, test } from 'vitest'
import { PlaceholderPolicy } from './placeholder-policy.ts'

const decisions = (policy: PlaceholderPolicy, calls: number) =>
  Array.from({ length: calls }, () => policy.decide())

test('calls receive placeholders until one reads them', () => {
  const policy = new PlaceholderPolicy()
  expect(new Set(decisions(policy, 2_000))).toEqual(new Set(['always']))
  policy.onRead()
  expect(policy.decide()).toBeNull()
})

test('one call in 1,025 tries placeholders after a call that read them', () => {
  const policy = new PlaceholderPolicy()
  policy.onRead()
  expect(new Set(decisions(policy, 1_024))).toEqual(new Set([null]))
  expect(policy.decide()).toBe('tried')
  expect(new Set(decisions(policy, 1_024))).toEqual(new Set([null]))
  expect(policy.decide()).toBe('tried')
})

test('a call that tried placeholders and read none ends the calls with documents', () => {
  const policy = new PlaceholderPolicy()
  policy.onRead()
  decisions(policy, 1_025)
  policy.onReturn('tried')
  expect(policy.decide()).toBe('always')
})

test('a call that began before another one read placeholders ends nothing', () => {
  const policy = new PlaceholderPolicy()
  policy.onRead()
  policy.onReturn('always')
  expect(policy.decide()).toBeNull()
})

test('a call that reads placeholders again restarts the calls with documents', () => {
  const policy = new PlaceholderPolicy()
  policy.onRead()
  decisions(policy, 1_000)
  policy.onRead()
  expect(new Set(decisions(policy, 1_024))).toEqual(new Set([null]))
  expect(policy.decide()).toBe('tried')
})
