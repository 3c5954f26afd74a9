/**
 * DNS rebinding at `svc dev`: a page of an attacker, whose name is bound to this machine after it
 * was loaded, calls endpoints without a key at its own origin. The browser is real, and so is the
 * change behind the name: the server of the attacker leaves the port to `svc dev`.
 *
 * @module-tag slow
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type Chromium,
  chromium,
  chromiumInstalled,
  type Tab,
} from '../../testing/browsers/chromium.ts'
import { argv } from '../argv.ts'
import { DevelopmentProcess } from './development-process.ts'

const ATTACKER = 'attacker.test'
/** Names that the same browser resolves to this machine and that no page of the Internet has. */
const LOCAL = ['desk.local', 'host.docker.internal', 'desk']
const SECRET = 'orders of the author'
const SCHEMA = `import { defineSchema, table, v } from 'svc'
export default defineSchema({ notes: table({ text: v.string() }) })
`
const FUNCTIONS = `import { internalMutation, internalQuery, v } from 'svc'
export const read = internalQuery({
  returns: v.httpResponse(), handler: () => ({ body: '${SECRET}' }),
})
export const add = internalMutation({
  arguments: { text: v.string() }, returns: v.int64(),
  handler: async (ctx, { text }) => {
    await ctx.db.insert('notes', { text })
    return BigInt((await ctx.db.table('notes').scan().collect()).length)
  },
})
`
const HTTP = `import { endpoint, httpRoutes } from 'svc'
import { internal } from './_generated/api'
export default httpRoutes({
  read: endpoint({ path: '/read', methods: ['GET'], handler: internal.notes.read }),
  add: endpoint({ path: '/add', methods: ['POST'], handler: internal.notes.add }),
})
`

let directory = ''
let browser: Chromium
let dev: DevelopmentProcess
let port = 0
/** A page that the server of the attacker has sent, at the port that `svc dev` has now. */
let attacker: Tab

const originOf = (host: string): string => `http://${host}:${port}`

/** Waits until the page of the tab has this text. During a navigation there is no page. */
const shows = (tab: Tab, text: string): Promise<void> =>
  vi.waitFor(async () => expect(await tab.evaluate('document.body.innerText')).toContain(text), {
    timeout: 120_000,
  })

/** Opens a page of the attacker. Resolves once its server has left the port. */
async function openAttacker(): Promise<Tab> {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html', connection: 'close' })
    response.end('<p>page of the attacker</p>')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  port = (server.address() as AddressInfo).port
  const tab = await browser.open(`${originOf(ATTACKER)}/`)
  await shows(tab, 'page of the attacker')
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeAllConnections()
  await closed
  return tab
}

beforeAll(async () => {
  if (!chromiumInstalled) return
  directory = mkdtempSync(join(tmpdir(), 'svc-rebound-'))
  const workspace = join(directory, 'workspace')
  mkdirSync(join(workspace, 'functions'), { recursive: true })
  writeFileSync(join(workspace, 'schema.ts'), SCHEMA)
  writeFileSync(join(workspace, 'functions/notes.ts'), FUNCTIONS)
  writeFileSync(join(workspace, 'http.ts'), HTTP)
  browser = await chromium({ hosts: [ATTACKER, ...LOCAL] })
  attacker = await openAttacker()
  const where = argv`--root ${join(directory, 'root')} --workspace ${workspace}`
  dev = new DevelopmentProcess(argv`${where} --port ${String(port)}`)
  const { url } = await dev.next('ready', 0)
  expect(url).toBe(originOf('127.0.0.1'))
})

afterAll(async () => {
  await browser?.close()
  await dev?.stop()
  if (directory !== '') rmSync(directory, { recursive: true, force: true })
})

/** Resolves with the status and the body that a page gets from its own origin. */
const requests = (path: string, init = ''): string =>
  `fetch('${path}'${init}).then(async (answer) => [answer.status, await answer.text()])`
const READ = requests('/v1/http/dev/read')
const ADD = requests(
  '/v1/http/dev/add',
  `, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"text":"x"}' }`,
)
const PROBE = requests('/healthz')
const SOCKET = `new Promise((resolve) => {
  const socket = new WebSocket('/v1/realtime', ['service.realtime.v1'])
  socket.onopen = () => { resolve('open'); socket.close() }
  socket.onerror = () => resolve('rejected')
})`

const where = chromiumInstalled
  ? 'svc dev in headless Chromium'
  : 'svc dev in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  test('a page whose name was bound to this machine reads and changes nothing', async () => {
    const origin = await attacker.evaluate<string>('location.origin')
    expect(origin).toBe(originOf(ATTACKER))
    const from = dev.events.length
    for (const attack of [READ, ADD, PROBE]) {
      const [status, text] = await attacker.evaluate<[number, string]>(attack)
      expect(text).not.toContain(SECRET)
      expect([status, JSON.parse(text)]).toMatchObject([
        400,
        { version: 1, status: 'error', error: { code: 'REQUEST_INVALID', retryable: false } },
      ])
    }
    expect(await attacker.evaluate(SOCKET)).toBe('rejected')
    const shown = await dev.next('call', from, 'REQUEST_INVALID')
    expect(shown.detail).toContain(`open ${originOf('127.0.0.1')} instead`)
  })

  test('a page that is opened at such a name sees no answer of an endpoint', async () => {
    const tab = await browser.open(`${originOf(ATTACKER)}/v1/http/dev/read`)
    await shows(tab, 'REQUEST_INVALID')
  })

  test.each(['127.0.0.1', ...LOCAL])('a page at %s reads an endpoint', async (host) => {
    const tab = await browser.open(`${originOf(host)}/healthz`)
    await shows(tab, 'live')
    expect(await tab.evaluate('location.origin')).toBe(originOf(host))
    expect(await tab.evaluate(READ)).toEqual([200, SECRET])
    // The origins of the other names are not among those that calls accept.
    expect(await tab.evaluate(SOCKET)).toBe(host === '127.0.0.1' ? 'open' : 'rejected')
  })

  test('the attacker has changed nothing', async () => {
    const headers = { 'content-type': 'application/json' }
    const added = { method: 'POST', headers, body: '{"text":"x"}' }
    const answer = await fetch(`${originOf('127.0.0.1')}/v1/http/dev/add`, added)
    // The document of this call is the first one.
    expect([answer.status, await answer.text()]).toEqual([200, '1'])
  })
})
