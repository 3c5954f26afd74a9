/**
 * The documentation in a browser: as `svc docs --serve` serves it, and as files.
 *
 * @module-tag slow
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { accessibilityFindings } from '../../testing/browsers/accessibility.ts'
import {
  type Activity,
  type Chromium,
  chromium,
  chromiumInstalled,
  type Tab,
} from '../../testing/browsers/chromium.ts'
import { CLIENT } from '../harness.ts'

const DEADLINE_MS = 120_000
/** Large pages take axe many seconds, so that only a long run checks them. */
const PAGES = [
  'index',
  'actions',
  ...(process.env.SVC_TEST_LONG === '1' ? ['hooks', 'limits', 'contract/wire'] : []),
]
const ROOT = join(import.meta.dirname, '../..')

let browser: Chromium
let served: string
let stop: () => Promise<number | null>
let folder: string

beforeAll(async () => {
  const child = spawn(CLIENT, ['docs', '--serve', '--json'], { env: {}, cwd: '/' })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  const exit = new Promise<number | null>((resolve) => child.on('close', resolve))
  stop = () => {
    child.kill('SIGINT')
    return exit
  }
  served = await vi.waitFor(() => JSON.parse(printed.split('\n')[0]!).url, { timeout: DEADLINE_MS })
  folder = mkdtempSync(join(tmpdir(), 'svc-docs-'))
  const bun = join(ROOT, 'node_modules/.bin/bun')
  const script = join(ROOT, 'build/docs-site/write.ts')
  const written = spawnSync(bun, [script, '--out', folder], { encoding: 'utf8' })
  expect([written.status, written.stderr]).toEqual([0, ''])
  if (chromiumInstalled) browser = await chromium()
})
afterAll(async () => {
  await browser?.close()
  expect(await stop()).toBe(130)
  rmSync(folder, { recursive: true })
})

const where = chromiumInstalled
  ? 'the documentation in headless Chromium'
  : 'the documentation in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  const shows = (tab: Tab, expression: string, wanted: unknown): Promise<void> =>
    expect.poll(() => tab.evaluate(expression), { timeout: DEADLINE_MS }).toEqual(wanted)

  const heading = 'document.querySelector("h1")?.innerText'
  /** Clicks an element as soon as the page has it. */
  async function click(tab: Tab, selector: string): Promise<void> {
    const found = `document.querySelector(${JSON.stringify(selector)})`
    await shows(tab, `document.readyState === 'complete' && ${found} !== null`, true)
    await tab.evaluate(`${found}.click()`)
  }

  async function open(base: string): Promise<{ tab: Tab; activity: Activity }> {
    const tab = await browser.open('about:blank')
    const activity = await tab.record()
    await tab.navigate(`${base}index.html`)
    await shows(tab, heading, 'svc')
    await shows(tab, `document.querySelector('[type=search]') !== null`, true)
    return { tab, activity }
  }

  /** Searches, opens the first place, and continues with the next page. */
  async function read({ tab }: { readonly tab: Tab }): Promise<void> {
    await tab.evaluate(`document.body.dispatchEvent(
      new KeyboardEvent('keydown', { key: '/', bubbles: true, cancelable: true }))`)
    await shows(tab, 'document.activeElement.type', 'search')
    await tab.type('input[type=search]', 'publickey webhook')
    await shows(tab, 'document.querySelector("[role=status]").innerText', 'Nothing was found.')
    await tab.evaluate('document.querySelector("input[type=search]").value = ""')
    await tab.type('input[type=search]', 'rotate keyring')
    await shows(tab, 'document.querySelectorAll(".found li").length > 0', true)
    const first = 'document.querySelector(".found a strong").innerText'
    await shows(tab, first, expect.stringContaining('Rotation of the keyring'))
    await tab.enter()
    await shows(tab, heading, 'Configuration: variables and secrets of Functions')
    expect(await tab.evaluate('location.hash')).toBe('#rotation-of-the-keyring')
    await click(tab, '.neighbours [rel=next]')
    await shows(tab, heading, 'Actions: requests to other services')
    await click(tab, '.chapters a[href$="contract/wire.html"]')
    await shows(tab, 'location.pathname.endsWith("/contract/wire.html")', true)
    await click(tab, '.brand')
    await shows(tab, heading, 'svc')
  }

  test('a reader searches and follows links, and nothing of other hosts is requested', async () => {
    const { tab, activity } = await open(served)
    await read({ tab })
    expect(activity.violations).toEqual([])
    expect(activity.requests.filter((url) => !url.startsWith(served))).toEqual([])
    expect(activity.requests).toContain(`${served}search-index.js`)
  })

  test('written pages work from a folder, without a server', async () => {
    const base = `${pathToFileURL(folder).href}/`
    const { tab, activity } = await open(base)
    await read({ tab })
    expect(activity.violations).toEqual([])
    expect(activity.requests.filter((url) => !url.startsWith(base))).toEqual([])
  })

  test('the colours are those of the system until the reader chooses others', async () => {
    const { tab } = await open(served)
    const back = 'getComputedStyle(document.body).backgroundColor'
    await tab.emulate({ width: 1_440, scheme: 'light' })
    await shows(tab, back, 'rgb(251, 251, 253)')
    await tab.emulate({ width: 1_440, scheme: 'dark' })
    await shows(tab, back, 'rgb(18, 22, 28)')
    await shows(tab, 'document.querySelector(".theme").innerText', 'Light')
    await click(tab, '.theme')
    await shows(tab, back, 'rgb(251, 251, 253)')
    await tab.navigate(`${served}hooks.html`)
    await shows(tab, heading, 'Hooks: requests of other services')
    await shows(tab, back, 'rgb(251, 251, 253)')
  })

  test('the recording of the first steps ends with the result of a Query', async () => {
    const { tab, activity } = await open(served)
    const screen = 'document.querySelector(".tape pre").textContent'
    await click(tab, '.controls button')
    await shows(tab, `${screen}.startsWith('$ # 1. Secrets')`, true)
    await click(tab, '.controls button:nth-of-type(2)')
    await shows(tab, `/"name": "general"[^$]*$/.test(${screen})`, true)
    await shows(tab, 'document.querySelector(".controls button").innerText', 'Play')
    expect(activity.violations).toEqual([])
  })

  test('pages are accessible and fit a window of 360 px', async () => {
    const { tab } = await open(served)
    for (const page of PAGES) {
      await tab.navigate(`${served}${page}.html`)
      await shows(tab, 'document.querySelector(".copy, .theme") !== null', true)
      for (const view of [
        { width: 360, scheme: 'dark' },
        { width: 1_440, scheme: 'light' },
      ] as const) {
        await tab.emulate(view)
        const at = `${page} at ${view.width} px, ${view.scheme}`
        expect([at, await accessibilityFindings(tab)]).toEqual([at, []])
        const root = 'document.documentElement'
        const overflow = `Math.max(0, ${root}.scrollWidth - ${root}.clientWidth)`
        expect([at, await tab.evaluate<number>(overflow)]).toEqual([at, 0])
      }
    }
  })
})

test('a page of the address is served, and a request with another name is rejected', async () => {
  const page = await fetch(`${served}cli.html`)
  expect([page.status, page.headers.get('x-frame-options')]).toEqual([200, 'DENY'])
  const curl = spawnSync('curl', [
    '-s',
    '-o',
    '/dev/null',
    '-w',
    '%{http_code}',
    '-H',
    'Host: a.example',
    served,
  ])
  expect(curl.stdout.toString()).toBe('403')
})
