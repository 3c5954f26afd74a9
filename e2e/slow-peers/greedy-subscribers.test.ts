/**
 * Greedy subscribers in small size: half of the default budget, and smaller attacks.
 *
 * @module-tag slow
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Application } from '../application.ts'
import { argv } from '../argv.ts'
import {
  openWatchedApplication,
  pingOver,
  type Subscribers,
  subscribeTo,
} from './watched-application.ts'

const BUDGET_MIB = 128
/**
 * Texts of runs that are not collected yet: as stored, with their names, and as tagged JSON. Their
 * number depends on the machine. The first attack takes 500 MiB without a budget, and that on the
 * longest lists 700 MiB.
 */
const SLACK_MIB = 192

let app: Application
beforeAll(async () => {
  app = await openWatchedApplication({ SERVICE_REALTIME_MEMORY_MIB: String(BUDGET_MIB) })
})
afterAll(() => app?.installation.dispose())

async function statusOfRealtime(): Promise<unknown> {
  const { installation, svc } = app
  const { components } = await svc(argv`health --remote --root ${installation.productRoot}`)
  return components.find(({ name }: { name: string }) => name === 'realtime').status
}

describe('budgets of subscriptions', () => {
  const many = { function: 'slow.one', connections: 4, subscriptions: 500, seconds: 4 }
  const lists = { function: 'slow.short', connections: 5, subscriptions: 20, seconds: 4 }
  const attacks: readonly (readonly [string, Subscribers])[] = [
    [
      'subscriptions with arguments of 60 KB',
      { ...many, subscriptions: 1_000, paddingCharacters: 60_000 },
    ],
    ['subscriptions to lists of 700 KB', lists],
    ['subscriptions to lists of 7.2 MB', { ...lists, function: 'slow.long', subscriptions: 10 }],
  ]

  test.each(attacks)(
    '%s hold no more than their budget, and some are rejected',
    async (_, attack) => {
      const { mibBefore, mibPeak, attacked, attack: report } = await subscribeTo(app, attack)
      expect(mibPeak - mibBefore).toBeLessThanOrEqual(BUDGET_MIB + SLACK_MIB)
      expect(Object.keys(report.errors)).toContain('LIMIT_EXCEEDED')
      expect(Object.keys(attacked.statuses)).toEqual(['200'])
      expect(await statusOfRealtime()).toBe('degraded')
    },
  )

  test.each([
    ['subscriptions to lists that are not read', { ...lists, isReading: false }],
    ['subscriptions with much white space', { ...many, blankCharacters: 60_000 }],
  ])('%s hold no more than their budget', async (_, attack) => {
    const { mibBefore, mibPeak, attacked } = await subscribeTo(app, attack)
    expect(mibPeak - mibBefore).toBeLessThanOrEqual(BUDGET_MIB + SLACK_MIB)
    expect(Object.keys(attacked.statuses)).toEqual(['200'])
  })
})

test('a ping over many subscriptions costs as much as over one', async () => {
  const pings = { connections: 8, count: 8_000 }
  const cpuWith = async (subscriptions: number): Promise<number> => {
    const { cpuMillis, attack } = await pingOver(app, { ...pings, subscriptions }, 0)
    expect(attack).toMatchObject({ states: pings.connections * subscriptions, errors: {} })
    return cpuMillis
  }
  const one = await cpuWith(1)
  expect(await cpuWith(500)).toBeLessThanOrEqual(3 * one)
})
