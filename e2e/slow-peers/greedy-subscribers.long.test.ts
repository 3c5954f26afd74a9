/** Greedy subscribers with one public key and one address, in full size. */

import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Application } from '../application.ts'
import {
  measureCalls,
  openWatchedApplication,
  pingOver,
  type Subscribers,
  subscribeTo,
} from './watched-application.ts'

const BUDGET_MIB = 256
const SLACK_MIB = 96
const SLOWER_MAX = 3
/** Tests beside this one delay calls as well, so the bound must hold for one of the attacks. */
const ATTACKS = 3
const PINGING_SECONDS = 16
const TIMEOUT = { timeout: 600_000 }

let app: Application
afterEach(() => app?.installation.dispose())

describe('budgets of subscriptions', () => {
  beforeEach(async () => {
    app = await openWatchedApplication()
    // The first calls start a runner and trigger the compilation of the code.
    await measureCalls(app, 2)
  })

  const many = { function: 'slow.one', connections: 12, subscriptions: 1_000, seconds: 16 }
  const lists = { function: 'slow.short', connections: 10, subscriptions: 200, seconds: 16 }
  const attacks: readonly (readonly [string, Subscribers])[] = [
    ['subscriptions with arguments of 60 KB', { ...many, paddingCharacters: 60_000 }],
    ['subscriptions with white space of 60 KB', { ...many, blankCharacters: 60_000 }],
    ['subscriptions to lists of 700 KB', lists],
    ['subscriptions to lists of 700 KB that are not read', { ...lists, isReading: false }],
    [
      'subscriptions to lists of 7.2 MB',
      { ...lists, function: 'slow.long', connections: 3, subscriptions: 100 },
    ],
  ]

  test.each(attacks)('%s hold no more than their budget', TIMEOUT, async (_, attack) => {
    const { mibBefore, mibPeak, attacked } = await subscribeTo(app, attack)
    expect(mibPeak - mibBefore).toBeLessThanOrEqual(BUDGET_MIB + SLACK_MIB)
    expect(Object.keys(attacked.statuses)).toEqual(['200'])
  })
})

test('pings of connections with 1,000 subscriptions delay no other client', TIMEOUT, async () => {
  app = await openWatchedApplication()
  const pings = { connections: 60, count: 2_750 * PINGING_SECONDS }
  const p99With = async (subscriptions: number): Promise<number> => {
    const { beside, attack } = await pingOver(app, { ...pings, subscriptions }, PINGING_SECONDS)
    expect(Object.keys(beside!.statuses)).toEqual(['200'])
    // Those beyond the memory of one address are rejected.
    const { LIMIT_EXCEEDED: rejected = 0 } = attack.errors
    expect(attack.states + rejected).toBe(pings.connections * subscriptions)
    return beside!.p99
  }
  for (let count = 1; ; count++) {
    const slower = (await p99With(1_000)) / (await p99With(1))
    if (slower <= SLOWER_MAX) return
    expect(count, `p99 of other calls is ${slower} times as long`).toBeLessThan(ATTACKS)
  }
})
