/** Slow and greedy clients in full size: 1,500 unfinished bodies, 500 unread responses. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ANSWER_BYTES, type Attack, attackOn, openTarget, type Target } from './attacks.ts'

const MIB = 1024 * 1024
const BUDGET_MIB = 256
/** A server that was idle has returned memory, and takes it again beside the budget. */
const SLACK_MIB = 96
const TIMES = { quietSeconds: 4, seconds: 16 } as const
const SLOWER_MAX = 3
/** Tests beside this one delay calls as well, so the bound must hold during one of the attacks. */
const ATTACKS = 3
const TIMEOUT = { timeout: 300_000 }

let target: Target
beforeAll(async () => {
  target = await openTarget()
})
afterAll(() => target?.app.installation.dispose())

/** Attacks, and compares the calls of another client with those before the attack. */
async function expectBounded(attack: Attack, percentile: 'p50' | 'p99'): Promise<void> {
  for (let count = 1; ; count++) {
    const { mibBefore, mibPeak, quiet, attacked } = await attackOn(target, attack)
    expect(mibPeak - mibBefore).toBeLessThanOrEqual(BUDGET_MIB + SLACK_MIB)
    const slower = attacked[percentile] / quiet[percentile]
    if (slower <= SLOWER_MAX) return
    expect(count, `${percentile} of other calls is ${slower} times as long`).toBeLessThan(ATTACKS)
  }
}

test('1,500 unfinished bodies hold no more than their budget', TIMEOUT, async () => {
  const size = { connections: 1_500, bytes: 2 * MIB }
  await expectBounded({ kind: 'bodies', ...size, ...TIMES, seconds: 40 }, 'p99')
})

test('500 unread responses hold no more than their budget', TIMEOUT, async () => {
  const size = { connections: 500, bytes: ANSWER_BYTES }
  await expectBounded({ kind: 'answers', ...size, ...TIMES }, 'p99')
})

test('six senders of long envelopes do not slow down other clients', TIMEOUT, async () => {
  const size = { connections: 6, bytes: 2 * MIB }
  await expectBounded({ kind: 'envelopes', ...size, ...TIMES }, 'p50')
})
