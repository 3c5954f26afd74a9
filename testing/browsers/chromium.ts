/** Runs the system's headless Chromium over its DevTools protocol. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Supervised, superviseProcess } from '../servers/supervisor.ts'
import type { Browser, Page } from './browser.ts'

/** Path of the executable in Debian's package. */
const CHROMIUM = '/usr/bin/chromium'
const START_MS_MAX = 120_000
const PAGE_MS_MAX = 120_000
const POLL_MS = 50

export const chromiumInstalled: boolean = existsSync(CHROMIUM)

const OPTIONS = [
  '--headless=new',
  '--remote-debugging-port=0',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-dev-shm-usage',
  '--disable-gpu',
]

export interface ChromiumOptions {
  /** Names that stand for this machine, with certificates that no authority has signed. */
  readonly hosts?: readonly string[]
}

/** A window with one page, as a person uses it. */
export interface Tab {
  /** Returns the JSON value of an expression, or of its promise. */
  evaluate<T>(expression: string): Promise<T>
  /** Focuses the first element of the selector and types into it. */
  type(selector: string, text: string): Promise<void>
  /** Presses Enter where the focus is. */
  enter(): Promise<void>
  /** Moves the focus to the next element, as the key does. */
  tabulate(): Promise<void>
  /** Presses a key that moves the handle of a slider or the choice of a list. */
  press(key: MovingKey): Promise<void>
  /** Shows the page in a window of this size and in this scheme of colours. */
  emulate(view: View): Promise<void>
  /** Returns the whole page as PNG. */
  screenshot(): Promise<Uint8Array>
  /** Begins to record what the page does, from its next request or load on. */
  record(): Promise<Activity>
  navigate(url: string): Promise<void>
}

/** The requests, dialogs and violations of a page since the record began. */
export interface Activity {
  /** URLs of its requests, also of those that were blocked. */
  readonly requests: readonly string[]
  /** Texts of dialogs of scripts, which are canceled. */
  readonly dialogs: readonly string[]
  /** Violations of its policy and exceptions of its scripts. */
  readonly violations: readonly string[]
}

/** Codes of the keys that move a handle or a choice. */
const MOVING_KEYS = { PageUp: 33, PageDown: 34, End: 35, Home: 36, ArrowRight: 39, ArrowDown: 40 }
export type MovingKey = keyof typeof MOVING_KEYS

export interface View {
  readonly width: number
  readonly scheme: 'light' | 'dark'
}

const VIEW_HEIGHT = 900

export interface Chromium extends Browser {
  /** Opens the URL in a window of its own. */
  open(url: string): Promise<Tab>
  /** Saves the files that pages download in the directory, without a question. */
  saveDownloads(directory: string): Promise<void>
  /** Deletes what the pages of an origin have in IndexedDB, as a person may at any time. */
  clearStorage(origin: string): Promise<void>
  /** Stops all processes of the browser, as a machine that sleeps does. */
  pause(): void
  resume(): void
}

/** The tests open loopback pages only. */
function hostRules(hosts: readonly string[]): string {
  const mapped = hosts.map((host) => `MAP ${host} 127.0.0.1`)
  const rules = [...mapped, 'MAP * ~NOTFOUND', 'EXCLUDE 127.0.0.1']
  return `--host-resolver-rules=${rules.join(' , ')}`
}

/** Returns the state of a page once it is complete, and submits its form once. */
const PAGE_SCRIPT = `(() => {
  if (document.readyState !== 'complete') return null
  const form = document.querySelector('form')
  const page = { url: location.href, title: document.title, form: form !== null, sent: false }
  if (form === null || form.dataset.sent === 'yes') return page
  form.dataset.sent = 'yes'
  form.querySelector('button').click()
  return { ...page, sent: true }
})()`

interface PageState {
  readonly url: string
  readonly title: string
  readonly form: boolean
  readonly sent: boolean
}

export async function chromium({ hosts = [] }: ChromiumOptions = {}): Promise<Chromium> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-chromium-'))
  const root = process.getuid?.() === 0
  const options = [...OPTIONS, hostRules(hosts)]
  if (root) options.push('--no-sandbox')
  if (hosts.length > 0) options.push('--ignore-certificate-errors')
  const supervised = superviseProcess(
    [CHROMIUM, ...options, `--user-data-dir=${directory}`, 'about:blank'],
    { signal: 'TERM', directory, environment: { PATH: process.env.PATH ?? '', HOME: directory } },
  )
  const close = async (): Promise<void> => {
    await supervised.stop()
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    const tools = await DevTools.connect(await addressOf(supervised))
    const tab = await attach(tools, { url: 'about:blank' })
    return {
      visit: (url) => visit(tools, tab, url),
      open: async (url) => tabOf(tools, await attach(tools, { url, newWindow: true })),
      async saveDownloads(downloadPath) {
        await tools.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath })
      },
      async clearStorage(origin) {
        const parameters = { origin, storageTypes: 'indexeddb' }
        await tools.send('Storage.clearDataForOrigin', parameters, tab)
      },
      pause: () => signal(supervised, 'SIGSTOP'),
      resume: () => signal(supervised, 'SIGCONT'),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Returns the address of its DevTools, which Chromium prints. */
function addressOf({ stderr, ended }: Supervised): Promise<string> {
  return new Promise((resolve, reject) => {
    let printed = ''
    const fail = (): void => reject(new Error(`Chromium did not start:\n${printed.slice(-2_000)}`))
    const timer = setTimeout(fail, START_MS_MAX)
    void ended.then(fail)
    stderr.on('data', (text: string) => {
      printed += text
      const address = /DevTools listening on (ws:\/\/\S+)/.exec(printed)?.[1]
      if (address === undefined) return
      clearTimeout(timer)
      resolve(address)
    })
  })
}

/** Opens a page and returns the session of its DevTools. */
async function attach(tools: DevTools, page: Fields): Promise<string> {
  const { targetId } = await tools.send('Target.createTarget', page)
  const attached = await tools.send('Target.attachToTarget', { targetId, flatten: true })
  return String(attached.sessionId)
}

function tabOf(tools: DevTools, session: string): Tab {
  const evaluate = async <T>(expression: string): Promise<T> => {
    // Browsers save a second file of a page only after an act of a person.
    const parameters = { expression, returnByValue: true, awaitPromise: true, userGesture: true }
    const reply = await tools.send('Runtime.evaluate', parameters, session)
    const { exceptionDetails } = reply
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails))
    return (reply.result as { readonly value: T }).value
  }
  return {
    evaluate,
    async type(selector, text) {
      await evaluate(`document.querySelector(${JSON.stringify(selector)}).focus()`)
      await tools.send('Input.insertText', { text }, session)
    },
    async enter() {
      const key = { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13 }
      await tools.send('Input.dispatchKeyEvent', { type: 'keyDown', text: '\r', ...key }, session)
      await tools.send('Input.dispatchKeyEvent', { type: 'keyUp', ...key }, session)
    },
    async tabulate() {
      const key = { key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 }
      await tools.send('Input.dispatchKeyEvent', { type: 'keyDown', ...key }, session)
      await tools.send('Input.dispatchKeyEvent', { type: 'keyUp', ...key }, session)
    },
    async press(name) {
      const key = { key: name, code: name, windowsVirtualKeyCode: MOVING_KEYS[name] }
      await tools.send('Input.dispatchKeyEvent', { type: 'keyDown', ...key }, session)
      await tools.send('Input.dispatchKeyEvent', { type: 'keyUp', ...key }, session)
    },
    async emulate({ width, scheme }) {
      const metrics = { width, height: VIEW_HEIGHT, deviceScaleFactor: 1, mobile: false }
      await tools.send('Emulation.setDeviceMetricsOverride', metrics, session)
      await tools.send('Emulation.setScrollbarsHidden', { hidden: true }, session)
      const features = [{ name: 'prefers-color-scheme', value: scheme }]
      await tools.send('Emulation.setEmulatedMedia', { features }, session)
    },
    async screenshot() {
      const parameters = { format: 'png', captureBeyondViewport: true }
      const { data } = await tools.send('Page.captureScreenshot', parameters, session)
      return Buffer.from(String(data), 'base64')
    },
    record: () => record(tools, session),
    async navigate(url) {
      await tools.send('Page.navigate', { url }, session)
    },
  }
}

async function record(tools: DevTools, session: string): Promise<Activity> {
  const requests: string[] = []
  const dialogs: string[] = []
  const violations: string[] = []
  tools.on(session, (method, parameters) => {
    const { request, message, issue, exceptionDetails } = parameters as unknown as Events
    switch (method) {
      case 'Network.requestWillBeSent':
        requests.push(request.url)
        break
      case 'Page.javascriptDialogOpening':
        dialogs.push(message)
        void tools.send('Page.handleJavaScriptDialog', { accept: false }, session)
        break
      case 'Audits.issueAdded':
        if (issue.code === POLICY_ISSUE) violations.push(JSON.stringify(issue.details))
        break
      case 'Runtime.exceptionThrown':
        violations.push(JSON.stringify(exceptionDetails))
    }
  })
  for (const domain of ['Network', 'Page', 'Audits', 'Runtime']) {
    await tools.send(`${domain}.enable`, {}, session)
  }
  return { requests, dialogs, violations }
}

const POLICY_ISSUE = 'ContentSecurityPolicyIssue'

/** Parameters of the events that are recorded. */
interface Events {
  readonly request: { readonly url: string }
  readonly message: string
  readonly issue: { readonly code: string; readonly details: unknown }
  readonly exceptionDetails: unknown
}

/** Sends a signal to every process of the browser, but not to the shell that supervises it. */
function signal({ processGroup }: Supervised, name: 'SIGSTOP' | 'SIGCONT'): void {
  for (const pid of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      const [, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      if (Number(group) !== processGroup || / \((?:sh|dash|bash)\) /.test(stat)) continue
      process.kill(Number(pid), name)
    } catch {
      // The process has ended meanwhile.
    }
  }
}

async function visit(tools: DevTools, tab: string, url: string): Promise<Page> {
  const { errorText } = await tools.send('Page.navigate', { url }, tab)
  if (errorText !== undefined) throw new Error(`Chromium could not open the page: ${errorText}`)
  const forms: string[] = []
  const deadline = performance.now() + PAGE_MS_MAX
  while (performance.now() < deadline) {
    const page = await readPage(tools, tab)
    if (page !== null && !page.form) return { url: page.url, title: page.title, forms }
    if (page?.sent === true) forms.push(page.title)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  throw new Error(`Chromium found no page without a form after ${forms.join(', ')}`)
}

/** Returns null during a navigation. */
async function readPage(tools: DevTools, tab: string): Promise<PageState | null> {
  const parameters = { expression: PAGE_SCRIPT, returnByValue: true }
  const reply = await tools.send('Runtime.evaluate', parameters, tab).catch(() => null)
  const { value = null } = (reply?.result ?? {}) as { readonly value?: PageState | null }
  return value
}

type Fields = Readonly<Record<string, unknown>>

type OnEvent = (method: string, parameters: Fields) => void

class DevTools {
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, PromiseWithResolvers<Fields>>()
  /** Receivers of events by their session. */
  readonly #receivers = new Map<string, OnEvent>()
  #last = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.onmessage = ({ data }) => {
      const { id, result, error, method, params, sessionId } = JSON.parse(String(data))
      if (method !== undefined) this.#receivers.get(sessionId)?.(method, params)
      const waiting = this.#waiting.get(id)
      this.#waiting.delete(id)
      if (error === undefined) waiting?.resolve(result)
      else waiting?.reject(new Error(error.message))
    }
    socket.onclose = () => {
      for (const { reject } of this.#waiting.values())
        reject(new Error('Chromium has closed the connection'))
      this.#waiting.clear()
    }
  }

  static connect(address: string): Promise<DevTools> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(address)
      const tools = new DevTools(socket)
      socket.onopen = () => resolve(tools)
      socket.onerror = () => reject(new Error('cannot connect to Chromium'))
    })
  }

  /** Calls `receive` for each event of a session, in place of the receiver before it. */
  on(sessionId: string, receive: OnEvent): void {
    this.#receivers.set(sessionId, receive)
  }

  send(method: string, params: Fields, sessionId?: string): Promise<Fields> {
    const id = ++this.#last
    const waiting = Promise.withResolvers<Fields>()
    this.#waiting.set(id, waiting)
    this.#socket.send(JSON.stringify({ id, method, params, sessionId }))
    return waiting.promise
  }
}
