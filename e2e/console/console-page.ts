/** The page of a running `svc console` in a browser. */
import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { accessibilityFindings } from '../../testing/browsers/accessibility.ts'
import {
  type Chromium,
  type ChromiumOptions,
  chromium,
  type Tab,
  type View,
} from '../../testing/browsers/chromium.ts'
import type { Application } from '../application.ts'
import { CLIENT } from '../harness.ts'

const DEADLINE_MS = 120_000
const IS_LONG = process.env.SVC_TEST_LONG === '1'
/** The views in which each page is checked; a long run adds the others of width and scheme. */
const VIEWS: readonly View[] = [
  { width: 360, scheme: 'dark' },
  { width: 1_440, scheme: 'light' },
  ...(IS_LONG
    ? ([
        { width: 360, scheme: 'light' },
        { width: 1_440, scheme: 'dark' },
      ] as const)
    : []),
]
/** The folder of the screenshots, which only a long run writes and which stay after it. */
const SCREENSHOTS = join(import.meta.dirname, '../../dist/screenshots')

export interface ConsolePage {
  readonly url: string
  readonly browser: Chromium
  readonly tab: Tab
  /** Shows a page of the console, such as `data?table=notes`. */
  show(page: string): Promise<void>
  text(): Promise<string>
  /** Waits until the page shows the text. */
  sees(text: string): Promise<void>
  /** Clicks the first button or link with this label. */
  click(label: string): Promise<void>
  /** Writes into a field as a person does. */
  fill(selector: string, text: string): Promise<void>
  /**
   * Checks the page with axe, and that it has no horizontal scroll bar, dark and light, narrow and
   * wide. A long run writes a screenshot of each view to dist/screenshots.
   */
  isAccessible(name: string): Promise<void>
  /** Returns what the command has printed so far. */
  printed(): string
  /** Interrupts the command and returns its exit code. */
  end(): Promise<number | null>
  close(): Promise<void>
}

/** A `svc console` whose address no browser has opened. */
export interface ConsoleCommand {
  /** The newest address that it showed. */
  url(): string
  /** Returns what the command has printed so far. */
  printed(): string
  /** Interrupts the command and returns its exit code. */
  end(): Promise<number | null>
  kill(): void
}

/** Runs `svc console` until it has shown its address. */
export async function runConsole({
  installation,
}: Pick<Application, 'installation'>): Promise<ConsoleCommand> {
  const args = ['console', '--root', installation.productRoot, '--no-open', '--json']
  const child = spawn(CLIENT, args, {
    cwd: installation.directory,
    env: { ...installation.clientEnvironment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [printed, failed] = ['', '']
  child.stdout.on('data', (text) => {
    printed += text
  })
  child.stderr.on('data', (text) => {
    failed += text
  })
  const exit = new Promise<number | null>((resolve) => child.on('close', resolve))
  const url = (): string => {
    const line = printed.split('\n').findLast((each) => each.includes('"url"'))
    if (line === undefined) throw new Error(`no address was printed: ${printed}${failed}`)
    return JSON.parse(line).url
  }
  await vi.waitFor(url, { timeout: DEADLINE_MS })
  return {
    url,
    printed: () => printed + failed,
    async end() {
      child.kill('SIGINT')
      return exit
    },
    kill: () => void child.kill('SIGKILL'),
  }
}

export async function openConsole(
  application: Pick<Application, 'installation'>,
  options: ChromiumOptions = {},
): Promise<ConsolePage> {
  const command = await runConsole(application)
  const url = command.url()
  const browser = await chromium(options)
  const tab = await browser.open(url)
  const isShown = () => tab.evaluate<boolean>(`document.querySelector('nav a') !== null`)
  await vi.waitFor(async () => expect(await isShown()).toBe(true), { timeout: 120_000 })
  const text = () => tab.evaluate<string>('document.body?.innerText ?? ""')
  const sees = (wanted: string): Promise<void> =>
    expect.poll(text, { timeout: DEADLINE_MS }).toContain(wanted)
  return {
    url,
    browser,
    tab,
    text,
    sees,
    async show(page) {
      await tab.evaluate(`void (location.hash = ${JSON.stringify(`#/${page}`)})`)
    },
    async click(label) {
      const script = `(() => {
        const scope = document.querySelector('dialog[open]') ?? document
        const all = [...scope.querySelectorAll('button, a, summary')]
        const found = all.find((each) => !each.disabled &&
          (each.getAttribute('aria-label') ?? each.innerText).trim()
            .startsWith(${JSON.stringify(label)}))
        found?.click()
        return found !== undefined
      })()`
      const clicked = async (): Promise<string> =>
        (await tab.evaluate<boolean>(script)) ? 'clicked' : text()
      await expect.poll(clicked, { timeout: DEADLINE_MS }).toBe('clicked')
    },
    async fill(selector, content) {
      const field = JSON.stringify(selector)
      const found = `document.querySelector(${field}) !== null`
      await expect.poll(() => tab.evaluate<boolean>(found), { timeout: DEADLINE_MS }).toBe(true)
      await tab.evaluate(`document.querySelector(${field}).select?.()`)
      await tab.type(selector, content)
    },
    async isAccessible(name) {
      for (const view of VIEWS) {
        await tab.emulate(view)
        const at = `${name} at ${view.width} px, ${view.scheme}`
        expect([at, await accessibilityFindings(tab)]).toEqual([at, []])
        // A page whose scroll bar was hidden is for a moment narrower than its window.
        const root = 'document.documentElement'
        const overflow = `Math.max(0, ${root}.scrollWidth - ${root}.clientWidth)`
        expect([at, await tab.evaluate<number>(overflow)]).toEqual([at, 0])
        if (!IS_LONG) continue
        mkdirSync(SCREENSHOTS, { recursive: true })
        const file = join(SCREENSHOTS, `${name}-${view.width}-${view.scheme}.png`)
        writeFileSync(file, await tab.screenshot())
      }
    },
    printed: command.printed,
    end: command.end,
    async close() {
      command.kill()
      await browser.close()
    },
  }
}
