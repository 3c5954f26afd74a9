/**
 * Backups and the doctor in the console, against the compiled server.
 *
 * @module-tag slow
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { type Application, application, type Json } from '../application.ts'
import { argv } from '../argv.ts'
import { type ConsolePage, openConsole } from './console-page.ts'

let directory: string
let app: Application
let page: ConsolePage

const remote = () => argv`--remote --root ${app.installation.productRoot}`
const backups = async (): Promise<Json[]> => (await app.svc(argv`backup list ${remote()}`)).items

beforeAll(async () => {
  if (!chromiumInstalled) return
  directory = mkdtempSync(join(tmpdir(), 'svc-console-'))
  mkdirSync(join(directory, 'target'))
  app = await application(undefined, {
    SERVICE_BACKUP_RECIPIENTS: await identityToRecipient(await generateX25519Identity()),
    SERVICE_BACKUP_DIRECTORY: join(directory, 'target'),
  })
  page = await openConsole(app)
})

afterAll(async () => {
  await page?.close()
  await app?.installation.dispose()
  if (directory !== undefined) rmSync(directory, { recursive: true })
})

const where = chromiumInstalled
  ? 'backups and the doctor in headless Chromium'
  : 'backups and the doctor in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  test('an operator sees up to when the Environment can be restored', async () => {
    await page.show('backups')
    await page.sees('Restorable up to')
    await expect.poll(page.text, { timeout: 120_000 }).toMatch(/every commit is in a backup/)
    await page.sees('healthy')
    await page.click('Check recipients, target and rehearsal')
    await page.sees('1 recipient can open backups')
    await page.sees('svc backup download')
  })

  test('an operator makes a backup, and sees its figures', async () => {
    const before = new Set((await backups()).map(({ backupId }) => backupId))
    await page.click('Make a backup …')
    await page.sees('svc backup create')
    await page.isAccessible('question-backup')
    await page.click('Make the backup')
    await expect
      .poll(async () => (await backups()).find(({ backupId }) => !before.has(backupId))?.state, {
        timeout: 120_000,
      })
      .toBe('complete')
    const made = (await backups()).find(({ backupId }) => !before.has(backupId))
    const row = `[...document.querySelectorAll('main tbody tr')].find((each) =>
      each.innerText.includes(${JSON.stringify(made.backupId)}))?.innerText ?? ''`
    await expect
      .poll(() => page.tab.evaluate<string>(row), { timeout: 120_000 })
      .toContain('complete')
    const text = await page.tab.evaluate<string>(row)
    expect(text).toContain(Number(made.sequence).toLocaleString('en-US'))
    expect(text).toContain('requested')
    await page.sees(`svc backup download ${made.backupId} --out backup.tar`)
    await page.isAccessible('backups')
  })

  test('a request cannot name another recipient than the settings', async () => {
    const other = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'
    await page.fill('input[name=recipients]', other)
    await page.click('Make a backup …')
    await page.sees(`--recipient ${other}`)
    await page.click('Make the backup')
    await page.sees('PRODUCT_INVALID')
    await page.click('Cancel')
  })

  test('the audit names the backup of the console', async () => {
    await page.show('audit?operation=product.backup.create')
    await page.sees('product.backup.create')
    const purposes = `[...document.querySelectorAll('main tbody tr')].map((each) =>
      each.children[4].innerText)`
    expect(await page.tab.evaluate(purposes)).toEqual(['console'])
  })

  test('the doctor shows each check of the server, problems first', async () => {
    await page.show('doctor')
    await page.sees('backup-recipients')
    const { checks } = await app.svc(argv`doctor ${remote()}`)
    const text = await page.text()
    for (const { name } of checks) expect(text).toContain(name)
    const statuses = await page.tab.evaluate<string[]>(
      `[...document.querySelectorAll('main .log .badge')].map((each) => each.innerText)`,
    )
    const order = ['failed', 'warning', 'ok', 'skipped']
    const positions = statuses.map((each) => order.indexOf(each))
    expect(positions).toEqual(positions.toSorted((a, b) => a - b))
    expect(statuses).toHaveLength(checks.length)
    await page.isAccessible('doctor')
  })
})
