/** Slow and greedy clients in full size: 1,500 unfinished bodies, 500 unread responses. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ANSWER_BYTES, attackOn, openTarget, type Target } from './attacks.ts'

const MIB = 1024 * 1024
const BUDGET_MIB = 256
const SLACK_MIB = 64
const TIMES = { quietSeconds: 4, seconds: 16 } as const

let target: Target
beforeAll(async () => {
  target = await openTarget()
})
afterAll(() => target?.app.installation.dispose())

test('1,500 unfinished bodies hold no more than their budget', async () => {
  const attack = {
    kind: 'bodies',
    connections: 1_500,
    bytes: 2 * MIB,
    ...TIMES,
    seconds: 40,
  } as const
  const { mibBefore, mibPeak, quiet, attacked } = await attackOn(target, attack)
  expect(mibPeak - mibBefore).toBeLessThanOrEqual(BUDGET_MIB + SLACK_MIB)
  expect(attacked.p99).toBeLessThanOrEqual(3 * quiet.p99)
})

test('500 unread responses hold no more than their budget', async () => {
  const attack = { kind: 'answers', connections: 500, bytes: ANSWER_BYTES, ...TIMES } as const
  const { mibBefore, mibPeak, quiet, attacked } = await attackOn(target, attack)
  expect(mibPeak - mibBefore).toBeLessThanOrEqual(BUDGET_MIB + SLACK_MIB)
  expect(attacked.p99).toBeLessThanOrEqual(3 * quiet.p99)
})

test('six senders of long envelopes do not slow down the calls of other clients', async () => {
  const attack = { kind: 'envelopes', connections: 6, bytes: 2 * MIB, ...TIMES } as const
  const { quiet, attacked } = await attackOn(target, attack)
  expect(attacked.p50).toBeLessThanOrEqual(3 * quiet.p50)
})
