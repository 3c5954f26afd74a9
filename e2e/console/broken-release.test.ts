/**
 * A story of the console: a new Release breaks a Function, and the operator rolls it back.
 *
 * @module-tag slow
 */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { type Application, application, type Json } from '../application.ts'
import { argv } from '../argv.ts'
import { type ConsolePage, openConsole } from './console-page.ts'

const DEADLINE = { timeout: 120_000 }
const MARKUP = '<img src=x onerror="window.attacked=1">'

const functions = (total: string): string => `import { query, v } from 'svc'
export const total = query({
  clients: ['confidential'],
  arguments: { prices: v.array(v.int64()) },
  returns: v.int64(),
  handler: (_, { prices }) => {
    console.log('adding \u202e ${MARKUP}')
    return ${total}
  },
})
`
const WORKS = functions('prices.reduce((sum, price) => sum + price, 0n)')
/** Throws for an empty list alone, which its author did not try. */
const BROKEN = functions('prices.reduce((sum, price) => sum + price)')

let app: Application
let page: ConsolePage

/** Calls the Function as an application does. */
async function total(prices: readonly number[]): Promise<Json> {
  const response = await fetch(`${app.server.application}/v1/functions/orders.total`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-service-key': app.key,
      'x-service-target': 'channel:production',
    },
    body: JSON.stringify({ prices }),
  })
  const { result, error } = (await response.json()) as Json
  return result ?? error.code
}

/** A cell of the table of calls on the overview, in the row of Queries. */
async function calls(column: string): Promise<number> {
  const cell = `(() => {
    const table = document.querySelector('[aria-label="Calls since the start"] table')
    if (table === null) return '-1'
    const heads = [...table.querySelectorAll('th')].map((head) => head.innerText)
    const row = [...table.querySelectorAll('tbody tr')]
      .find((each) => each.innerText.startsWith('Queries'))
    return row.children[heads.indexOf(${JSON.stringify(column)})].innerText
  })()`
  return Number(await page.tab.evaluate<string>(cell))
}

beforeAll(async () => {
  if (!chromiumInstalled) return
  app = await application((workspace) => {
    for (const file of ['functions/channels.ts', 'functions/messages.ts', 'crons.ts']) {
      rmSync(join(workspace, file), { force: true })
    }
    writeFileSync(join(workspace, 'functions/orders.ts'), WORKS)
    writeFileSync(
      join(workspace, 'schema.ts'),
      "import { defineSchema } from 'svc'\nexport default defineSchema({})\n",
    )
  })
  page = await openConsole(app)
})

afterAll(async () => {
  await page?.close()
  await app?.installation.dispose()
})

const where = chromiumInstalled
  ? 'a broken Release in headless Chromium'
  : 'a broken Release in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  test('an operator finds why calls fail, rolls the Channel back, and calls succeed', async () => {
    expect(await total([])).toBe(0)
    await expect.poll(() => calls('Succeeded'), DEADLINE).toBeGreaterThan(0)
    expect(await calls('Failed')).toBe(0)

    writeFileSync(join(app.installation.workspace, 'functions/orders.ts'), BROKEN)
    const root = argv`--remote --root ${app.installation.productRoot}`
    const { releaseId } = await app.svc(argv`release ${root} --channel production --no-typecheck`)
    await expect.poll(() => total([]), DEADLINE).toBe('FUNCTION_FAILED')
    expect(await total([1, 2])).toBe(3)

    // The overview shows that calls fail.
    await expect.poll(() => calls('Failed'), DEADLINE).toBeGreaterThan(0)
    await page.click('Warnings in the log')
    await page.sees('orders.total')
    // The line of the source stands beside the error, before the details are open.
    await page.sees('(functions/orders.ts:8')
    await page.click('Details')
    await page.click('All records of this request')

    // The request has the failure with its line of the source, and what the Function printed.
    await page.sees('Steps in time')
    await page.sees('Records of one request')
    await page.sees('functions/orders.ts:8')
    await page.sees(`adding \\u{202e} ${MARKUP}`)
    const bars = `document.querySelectorAll('[aria-label="Steps in time"] svg rect').length`
    expect(await page.tab.evaluate<number>(bars)).toBeGreaterThan(2)
    expect(await page.text()).not.toContain('\u202e')
    expect(await page.tab.evaluate('String(window.attacked)')).toBe('undefined')
    await page.isAccessible('request')

    await page.click('Releases')
    await page.sees(releaseId)
    await page.click('Roll back … production')
    await page.sees(`reach ${app.releaseId} in place of ${releaseId}`)
    await page.click('Roll back')
    await page.sees('Done: Roll the Channel production back')
    await expect.poll(() => total([]), DEADLINE).toBe(0)
    // The Release before is the newer one then.
    await page.sees('Roll forward …')

    // From here on no call fails.
    await page.click('Overview')
    await expect.poll(() => calls('Failed'), DEADLINE).toBeGreaterThan(0)
    const failed = await calls('Failed')
    const succeeded = await calls('Succeeded')
    for (const prices of [[], [5], [1, 1]]) {
      expect(await total(prices)).toBe(prices.reduce((sum, price) => sum + price, 0))
    }
    await expect.poll(() => calls('Succeeded'), DEADLINE).toBeGreaterThan(succeeded)
    expect(await calls('Failed')).toBe(failed)
  })
})
