/**
 * The page Schedules of the console in a browser, against the compiled server.
 *
 * @module-tag slow
 */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { type Application, application } from '../application.ts'
import { argv } from '../argv.ts'
import { type ConsolePage, openConsole } from './console-page.ts'

const MARKUP = '<img src=x onerror="window.attacked=1">'
const BIDIRECTIONAL = 'safe\u202egnp.exe'

const FUNCTIONS = `import { internalMutation, mutation, v } from 'svc'
import { internal } from '../_generated/api'
export const send = internalMutation({
  arguments: { to: v.string() },
  returns: v.null(),
  handler: (ctx, { to }) => {
    if (to !== '') throw new Error('cannot send to ' + to)
    return null
  },
})
export const sweep = internalMutation({ returns: v.null(), handler: () => null })
export const later = mutation({
  clients: ['confidential'],
  arguments: { to: v.string(), minutes: v.float64() },
  returns: v.null(),
  handler: async (ctx, { to, minutes }) => {
    await ctx.scheduler.runAfter({ minutes }, internal.mail.send, { to })
    return null
  },
})
`
const CRONS = `import { cronJobs } from 'svc'
import { internal } from './_generated/api'
export default cronJobs({
  digest: { schedule: '0 7 * * *', timeZone: 'Europe/Rome', function: internal.mail.send,
    arguments: { to: ${JSON.stringify(MARKUP + BIDIRECTIONAL)} } },
  sweep: { every: { hours: 6 }, function: internal.mail.sweep },
})
`

let app: Application
let page: ConsolePage

async function later(to: string, minutes: number): Promise<void> {
  const response = await fetch(`${app.server.application}/v1/functions/mail.later`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-service-key': app.key,
      'x-service-target': 'channel:production',
    },
    body: JSON.stringify({ to, minutes }),
  })
  expect(response.status).toBe(200)
}

beforeAll(async () => {
  if (!chromiumInstalled) return
  app = await application((workspace) => {
    for (const file of ['functions/channels.ts', 'functions/messages.ts', 'functions/notes.ts']) {
      rmSync(join(workspace, file), { force: true })
    }
    writeFileSync(join(workspace, 'functions/mail.ts'), FUNCTIONS)
    writeFileSync(join(workspace, 'crons.ts'), CRONS)
  })
  page = await openConsole(app)
})

afterAll(async () => {
  await page?.close()
  await app?.installation.dispose()
})

const where = chromiumInstalled
  ? 'the page Schedules in headless Chromium'
  : 'the page Schedules in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  test('an operator disables a Cron and enables it, and sees when it runs next', async () => {
    await page.show('schedules')
    await page.sees('0 7 * * * Europe/Rome')
    await page.sees('every 21600 s')
    await page.click('Disable … digest')
    await page.sees('svc crons disable digest --expected 0')
    await page.isAccessible('cron-question')
    await page.click('Disable the Cron')
    await page.sees('Enable …')
    const root = argv`--root ${app.installation.productRoot}`
    const { crons } = await app.svc(argv`crons list ${root}`)
    expect(crons[0]).toMatchObject({ name: 'digest', activation: 'disabled' })
    await page.click('Enable … digest')
    await page.click('Enable the Cron')
    await page.sees('Done: Enable the Cron digest')
  })

  test('a run by hand shows its outcome, and the failure leads to its records', async () => {
    await page.click('Run now … sweep')
    await page.click('Run the Cron')
    await page.sees('succeeded')
    await page.click('Run now … digest')
    await page.sees('svc crons run digest')
    await page.click('Run the Cron')
    const outcome = `[...document.querySelectorAll('tr')].find((row) =>
      row.innerText.startsWith('digest'))?.innerText ?? ''`
    await expect.poll(() => page.tab.evaluate(outcome), { timeout: 120_000 }).toContain('failed')
    await page.isAccessible('schedules')
    await page.click('FUNCTION_')
    await page.sees(`cannot send to ${MARKUP}safe\\u{202e}gnp.exe`)
    expect(await page.tab.evaluate('String(window.attacked)')).toBe('undefined')
    expect(await page.tab.evaluate(`document.querySelectorAll('main img').length`)).toBe(0)
    await page.isAccessible('run-records')
  })

  test('scheduled Functions are filtered by state, and a pending one is canceled', async () => {
    await later('', 600)
    await later('', 0)
    await page.show('schedules?state=pending')
    await page.sees('Cancel …')
    expect(await page.text()).not.toContain('Done: Cancel')
    const states = `[...document.querySelectorAll('[aria-label="Scheduled Functions"] tbody tr')]
      .map((row) => row.children[1].innerText).join()`
    await expect.poll(() => page.tab.evaluate(states)).toBe('pending')
    await page.click('Cancel … sch_')
    await page.sees('svc scheduled cancel sch_')
    await page.click('Cancel the run')
    await page.sees('Nothing fits.')
    await page.show('schedules?state=canceled&name=mail.send')
    await expect.poll(() => page.tab.evaluate(states)).toBe('canceled')
    await page.show('schedules?state=failed&since=1h')
    await page.sees('failed')
    await page.isAccessible('scheduled')
  })
})
