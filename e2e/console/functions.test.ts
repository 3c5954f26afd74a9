/** The form that runs a Function, in a browser against the compiled server. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { type Application, application, type Json } from '../application.ts'
import { argv } from '../argv.ts'
import { type ConsolePage, openConsole } from './console-page.ts'

const MARKUP = '<img src=x onerror="window.attacked=1">'
const BIDIRECTIONAL = 'safe\u202egnp.exe'
const TARGET = 'channel:production'

const SCHEMA = `import { defineSchema, table, v } from 'svc'
export default defineSchema({ notes: table({ title: v.string() }).index('byTitle', ['title']) })
`
const FUNCTIONS = `import { action, internalMutation, mutation, query, v } from 'svc'
import { internal } from '../_generated/api'
const kind = v.union(v.literal('${MARKUP}'), v.literal('plain'))
export const echo = query({
  clients: ['confidential'],
  arguments: {
    title: v.string({ maximumLength: 100 }),
    count: v.int64({ minimum: 1n }),
    ratio: v.float64(),
    flag: v.boolean(),
    kind,
    nothing: v.null(),
    note: v.optional(v.id('notes')),
    bytes: v.bytes(),
    either: v.union(v.string(), v.int64()),
    list: v.array(v.object({ a: v.int64() })),
  },
  returns: v.any(),
  handler: (_, given) => given,
})
export const add = mutation({
  clients: ['confidential'],
  arguments: { title: v.string({ minimumLength: 1 }) },
  returns: v.id('notes'),
  errors: { TITLE_TAKEN: 'conflict' },
  handler: async (ctx, { title }) => {
    if (title === 'taken') return ctx.fail('TITLE_TAKEN')
    return await ctx.db.insert('notes', { title })
  },
})
export const titles = query({
  clients: ['confidential'],
  arguments: {},
  returns: v.array(v.string()),
  handler: async (ctx) => {
    const notes = await ctx.db.table('notes').index('byTitle').take(100)
    return notes.map(({ title }) => title)
  },
})
export const hidden = internalMutation({
  arguments: {},
  returns: v.null(),
  handler: async (ctx) => {
    await ctx.db.insert('notes', { title: 'hidden' })
    return null
  },
})
export const send = action({
  clients: ['confidential'],
  arguments: {},
  returns: v.string(),
  handler: async (ctx) => {
    await ctx.runMutation(internal.forms.hidden, {})
    return 'sent'
  },
})
export const mine = query({
  clients: ['confidential'],
  auth: 'user',
  arguments: {},
  returns: v.null(),
  handler: () => null,
})
`

let app: Application
let page: ConsolePage

async function titles(): Promise<string[]> {
  const response = await fetch(`${app.server.application}/v1/functions/forms.titles`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-service-key': app.key,
      'x-service-target': TARGET,
    },
    body: '{}',
  })
  return ((await response.json()) as Json).result
}

const count = async (title: string): Promise<number> =>
  (await titles()).filter((each) => each === title).length

async function show(name: string): Promise<void> {
  await page.show(`functions?target=${TARGET}&function=forms.${name}`)
  await page.sees(`forms.${name}`)
  await expect
    .poll(() => page.tab.evaluate(`document.querySelector('section[aria-label="Run"]') !== null`))
    .toBe(true)
}

/** Chooses an option, as a person does. */
async function choose(name: string, index: number): Promise<void> {
  await page.tab.evaluate(`(() => {
    const select = document.querySelector('select[name="choice ${name}"]')
    select.value = '${index}'
    select.dispatchEvent(new Event('change', { bubbles: true }))
  })()`)
}

const fill = (name: string, text: string): Promise<void> =>
  page.fill(`[name="argument ${name}"]`, text)

const check = (name: string): Promise<void> =>
  page.tab.evaluate(`document.querySelector('input[name="${name}"]').click()`)

/** The result that the page shows, as JSON. */
async function result(): Promise<Json> {
  const open = `document.querySelector('[aria-label="Result of the run"]')?.innerText ?? ''`
  await expect.poll(() => page.tab.evaluate<string>(open), { timeout: 120_000 }).not.toBe('')
  return JSON.parse(await page.tab.evaluate<string>(open))
}

beforeAll(async () => {
  if (!chromiumInstalled) return
  app = await application((workspace) => {
    for (const file of ['functions/channels.ts', 'functions/messages.ts', 'crons.ts']) {
      rmSync(join(workspace, file), { force: true })
    }
    writeFileSync(join(workspace, 'functions/forms.ts'), FUNCTIONS)
    writeFileSync(join(workspace, 'schema.ts'), SCHEMA)
  })
  page = await openConsole(app)
})

afterAll(async () => {
  await page?.close()
  await app?.installation.dispose()
})

const where = chromiumInstalled
  ? 'the form of a Function in headless Chromium'
  : 'the form of a Function in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  test('a Query runs with an argument of each type, and its result is plain JSON', async () => {
    await show('echo')
    await fill('title', `${MARKUP} ${BIDIRECTIONAL}`)
    await fill('count', '9223372036854775807')
    await fill('ratio', '-0.5')
    await choose('flag', 1)
    await choose('kind', 0)
    await check('absent note')
    await fill('note', 'notes_00000000000000000000000001')
    await fill('bytes', 'AAE')
    await choose('either', 1)
    await fill('either', '5')
    await fill('list', '[{"a":"2"}]')
    await page.isAccessible('run-query')
    await page.click('Run')
    expect(await result()).toEqual({
      title: `${MARKUP} ${BIDIRECTIONAL}`,
      count: { type: 'int64', value: '9223372036854775807' },
      ratio: -0.5,
      flag: true,
      kind: MARKUP,
      nothing: null,
      note: 'notes_00000000000000000000000001',
      bytes: { type: 'bytes', value: 'AAE' },
      either: { type: 'int64', value: '5' },
      list: [{ a: { type: 'int64', value: '2' } }],
    })
    expect(await page.text()).not.toContain('\u202e')
    expect(await page.tab.evaluate('String(window.attacked)')).toBe('undefined')
    await page.isAccessible('run-result')
  })

  test('the catalog shows calls, failures and percentiles of each Function, or none', async () => {
    for (let i = 0; i < 4; i++) await titles()
    await page.show(`functions?target=${TARGET}`)
    await page.sees('Durations are those of executed calls')
    const cells = (name: string) =>
      page.tab.evaluate<string[]>(
        `[...document.querySelectorAll('[aria-label="Functions"] tbody tr')]
          .filter((row) => row.cells[0].innerText.includes('forms.${name}'))
          .flatMap((row) => [...row.cells].slice(2, 8).map((cell) => cell.innerText))`,
      )
    await expect.poll(async () => Number((await cells('titles'))[0])).toBeGreaterThanOrEqual(4)
    const [, rejected, failed, ...percentiles] = await cells('titles')
    expect([rejected, failed]).toEqual(['0', '0'])
    for (const each of percentiles) expect(each).toMatch(/^[0-9.]+ (µs|ms|s)$/)
    expect(await cells('mine')).toEqual(['–', '–', '–', '–', '–', '–'])
    await page.isAccessible('function-figures')
  })

  test('arguments that do not fit are named at their fields, and nothing is sent', async () => {
    await show('titles')
    await show('echo')
    await fill('title', 'x'.repeat(101))
    await fill('count', '0')
    await fill('list', '[{"a":1},{}]')
    await page.click('Run')
    await page.sees('Nothing was sent.')
    const named = `[...document.querySelectorAll('fieldset.argument')].flatMap((field) =>
      field.querySelector('.violation') === null ? [] : [field.querySelector('strong').innerText])`
    expect(await page.tab.evaluate<string[]>(named)).toEqual(['count', 'list', 'ratio', 'title'])
    await page.isAccessible('run-violations')
  })

  test('all arguments can be written as JSON, which keeps what the fields hold', async () => {
    await show('titles')
    await show('add')
    await fill('title', 'from the field')
    await check('json')
    await page.sees('Arguments as JSON')
    const text = () => page.tab.evaluate<string>(`document.querySelector('[name=arguments]').value`)
    await expect.poll(text).toContain('from the field')
    await page.fill('[name=arguments]', '{"title":"from JSON"}')
    await check('json')
    const field = `document.querySelector('[name="argument title"]')?.value`
    await expect.poll(() => page.tab.evaluate(field)).toBe('from JSON')
  })

  test('a Mutation asks, names the command, and two clicks at once run it once', async () => {
    await show('titles')
    await show('add')
    await fill('title', `it's "${MARKUP}"`)
    await page.click('Run …')
    await page.sees('Run the Mutation forms.add?')
    await page.sees(`--operator --target ${TARGET}`)
    await page.isAccessible('run-question')
    // A question that follows at once is not closed with the one before it.
    await page.tab.evaluate(`(() => {
      document.querySelector('dialog[open] button:not(.danger)').click()
      document.querySelector('form button[type=submit]').click()
    })()`)
    expect(await titles()).toEqual([])
    await page.sees('Run the Mutation forms.add?')
    await page.tab.evaluate(`(() => {
      const button = document.querySelector('dialog[open] button.danger')
      button.click()
      button.click()
    })()`)
    expect(await result()).toMatch(/^notes_/)
    expect(await titles()).toEqual([`it's "${MARKUP}"`])
  })

  test('a Mutation whose response was lost is repeated as the same operation', async () => {
    await show('titles')
    await show('add')
    await fill('title', 'lost')
    await page.tab.evaluate(`void (() => {
      const original = window.fetch
      window.fetch = async (...given) => {
        const response = await original(...given)
        if (!String(given[0]).includes('invokeFunction')) return response
        window.fetch = original
        throw new TypeError('lost')
      }
    })()`)
    await page.click('Run …')
    await page.click('Run it')
    await page.sees('It may have taken effect.')
    await page.isAccessible('run-uncertain')
    expect(await count('lost')).toBe(1)
    await page.click('Run …')
    await page.click('Run it')
    await page.sees('the result of the first run of this operation')
    expect(await count('lost')).toBe(1)
    // A run after the result is known is another operation.
    await page.click('Run …')
    await page.click('Run it')
    await expect.poll(() => count('lost')).toBe(2)
  })

  test('a failure has its code and leads to the records of the request', async () => {
    await show('titles')
    await show('add')
    await fill('title', 'taken')
    await page.click('Run …')
    await page.click('Run it')
    await page.sees('TITLE_TAKEN')
    expect(await count('taken')).toBe(0)
    await page.isAccessible('run-failure')
    await page.click('Records of the request')
    await page.sees('Records of one request')
  })

  test('an Action and an internal Mutation run, and are audited as the operator', async () => {
    await show('send')
    await page.click('Run …')
    await page.sees('cannot be undone')
    await page.click('Run it')
    expect(await result()).toBe('sent')
    await show('hidden')
    await page.click('Run …')
    await page.click('Run it')
    expect(await result()).toBe(null)
    expect(await count('hidden')).toBe(2)
    const root = argv`--remote --root ${app.installation.productRoot}`
    const logs = await app.installation.svc(argv`logs ${root} --stream audit --json`)
    expect(logs.stdout).toContain('product.function.invoke')
  })

  test('a Function that requires an identity says why an operator cannot run it', async () => {
    await show('mine')
    await page.sees('requires an identity (user)')
  })

  test('the form is used with the keyboard alone', async () => {
    await show('titles')
    await page.tab.evaluate(`document.querySelector('input[name=json]').focus()`)
    await page.tab.tabulate()
    expect(await page.tab.evaluate('document.activeElement.innerText')).toBe('Run')
    await page.tab.enter()
    expect(await result()).toContain('lost')
  })
})
