/**
 * Every page of the console with hostile texts in every field that others fill, as text.
 *
 * @module-tag slow
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Activity, chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { argv } from '../argv.ts'
import type { ConsolePage } from './console-page.ts'
import {
  BRANCH,
  type HostileWorld,
  hostile,
  hostileWorld,
  LONG_CHARACTERS,
  MEDIA_TYPE,
  visible,
  visibleJson,
  WHOLE,
} from './hostile-values.ts'

/** A place where the console shows texts that others chose. */
interface Row {
  /** The page of PAGES; empty for the overview. */
  readonly page: string
  /** The address with its parameters. */
  readonly at: (world: HostileWorld) => string
  /** The texts as the page shows them. */
  readonly sees: readonly string[]
}

const TARGET = 'target=channel:production'
const LONG = `(${LONG_CHARACTERS.toLocaleString('en-US')} characters)`
const row = (page: string, at: Row['at'], sees: readonly string[]): Row => ({ page, at, sees })

/** The fields that a stranger, a developer or another operator fills, by where they are shown. */
const ROWS: readonly Row[] = [
  row('', () => '', [visible('environment')]),
  row('functions', () => `functions?${TARGET}`, ['hostile.fail']),
  row('functions', () => `functions?${TARGET}&function=hostile.fail`, [visible('error'), ...WHOLE]),
  row('functions', () => `functions?${TARGET}&function=hostile.echo`, [
    visible('choice'),
    visible('default'),
  ]),
  row('functions', () => `functions?${TARGET}&function=hostile.note`, [visible('log')]),
  row('logs', () => 'logs', [visible('error'), visible('scheduled'), ...WHOLE]),
  row('logs', ({ requestId }) => `logs?request=${requestId}`, [
    visible('log'),
    visible('field'),
    `${visible('log')}\nnext line`,
  ]),
  row('data', () => `data?${TARGET}&table=items`, [
    visible('document'),
    visible('field'),
    visible('optional'),
    visible('list'),
    visible('literal'),
    visible('any'),
    LONG,
    ...WHOLE,
  ]),
  row('data', () => `data?${TARGET}&table=items&index=byText&order=asc`, [visible('document')]),
  row('data', ({ documentIds }) => `data?${TARGET}&table=items&document=${documentIds[0]}`, [
    visibleJson('document'),
    visibleJson('inner'),
    visibleJson('map'),
    visibleJson('key'),
  ]),
  row('releases', () => 'releases', [visible('message'), BRANCH.replace('\u202e', '\\u{202e}')]),
  row('schedules', () => 'schedules', ['constructor', 'FUNCTION_FAILED']),
  row('schedules', () => 'logs?function=hostile.work', [visible('cron'), visible('scheduled')]),
  row('files', () => 'files', ['uploads']),
  row('files', ({ bucketId }) => `files?bucket=${bucketId}`, [
    visible('key'),
    visible('storage'),
    MEDIA_TYPE,
    ...WHOLE,
  ]),
  row('files', ({ bucketId }) => object(bucketId, hostile('key')), [visible('key'), MEDIA_TYPE]),
  row('files', ({ bucketId }) => object(bucketId, '__proto__'), ['__proto__', MEDIA_TYPE]),
  row('clients', () => 'clients', [visible('client'), ...WHOLE]),
  row('clients', ({ clientId }) => `clients?client=${clientId}`, [
    visible('client'),
    visible('credential'),
    ...WHOLE,
  ]),
  row('configuration', () => 'configuration', [visible('variable'), ...WHOLE]),
  row('configuration', () => 'configuration?name=V0', [visible('variable')]),
  row('configuration', () => 'configuration?name=V6', [WHOLE[5]!]),
  row('http', () => 'http', ['main']),
  row('http', () => 'http?mount=main', [visible('event'), visible('failure'), ...WHOLE]),
  row('http', ({ deliveryIds }) => `http?mount=main&delivery=${deliveryIds[0]}`, [
    visible('event'),
    visible('failure'),
    visible('parameter'),
    visible('query'),
    'agent<img src=x onerror=window.attacked=1>',
    'header<img src=x onerror=window.attacked=1>',
    // The body is JSON, which a stranger wrote without escapes.
    visible('body'),
  ]),
  row('backups', () => 'backups', [visible('environment')]),
  row('doctor', () => 'doctor', [visible('environment')]),
  row('operators', () => 'operators', [visible('operator'), visible('environment'), WHOLE[0]!]),
  row('operators', ({ operatorId }) => `operators?operator=${operatorId}`, [
    visible('operator'),
    visible('device'),
    'derived for mcp',
  ]),
  row('sessions', () => 'sessions', [visible('own device')]),
  row('audit', () => 'audit', [visible('operator'), WHOLE[3]!, 'mcp']),
]

function object(bucketId: string, key: string): string {
  return `files?${new URLSearchParams({ bucket: bucketId, object: key })}`
}

const APP = join(import.meta.dirname, '../../src/console/app.tsx')

/** The names of PAGES, without code of the page, which needs a browser. */
function pageNames(): string[] {
  const source = readFileSync(APP, 'utf8')
  const list = source.slice(source.indexOf('const PAGES'), source.indexOf('const NOTICE_MS'))
  return [...list.matchAll(/\bname: '([^']*)'/g)].map(([, name]) => name!)
}

/**
 * Returns what is wrong with the document: elements and attributes that a stored text may have
 * become, and invisible characters in its text, its title and its attributes.
 */
const FINDINGS = `(() => {
  const found = []
  const HIDDEN = /(?![\\n\\t])[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}]/u
  const check = (place, text) => {
    const hidden = HIDDEN.exec(text)
    if (hidden !== null) {
      found.push(place + ': U+' + hidden[0].codePointAt(0).toString(16) + ' in ' +
        JSON.stringify(text.slice(0, 200)))
    }
  }
  if (window.attacked !== undefined) found.push('a script ran: ' + window.attacked)
  check('title', document.title)
  check('text', document.documentElement.textContent)
  const wrong = 'x-attacked, img, iframe, object, embed, base, meta[http-equiv], video, audio, ' +
    'body script, style, body link, form[action], a:not([href^="#/"]), b, [srcdoc], [src]'
  for (const each of document.querySelectorAll(wrong)) {
    if (!each.matches('head script[src="console.js"]')) found.push(each.outerHTML.slice(0, 200))
  }
  for (const each of document.querySelectorAll('*')) {
    for (const { name, value } of each.attributes) {
      const place = each.localName + '[' + name + ']'
      check(place, name + value)
      if (name.startsWith('on')) found.push(place)
      if (name === 'style' && /url|attack/.test(value)) found.push(place + ' ' + value)
    }
    if (each.matches('input, textarea')) check(each.localName + ' ' + each.name, each.value)
  }
  for (const each of document.querySelectorAll('svg *')) {
    if (each.localName !== 'rect') found.push('svg ' + each.localName)
  }
  return found
})()`

/** The text that a person can read: closed details are opened, fields have their values. */
const READABLE = `(() => {
  for (const each of document.querySelectorAll('main details')) each.open = true
  const options = [...document.querySelectorAll('option')].map(({ text }) => text)
  const fields = [...document.querySelectorAll('main input, main textarea')]
    .map(({ value }) => value)
  return [document.body.innerText, ...options, ...fields].join('\\n')
})()`

/** True once nothing of the page is being loaded. */
const SETTLED = `document.querySelector('main') !== null &&
  document.querySelector('[aria-busy=true]') === null &&
  !document.body.innerText.includes('Loading …')`

let world: HostileWorld
let page: ConsolePage
let activity: Activity

const DEADLINE = { timeout: 120_000 }

async function settled(): Promise<void> {
  await expect.poll(() => page.tab.evaluate<boolean>(SETTLED), DEADLINE).toBe(true)
}

/** Checks the document as it is. */
async function isHarmless(at: string): Promise<void> {
  expect([at, await page.tab.evaluate<string[]>(FINDINGS)]).toEqual([at, []])
}

/** Nothing ran, no request went to another host, and the policy had nothing to stop. */
function didNothing(): void {
  const { host } = new URL(page.url)
  const foreign = activity.requests.filter((url) => !isOf(url, host))
  expect({ foreign, dialogs: activity.dialogs, violations: activity.violations }).toEqual({
    foreign: [],
    dialogs: [],
    violations: [],
  })
}

/** Addresses with their content reach no host: that of a saved file, and icons of the browser. */
const isOf = (url: string, host: string): boolean =>
  /^(?:blob|data):/.test(url) || new URL(url).host === host

beforeAll(async () => {
  if (!chromiumInstalled) return
  world = await hostileWorld()
  page = world.page
  activity = await page.tab.record()
  await page.tab.navigate(await page.tab.evaluate<string>('location.origin + location.pathname'))
})

afterAll(async () => {
  await page?.close()
  await world?.app.installation.dispose()
})

test('every page of the console has a row', () => {
  const names = pageNames()
  expect(names.length).toBeGreaterThan(10)
  expect(new Set(ROWS.map(({ page }) => page))).toEqual(new Set(names))
})

const where = chromiumInstalled
  ? 'hostile texts in headless Chromium'
  : 'hostile texts in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  test.each(ROWS.map((each, i) => [each.page === '' ? 'overview' : each.page, i] as const))(
    'the page %s (row %i) shows every text as text',
    async (_, i) => {
      const { at, sees } = ROWS[i]!
      const address = at(world)
      await page.show(address)
      await settled()
      for (const text of sees) {
        const readable = async (): Promise<string> => page.tab.evaluate<string>(READABLE)
        await expect.poll(readable, DEADLINE).toContain(text)
      }
      await settled()
      await isHarmless(address)
      didNothing()
    },
  )

  test('every link leads to a page that is as harmless', async () => {
    const links = `[...document.querySelectorAll('main a, nav a')].map(({ hash }) => hash)`
    const seen = new Map<string, number>()
    const waiting = ['#/', ...ROWS.map(({ at }) => `#/${at(world)}`)]
    const known = new Set(waiting)
    let visited = 0
    while (waiting.length > 0) {
      const address = waiting.shift()!
      const [name = '', query = ''] = address.split('?')
      const form = `${name} ${[...new URLSearchParams(query).keys()].sort()}`
      seen.set(form, (seen.get(form) ?? 0) + 1)
      if (seen.get(form)! > VISITS_OF_A_FORM) continue
      await page.show(address.slice('#/'.length))
      await settled()
      await page.tab.evaluate(READABLE)
      await isHarmless(address)
      visited++
      for (const link of await page.tab.evaluate<string[]>(links)) {
        if (known.has(link)) continue
        known.add(link)
        waiting.push(link)
      }
    }
    expect(visited).toBeGreaterThan(ROWS.length)
    didNothing()
  })

  test('every question names what it destroys as text', async () => {
    let asked = 0
    for (const { at } of ROWS) {
      await page.show(at(world))
      await settled()
      await page.tab.evaluate(READABLE)
      const count = await page.tab.evaluate<number>(`${QUESTIONS}.length`)
      for (let i = 0; i < Math.min(count, QUESTIONS_OF_A_PAGE); i++) {
        await page.tab.evaluate(`${QUESTIONS}[${i}]?.click()`)
        const isOpen = `document.querySelector('dialog[open]') !== null`
        if (!(await page.tab.evaluate<boolean>(isOpen))) continue
        asked++
        await isHarmless(`a question of ${at(world)}`)
        await page.click('Cancel')
        await expect.poll(() => page.tab.evaluate<boolean>(isOpen), DEADLINE).toBe(false)
      }
    }
    expect(asked).toBeGreaterThan(20)
    didNothing()
  })

  test('names that stand in addresses and commands admit no such text', async () => {
    const { app, root, bucketId } = world
    const name = hostile('name')
    for (const command of [
      argv`promote ${root} --channel ${name} --release ${app.releaseId} --expected empty`,
      argv`buckets create ${name} ${root}`,
      argv`http mount ${name} --target channel:production ${root}`,
      argv`config set ${name} value ${root}`,
      argv`sessions derive --capability data:read --purpose ${name} ${root}`,
      argv`environments update ${root} --purpose ${name}`,
      argv`environments update ${root} --region ${name}`,
    ]) {
      const { status } = await app.installation.svc(command)
      expect([command[0], status]).not.toEqual([command[0], 0])
    }
    expect(bucketId).toMatch(/^bkt_/)
  })
})

/** Pages of one form, such as documents, of which as many are visited. */
const VISITS_OF_A_FORM = 4
const QUESTIONS_OF_A_PAGE = 12
/** The buttons that open a question. */
const QUESTIONS = `[...document.querySelectorAll('main button')]
  .filter((each) => !each.disabled && each.innerText.trim().endsWith('…'))`
