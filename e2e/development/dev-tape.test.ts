/**
 * An author's first ten minutes in a real terminal (tmux) with a real browser: a new root, a call,
 * the page of the template beside it, an edit that the page shows at once, a mistake and its
 * correction, a change of the schema that documents do not fit, and Ctrl-C.
 *
 * @module-tag slow
 */
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Chromium, chromium, chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { NODE_PATH } from '../../testing/servers/node-path.ts'
import { freePort } from '../../testing/servers/ports.ts'
import { argv } from '../argv.ts'
import { ChatWindow } from '../chat/window.ts'
import { CLIENT, runSync } from '../harness.ts'

const PACKAGES = join(import.meta.dirname, '../../node_modules')
const canRun = spawnSync('tmux', ['-V']).status === 0 && chromiumInstalled

let directory = ''
let socket = ''
let browser: Chromium
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-tape-'))
  socket = join(directory, 'tmux')
  if (canRun) browser = await chromium()
})
afterAll(async () => {
  await browser?.close()
  tmux('kill-server')
  rmSync(directory, { recursive: true, force: true })
})

function tmux(...args: readonly string[]): string {
  const env = { ...process.env, PATH: NODE_PATH }
  return spawnSync('tmux', ['-S', socket, ...args], { encoding: 'utf8', env }).stdout
}

/** The screen of a terminal and its history. */
const screen = (terminal = 'tape'): string =>
  tmux('capture-pane', '-pJ', '-S', '-2000', '-t', terminal)

/** Opens a terminal and types a line into it. */
function open(terminal: string, line: string): void {
  const size = ['-x', '200', '-y', '50']
  tmux('-f', '/dev/null', 'new-session', '-d', '-s', terminal, ...size, 'sh')
  tmux('send-keys', '-t', terminal, line, 'Enter')
}

/** Resolves with the screen once the pattern appears after the text that it showed before. */
async function shows(pattern: RegExp, terminal = 'tape'): Promise<string> {
  await expect.poll(() => screen(terminal), { interval: 20 }).toMatch(pattern)
  return screen(terminal)
}

/** Links the packages of this project where `npm install` would put those of a registry. */
function installPackages(workspace: string): void {
  mkdirSync(join(workspace, 'node_modules'), { recursive: true })
  for (const name of ['.bin', 'react', 'react-dom', 'vite']) {
    symlinkSync(join(PACKAGES, name), join(workspace, 'node_modules', name))
  }
}

/** Opens the page of the Workspace as `npm start` serves it. */
async function openPage(): Promise<ChatWindow> {
  const workspace = join(directory, 'app/workspace')
  installPackages(workspace)
  const port = await freePort()
  const where = `--host 127.0.0.1 --port ${port} --strictPort`
  open('page', `cd ${workspace} && npm start -- ${where}`)
  await shows(/Local: .*http/, 'page')
  return ChatWindow.open(browser, `http://127.0.0.1:${port}/`)
}

const edit = (file: string, from: string | RegExp, to: string): void => {
  const path = join(directory, 'app/workspace', file)
  const text = readFileSync(path, 'utf8')
  expect(text).toMatch(from)
  writeFileSync(path, text.replace(from, to))
}

/** An Action that returns the variable and the secret that it reads. */
const PAY = `import { action, v } from 'svc'
export const charge = action({
  clients: ['public'], returns: v.string(), uses: { secrets: ['PAY_KEY'] },
  handler: async ({ config }) =>
    \`\${await config.variable('CURRENCY')} \${await config.secret('PAY_KEY')}\`,
})
`

async function charge(origin: string, key: string): Promise<unknown> {
  const response = await fetch(`${origin}/v1/action`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-key': key },
    body: JSON.stringify({
      version: 1,
      target: 'channel:dev',
      function: 'pay.charge',
      arguments: { type: 'object', value: [] },
    }),
  })
  return ((await response.json()) as { result?: { value?: unknown } }).result?.value
}

const PUBLISHED = { VITE_SVC_URL: 'https://api.example.com', VITE_SVC_KEY: 'rk_pub_v1_given' }

/** Returns the scripts of the page that `npm run build` writes. */
function buildPage(workspace: string): string {
  const environment = { PATH: NODE_PATH, HOME: directory, ...PUBLISHED }
  const { status, stdout, stderr } = runSync(['npm', 'run', 'build'], {
    environment,
    directory: workspace,
  })
  if (status !== 0) throw new Error(stdout + stderr)
  const assets = join(workspace, 'web/dist/assets')
  return readdirSync(assets)
    .map((name) => readFileSync(join(assets, name), 'utf8'))
    .join('\n')
}

test.skipIf(!canRun)(
  'an author starts, calls, edits, errs and corrects, live (needs tmux and Chromium)',
  async () => {
    const port = await freePort()
    const root = join(directory, 'app')
    const made = `${CLIENT} init --root ${root} --workspace ${root}/workspace --template chat`
    open('tape', `cd ${directory} && ${made}`)
    await shows(/Created|created/)
    const command = `${CLIENT} dev --root ${root} --port ${port}`
    tmux('send-keys', '-t', 'tape', `${command}; echo ended with $?`, 'Enter')
    const first = await shows(/Try .*svc call/)
    expect(first).toMatch(/served .*4 Functions, 2 tables in \d+ ms/)
    const [, key = ''] = /Key +(rk_pub_v1_[\w-]{43})/.exec(first) ?? []
    const origin = `http://127.0.0.1:${port}`

    // The printed line can be pasted unchanged if svc is on the PATH.
    const [, sample = ''] = /Try +(svc call \S+ --root \S+)/.exec(first) ?? []
    const PATH = `${join(CLIENT, '..')}:${process.env.PATH}`
    const called = runSync(['/bin/sh', '-c', sample], { environment: { PATH, HOME: directory } })
    expect(called).toMatchObject({ status: 0, stdout: '[]\n' })
    await shows(/query {2}channels\.list {2}ok/)

    // The page reads the address and the key from a file that git ignores.
    const page = await openPage()
    const settings = join(root, 'workspace/web/_generated/dev.json')
    expect(JSON.parse(readFileSync(settings, 'utf8')).applicationKey).toBe(key)
    runSync(['git', 'init', '-q', root], { environment: { PATH: NODE_PATH } })
    expect(
      runSync(['git', '-C', root, 'check-ignore', settings], { environment: { PATH: NODE_PATH } })
        .status,
    ).toBe(0)
    await page.createChannel('general')
    await shows(/mutation {2}channels\.create {2}ok/)
    await page.until('ready', () => page.hasChannel())
    await page.send('hello')
    await page.until('shown', async () => (await page.shown()).join() === 'hello')
    await page.until('sent', async () => (await page.drafts()) === 0)

    edit(
      'functions/messages.ts',
      '.take(Number(limit))',
      `.take(Number(limit)).then((all) => {
          console.log('edited')
          return all.map((each) => ({ ...each, body: each.body.toUpperCase() }))
        })`,
    )
    await page.until('live', async () => (await page.shown()).join() === 'HELLO')
    expect(await page.neverReloaded()).toBe(true)
    await shows(/info {2}messages\.list {2}edited/)

    edit('functions/channels.ts', 'export const list', 'export const = list')
    await shows(/WORKSPACE_INVALID[\s\S]*functions\/channels\.ts:\d+[\s\S]*last valid code/)
    await page.send('still here')
    await page.until('served', async () => (await page.shown()).join() === 'HELLO,STILL HERE')
    edit('functions/channels.ts', 'export const = list', 'export const list')

    edit('schema.ts', 'topic: v.optional', 'color: v.string(),\n    topic: v.optional')
    await shows(/documents:channels: 1 stored documents[\s\S]*--reset/)
    edit('schema.ts', 'color: v.string()', 'color: v.optional(v.string())')
    await shows(/~ table channels \(color\)/)
    const references = readFileSync(join(root, 'workspace/web/_generated/api.ts'), 'utf8')
    expect(references).toContain('color?: string')
    // Its references have changed, so Vite reloads the page.
    await page.until('loaded again', async () => (await page.shown()).length === 2)

    // Variables and secrets come from a file that git ignores; values are not shown.
    const local = join(root, 'workspace/.env.local')
    writeFileSync(join(root, 'workspace/functions/pay.ts'), PAY)
    await shows(/secret PAY_KEY has no value: pay\.charge declares it/)
    writeFileSync(local, 'PAY_KEY=sesame\nCURRENCY=EUR\n')
    await shows(/configuration {2}PAY_KEY \(secret\), CURRENCY \(variable\)/)
    expect(
      runSync(['git', '-C', root, 'check-ignore', local], { environment: { PATH: NODE_PATH } })
        .status,
    ).toBe(0)
    expect(await charge(origin, key)).toBe('EUR sesame')
    expect(screen()).not.toContain('sesame')

    // The page for a server has the address and the key that the build was given, and no other.
    const published = buildPage(join(root, 'workspace'))
    expect(published).toContain(PUBLISHED.VITE_SVC_KEY)
    expect(published).not.toContain(key)
    expect(published).not.toContain(origin)

    const other = runSync(argv`${CLIENT} dev --root ${root}`)
    expect(other.stderr).toContain(`It is svc dev at ${origin}, process`)

    tmux('send-keys', '-t', 'tape', 'C-c')
    await shows(/ended with \d+/)
    expect(screen()).toMatch(/ended with 0$/m)
    // The terminal interrupts every process of its group; the runners end in order all the same.
    expect(screen()).not.toContain('ended unexpectedly')
    await page.until('offline', async () => !(await page.isConnected()))
    expect(existsSync(settings)).toBe(true)
  },
)
