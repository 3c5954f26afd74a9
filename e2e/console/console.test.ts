/**
 * The console in a browser, against the compiled server: a story for each page.
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

const MARKUP = '<img src=x onerror="window.attacked=1"><script>window.attacked=2</script>'
const BIDIRECTIONAL = 'safe\u202egnp.exe'
const LONG = 'x'.repeat(1_000_000)

const SCHEMA = `import { defineSchema, table, v } from 'svc'
export default defineSchema({
  notes: table({ title: v.string(), text: v.string() }).index('byTitle', ['title']),
})
`
const functions = (reply: string): string => `import { mutation, query, v } from 'svc'
export const add = mutation({
  clients: ['confidential'],
  arguments: { title: v.string(), text: v.string() },
  returns: v.id('notes'),
  handler: (ctx, note) => ctx.db.insert('notes', note),
})
export const fail = query({
  clients: ['confidential'],
  arguments: { name: v.string() },
  returns: v.string(),
  handler: (ctx, { name }) => {
    if (name !== '') throw new Error('cannot greet ' + name)
    return '${reply}'
  },
})
`

let app: Application
let page: ConsolePage

async function invoke(name: string, given: object): Promise<Json> {
  const response = await fetch(`${app.server.application}/v1/functions/${name}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-service-key': app.key,
      'x-service-target': 'channel:production',
    },
    body: JSON.stringify(given),
  })
  return response.json()
}

function write(workspace: string, reply: string): void {
  writeFileSync(join(workspace, 'functions/notes.ts'), functions(reply))
}

beforeAll(async () => {
  if (!chromiumInstalled) return
  app = await application((workspace) => {
    write(workspace, 'one')
    for (const file of ['functions/channels.ts', 'functions/messages.ts', 'crons.ts']) {
      rmSync(join(workspace, file), { force: true })
    }
    writeFileSync(join(workspace, 'schema.ts'), SCHEMA)
  })
  page = await openConsole(app)
})

afterAll(async () => {
  await page?.close()
  await app?.installation.dispose()
})

const where = chromiumInstalled
  ? 'the console in headless Chromium'
  : 'the console in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  test('the overview shows health, and calls as they come', async () => {
    await page.sees('runtime')
    await page.sees('99th percentile')
    await invoke('notes.fail', { name: '' })
    const succeeded = `[...document.querySelectorAll('tr')].find((row) =>
      row.innerText.startsWith('Queries'))?.children[1]?.innerText`
    await expect.poll(() => page.tab.evaluate(succeeded)).toBe('1')
    await page.isAccessible('overview')
  })

  test('an operator finds the line of the source that failed, and its request', async () => {
    await invoke('notes.fail', { name: MARKUP })
    await page.show('functions')
    await page.click('notes.fail')
    await page.sees(`cannot greet ${MARKUP}`)
    await page.sees('functions/notes.ts:')
    await page.isAccessible('functions')
    await page.click('Records of the request')
    await page.sees('Records of one request')
    await page.sees('cannot greet')
  })

  test('the log shows new records while the operator follows it', async () => {
    await page.show('logs?level=warn&text=follower')
    await page.sees('No record matches the filter.')
    await page.tab.evaluate(`document.querySelector('input[type=checkbox]').click()`)
    await expect
      .poll(async () => {
        await invoke('notes.fail', { name: 'follower' })
        return page.text()
      })
      .toContain('cannot greet follower')
    await page.isAccessible('logs')
  })

  test('stored values are shown as text: markup, bidirectional controls, 1 MB', async () => {
    await invoke('notes.add', { title: MARKUP, text: BIDIRECTIONAL })
    await invoke('notes.add', { title: 'long', text: LONG })
    await page.show('data?target=channel:production&table=notes')
    await page.sees(MARKUP)
    await page.sees('safe\\u{202e}gnp.exe')
    await page.sees('… (1,000,000 characters)')
    expect(await page.text()).not.toContain('\u202e')
    expect(await page.tab.evaluate('String(window.attacked)')).toBe('undefined')
    expect(await page.tab.evaluate(`document.querySelectorAll('main img').length`)).toBe(0)
    await page.isAccessible('data')
  })

  test('an operator repairs a document, and deletes one after a question', async () => {
    const { result: noteId } = await invoke('notes.add', { title: 'wrong', text: 'a' })
    await page.show(`data?target=channel:production&table=notes&document=${noteId}`)
    await page.sees('Fields as JSON')
    await page.fill('textarea', '{"title":"right","text":"\\u202e"}')
    await page.click('Save')
    await page.sees(`Saved ${noteId}`)
    const at = argv`--root ${app.installation.productRoot} --target channel:production`
    const { document } = await app.svc(argv`data get notes ${noteId} ${at}`)
    expect(JSON.stringify(document)).toContain('right')

    await page.fill('textarea', '{"title":1}')
    await page.click('Save')
    await page.sees('does not fit its validator')
    await page.isAccessible('document')

    await page.click('Delete …')
    await page.sees(`svc data delete notes ${noteId} --target channel:production --expected`)
    await page.isAccessible('question')
    await page.click('Cancel')
    await app.svc(argv`data get notes ${noteId} ${at}`)
    await page.click('Delete …')
    await page.click('Delete the document')
    await page.sees('Documents of notes')
    await expect(app.svc(argv`data get notes ${noteId} ${at}`)).rejects.toThrow()
  })

  test('an operator rolls a Channel back', async () => {
    write(app.installation.workspace, 'two')
    const root = argv`--remote --root ${app.installation.productRoot}`
    const { releaseId } = await app.svc(argv`release ${root} --channel production --no-typecheck`)
    expect((await invoke('notes.fail', { name: '' })).result).toBe('two')
    await page.show('releases')
    await page.sees(releaseId)
    await page.isAccessible('releases')
    await page.tab.emulate({ width: 360, scheme: 'light' })
    const hidden = `[...document.querySelectorAll('td button')].filter((each) =>
      each.getBoundingClientRect().right > 360).length`
    await expect.poll(() => page.tab.evaluate<number>(hidden)).toBe(0)
    await page.tab.emulate({ width: 1440, scheme: 'light' })
    await page.click('Roll back … production')
    await page.sees(`${app.releaseId} in place of ${releaseId}`)
    await page.click('Roll back')
    await page.sees('Done: Roll the Channel production back')
    await expect.poll(async () => (await invoke('notes.fail', { name: '' })).result).toBe('one')
  })

  test('every control of the page is reached with the keyboard', async () => {
    await page.show('logs')
    await page.sees('Lowest level')
    await page.tab.evaluate(`document.querySelector('.skip').focus()`)
    const controls = await page.tab.evaluate<number>(
      `document.querySelectorAll('header select, nav a, main form select, main input').length`,
    )
    const reached = new Set<string>()
    for (let i = 0; i < controls + 10; i++) {
      await page.tab.tabulate()
      reached.add(
        await page.tab.evaluate<string>(
          `document.activeElement.name || document.activeElement.innerText`,
        ),
      )
    }
    for (const name of ['Overview', 'Data', 'level', 'stream', 'function', 'request', 'text']) {
      expect([...reached]).toContain(name)
    }
  })

  test('the page has no token and asks no other host', async () => {
    const { sessions } = await app.svc(argv`sessions`)
    const derived = sessions.filter(({ purpose }: Json) => purpose === 'console')
    expect(derived).toHaveLength(1)
    expect(await page.tab.evaluate('document.cookie')).toBe('')
    const kept = 'JSON.stringify([{ ...localStorage }, { ...sessionStorage }])'
    expect(await page.tab.evaluate(kept)).toBe('[{},{}]')
    const hosts = `[...new Set(performance.getEntriesByType('resource').map(({ name }) =>
      new URL(name).host))].join()`
    expect(await page.tab.evaluate(hosts)).toBe(new URL(page.url).host)
  })

  test('a start URL that was used gives another browser nothing, and ends the page', async () => {
    const other = await page.browser.open(page.url)
    await expect
      .poll(() => other.evaluate<string>('document.body.innerText'))
      .toContain('This address was used before')
    await page.show('releases')
    await page.sees('The console does not answer')
  })

  test('the derived session ends with the command', async () => {
    expect(await page.end()).toBe(130)
    const { sessions } = await app.svc(argv`sessions`)
    expect(sessions.filter(({ purpose }: Json) => purpose === 'console')).toEqual([])
  })
})
