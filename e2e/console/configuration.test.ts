/**
 * The configuration in the console: variables and secrets are set, replaced and deleted.
 *
 * @module-tag slow
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { type Application, application, type Json } from '../application.ts'
import { argv } from '../argv.ts'
import { type ConsolePage, openConsole } from './console-page.ts'

const MARKUP = '<img src=x onerror="window.attacked=1">'
const BIDIRECTIONAL = 'safe\u202egnp.exe'
const SECRETS = ['first secret of this test', 'second secret of this test'] as const

const FUNCTIONS = `import { action, query, v } from 'svc'
export const greeting = query({
  clients: ['confidential'],
  arguments: {},
  returns: v.nullable(v.string()),
  handler: (ctx) => ctx.config.variable('GREETING'),
})
export const length = action({
  clients: ['confidential'],
  arguments: {},
  returns: v.string(),
  uses: { secrets: ['API_KEY'] },
  handler: async (ctx) => String((await ctx.config.secret('API_KEY')).length),
})
`

let app: Application
let page: ConsolePage
let root: readonly string[]

beforeAll(async () => {
  if (!chromiumInstalled) return
  app = await application((workspace) => {
    writeFileSync(join(workspace, 'functions/settings.ts'), FUNCTIONS)
  })
  root = argv`--root ${app.installation.productRoot}`
  page = await openConsole(app)
})

afterAll(async () => {
  await page?.close()
  await app?.installation.dispose()
})

async function resultOf(name: string): Promise<Json> {
  const response = await fetch(`${app.server.application}/v1/functions/${name}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-service-key': app.key,
      'x-service-target': 'channel:production',
    },
    body: '{}',
  })
  return (await response.json()).result
}

async function entryOf(name: string): Promise<Json> {
  const { entries } = await app.svc(argv`config list ${root}`)
  return entries.find((each: Json) => each.name === name)
}

const choose = (kind: string): Promise<void> =>
  page.tab.evaluate(`(() => {
    const select = document.querySelector('select[name=kind]')
    select.value = ${JSON.stringify(kind)}
    select.dispatchEvent(new Event('change', { bubbles: true }))
  })()`)

/** Everything that the page holds: its document, fields, address and storage. */
const held = (): Promise<string> =>
  page.tab.evaluate(`JSON.stringify([document.documentElement.outerHTML, location.href,
    [...document.querySelectorAll('input, textarea')].map(({ value }) => value),
    { ...localStorage }, { ...sessionStorage }])`)

const where = chromiumInstalled
  ? 'the configuration in the console in headless Chromium'
  : 'the configuration in the console in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  test('a variable is set, and replaced after a question', async () => {
    await page.show('configuration')
    await page.sees('There is no variable and no secret yet.')
    await page.sees('Nothing was changed yet.')
    await page.isAccessible('configuration-empty')
    await page.fill('input[name=name]', 'GREETING')
    await page.fill('textarea[name=value]', 'hello')
    await page.click('Set')
    await page.sees('Set the variable GREETING')
    await expect.poll(() => resultOf('settings.greeting')).toBe('hello')
    await page.click('GREETING')
    await page.sees('All values')
    await page.fill('textarea[name=value]', 'two\n lines ')
    await page.click('Replace …')
    await page.sees('svc config set GREETING --value-env VAR --expected 1')
    await page.isAccessible('configuration-question')
    await page.click('Cancel')
    expect(await resultOf('settings.greeting')).toBe('hello')
    await page.click('Replace …')
    await page.click('Replace the variable')
    await page.sees('Done: Replace the variable GREETING')
    expect(await resultOf('settings.greeting')).toBe('two\n lines ')
  })

  test('a secret is sent from a password field, and nothing shows it afterwards', async () => {
    await page.show('configuration')
    await page.sees('New variable or secret')
    await choose('secret')
    await page.fill('input[name=name]', 'API_KEY')
    await page.fill('input[type=password]', SECRETS[0])
    await page.isAccessible('configuration-secret')
    await page.click('Set')
    await page.sees('Set the secret API_KEY')
    await page.sees('sealed, never shown')
    await expect.poll(() => resultOf('settings.length')).toBe(String(SECRETS[0].length))
    expect(await held()).not.toContain(SECRETS[0])
    await page.isAccessible('configuration')

    await page.click('API_KEY')
    await page.sees('The value is sealed.')
    await page.fill('input[type=password]', SECRETS[1])
    await page.click('Replace …')
    await page.sees('svc config set API_KEY --secret --value-env VAR --expected 3')
    expect(await page.text()).not.toContain(SECRETS[1])
    await page.click('Replace the secret')
    await page.sees('Done: Replace the secret API_KEY')
    expect(await resultOf('settings.length')).toBe(String(SECRETS[1].length))
    await expect.poll(held).not.toContain(SECRETS[1])
    await page.isAccessible('configuration-one')
    const { stdout: log } = await app.installation.svc(argv`logs ${root} --limit 1000 --json`)
    expect(log).toContain('API_KEY')
    for (const secret of SECRETS) {
      expect(log).not.toContain(secret)
      expect(page.printed()).not.toContain(secret)
    }
  })

  test('a secret of several lines is not cut to one', async () => {
    const paste = (text: string): Promise<boolean> =>
      page.tab.evaluate(`(() => {
        const clipboardData = new DataTransfer()
        clipboardData.setData('text', ${JSON.stringify(text)})
        const event = new ClipboardEvent('paste',
          { clipboardData, bubbles: true, cancelable: true })
        return document.querySelector('input[type=password]').dispatchEvent(event)
      })()`)
    expect(await paste('-----BEGIN KEY-----\nabc\n')).toBe(false)
    await page.sees('This field holds one line.')
    await page.sees('svc config set API_KEY --secret < FILE')
    expect(await paste('one line\n')).toBe(true)
    await expect.poll(() => page.text()).not.toContain('This field holds one line.')
  })

  test('a change of another operator is not overwritten unseen', async () => {
    await page.show('configuration?name=GREETING')
    await page.sees('All values')
    await app.svc(argv`config set GREETING theirs ${root}`)
    await page.fill('textarea[name=value]', 'mine')
    await page.click('Replace …')
    await page.click('Replace the variable')
    await page.sees('PRODUCT_CAS_CONFLICT')
    await page.sees('Reload, see in the history what was changed')
    expect((await entryOf('GREETING')).value).toBe('theirs')
    await page.click('Cancel')
    await page.click('Reload')
    const shown = `document.querySelector('textarea').value`
    await expect.poll(() => page.tab.evaluate(shown)).toBe('theirs')
  })

  test('a name keeps its type, and its value is replaced after a question', async () => {
    await page.show('configuration')
    await page.sees('New variable or secret')
    await page.fill('input[name=name]', 'API_KEY')
    await page.fill('textarea[name=value]', 'a')
    await page.click('Set')
    await page.sees('API_KEY is a secret, and a name keeps its type.')
    await page.fill('input[name=name]', 'GREETING')
    await page.click('Set')
    await page.sees('Replace the variable GREETING?')
    await page.sees('svc config set GREETING a --expected 5')
    await page.click('Cancel')
    expect((await entryOf('GREETING')).value).toBe('theirs')
  })

  test('values are shown as text: markup, and controls that no field hides', async () => {
    await app.svc(argv`config set MARKUP ${MARKUP} ${root}`)
    await app.svc(argv`config set HIDDEN ${BIDIRECTIONAL} ${root}`)
    await page.click('Reload')
    await page.sees(MARKUP)
    await page.sees('safe\\u{202e}gnp.exe')
    expect(await page.text()).not.toContain('\u202e')
    expect(await page.tab.evaluate('String(window.attacked)')).toBe('undefined')
    expect(await page.tab.evaluate(`document.querySelectorAll('main img').length`)).toBe(0)
    await page.isAccessible('configuration-markup')
    await page.click('HIDDEN')
    await page.sees('All values')
    const field = `document.querySelector('textarea').value`
    expect(await page.tab.evaluate(field)).toBe('')
    await page.sees('safe\\u{202e}gnp.exe')
    await page.isAccessible('configuration-hidden')
  })

  test('a secret is deleted after a question, and the history has every change', async () => {
    await page.show('configuration?name=API_KEY')
    await page.sees('The value is sealed.')
    await page.click('Delete …')
    await page.sees('svc config unset API_KEY --expected 7')
    await page.click('Cancel')
    expect(await entryOf('API_KEY')).toBeDefined()
    await page.click('Delete …')
    await page.click('Delete the secret')
    await page.sees('Done: Delete the secret API_KEY')
    expect(await entryOf('API_KEY')).toBeUndefined()
    const rows = `[...document.querySelectorAll('[aria-label=History] tbody tr')]
      .map((row) => [...row.children].slice(0, 3).map((cell) => cell.innerText).join(' '))`
    await expect
      .poll(() => page.tab.evaluate<string[]>(rows))
      .toEqual([
        '8 delete API_KEY',
        '7 set HIDDEN',
        '6 set MARKUP',
        '5 set GREETING',
        '4 set API_KEY',
        '3 set API_KEY',
        '2 set GREETING',
        '1 set GREETING',
      ])
    const by = `document.querySelector('[aria-label=History] td a')?.innerText`
    await expect.poll(() => page.tab.evaluate<string>(by)).toBe('owner')
  })
})
