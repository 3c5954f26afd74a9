/**
 * The page of Releases in a browser: dry run, promotion, canary, retirement; checked by calls.
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

const MARKUP = '<img src=x onerror="window.attacked=1"> \u202egnp.exe'
const DEADLINE = { timeout: 120_000 }

const schema = (tables: string): string => `import { defineSchema, table, v } from 'svc'
export default defineSchema({ ${tables} })
`
const FIRST_TABLES = 'notes: table({ title: v.string() }), old: table({ title: v.string() })'
const LAST_TABLES = 'notes: table({ title: v.string() })'

const functions = (reply: string): string => `import { query, v } from 'svc'
export const read = query({
  clients: ['confidential'],
  arguments: {},
  returns: v.string(),
  handler: () => '${reply}',
})
`

let app: Application
let page: ConsolePage
let second: string
let third: string

async function read(target: string, caller = 'caller'): Promise<string | undefined> {
  const response = await fetch(`${app.server.application}/v1/functions/pages.read`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-service-key': app.key,
      'x-service-target': target,
      'x-service-affinity': caller,
    },
    body: '{}',
  })
  return ((await response.json()) as Json).result
}

/** Counts the replies of environment:default to a hundred callers. */
async function shares(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (let i = 0; i < 100; i++) {
    const reply = String(await read('environment:default', `caller-number-${i}`))
    counts[reply] = (counts[reply] ?? 0) + 1
  }
  return counts
}

function write(workspace: string, reply: string, tables: string): void {
  writeFileSync(join(workspace, 'functions/pages.ts'), functions(reply))
  writeFileSync(join(workspace, 'schema.ts'), schema(tables))
}

async function release(reply: string, tables: string): Promise<string> {
  write(app.installation.workspace, reply, tables)
  const root = argv`--remote --root ${app.installation.productRoot} --no-typecheck`
  return (await app.svc(argv`release ${root} --message ${MARKUP}`)).releaseId
}

async function choose(name: string, value: string): Promise<void> {
  const select = JSON.stringify(`select[name="${name}"]`)
  await expect
    .poll(() => page.tab.evaluate<boolean>(`document.querySelector(${select}) !== null`), DEADLINE)
    .toBe(true)
  await page.tab.evaluate(`(() => {
    const select = document.querySelector(${select})
    select.value = ${JSON.stringify(value)}
    select.dispatchEvent(new Event('change', { bubbles: true }))
  })()`)
}

beforeAll(async () => {
  if (!chromiumInstalled) return
  app = await application((workspace) => {
    for (const file of ['functions/channels.ts', 'functions/messages.ts', 'crons.ts']) {
      rmSync(join(workspace, file), { force: true })
    }
    write(workspace, 'one', FIRST_TABLES)
  })
  second = await release('two', FIRST_TABLES)
  third = await release('three', LAST_TABLES)
  page = await openConsole(app)
  await page.show('releases')
})

afterAll(async () => {
  await page?.close()
  await app?.installation.dispose()
})

const where = chromiumInstalled
  ? 'the page of Releases in headless Chromium'
  : 'the page of Releases in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  test('a dry run names what does not fit, and changes nothing', async () => {
    await page.sees(third)
    expect(await page.text()).not.toContain('\u202e')
    expect(await page.tab.evaluate('String(window.attacked)')).toBe('undefined')
    await choose('dry-run release', third)
    await page.sees(`svc release --release ${third} --against production`)
    // A change of another operator, which the page loads, leaves the form as it is.
    const root = argv`--remote --root ${app.installation.productRoot}`
    await app.svc(argv`promote ${root} --channel alpha --release ${app.releaseId} --expected empty`)
    await page.click('Reload')
    await page.sees('To alpha')
    await page.sees(`svc release --release ${third} --against production`)
    await page.click('Check')
    await page.sees('removed: old')
    await page.isAccessible('dry-run-failed')
    await choose('dry-run release', second)
    await page.click('Check')
    await page.sees('All checks passed. Nothing was changed.')
    await page.isAccessible('dry-run-passed')
    expect(await read('channel:production')).toBe('one')
  })

  test('a promotion moves the callers of a Channel', async () => {
    await page.click(`To production … ${second}`)
    await page.sees(`svc promote --channel production --release ${second} --expected`)
    await page.click('Promote')
    await page.sees(`Done: Promote ${second} to production`)
    await expect.poll(() => read('channel:production'), DEADLINE).toBe('two')
  })

  test('a promotion to a new name creates the Channel', async () => {
    await page.fill('[name="new channel"]', 'Not a name')
    await page.click('Create …')
    await page.sees('A name begins with a small letter')
    await page.isAccessible('new-channel')
    await page.fill('[name="new channel"]', 'production')
    await page.click('Create …')
    await page.sees('This Channel exists.')
    await page.fill('[name="new channel"]', 'staging')
    await choose('new channel release', app.releaseId)
    // A change of another operator, which the page loads, leaves the form as it is.
    const root = argv`--remote --root ${app.installation.productRoot}`
    await app.svc(argv`promote ${root} --channel beta --release ${second} --expected empty`)
    await page.click('Reload')
    await page.sees('To beta')
    await page.click('Create …')
    await page.sees(`svc promote --channel staging --release ${app.releaseId} --expected empty`)
    await page.click('Create the Channel')
    await page.sees('Done: Create the Channel staging')
    await expect.poll(() => read('channel:staging'), DEADLINE).toBe('one')
  })

  test('a canary gets the share of the slider, which the keyboard moves', async () => {
    const root = argv`--remote --root ${app.installation.productRoot}`
    await app.svc(argv`serve-policy set ${root} --releases ${app.releaseId}`)
    await expect.poll(() => read('environment:default'), DEADLINE).toBe('one')
    await page.click('Reload')
    await page.sees('Its share of the callers: 0 %')
    await choose('canary', second)
    await page.tab.evaluate(`document.querySelector('input[type=range]').focus()`)
    for (let i = 0; i < 5; i++) await page.tab.press('PageUp')
    await page.tab.press('ArrowRight')
    await page.sees('Its share of the callers: 51 %')
    // A change of another operator, which the page loads, leaves the form as it is.
    await app.svc(argv`promote ${root} --channel gamma --release ${second} --expected empty`)
    await page.click('Reload')
    await page.sees('To gamma')
    await page.sees('Its share of the callers: 51 %')
    await page.isAccessible('canary')
    await page.click('Set the shares …')
    await page.sees(`${second}=5100`)
    await page.click('Replace the policy')
    await page.sees('Done: Replace the serving policy')
    await page.sees('51 %')
    await page.sees('in force since')
    // The shares are of all callers. Of a hundred, some get each Release.
    await expect
      .poll(async () => Object.keys(await shares()).toSorted(), DEADLINE)
      .toEqual(['one', 'two'])
    const { one = 0, two = 0 } = await shares()
    expect([one > 20, two > 20]).toEqual([true, true])

    await page.tab.evaluate(`document.querySelector('input[type=range]').focus()`)
    await page.tab.press('End')
    await page.sees('Its share of the callers: 100 %')
    await page.click('Set the shares …')
    await page.sees(`${second} answers 100 % of the callers.`)
    await page.sees(`${app.releaseId} answers no caller of environment:default.`)
    await page.click('Replace the policy')
    await expect.poll(shares, DEADLINE).toEqual({ two: 100 })
  })

  test('a Release that nothing uses is retired, and cannot be called any more', async () => {
    expect(await read(`release:${third}`)).toBe('three')
    // The head of a Workspace is in use.
    await release('four', LAST_TABLES)
    await page.click('Reload')
    await page.click(`Retire … ${third}`)
    await page.sees('Its code is never served again')
    await page.isAccessible('retire')
    await page.click('Retire the Release')
    await page.sees(`Done: Retire the Release ${third}`)
    expect(await read(`release:${third}`)).toBe(undefined)
    const label = JSON.stringify(`[aria-label="Retire … ${third}"]`)
    const button = `document.querySelector(${label}) === null`
    await expect.poll(() => page.tab.evaluate<boolean>(button), DEADLINE).toBe(true)
  })
})
