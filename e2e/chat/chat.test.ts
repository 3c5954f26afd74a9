/**
 * Two windows with the page of the chat template, in a real browser, talk through the compiled
 * server. In between connections are cut, the server is killed, the token ends while there is no
 * other one, and the machine sleeps. Both windows end equal, in order and without a reload, and no
 * message is stored twice.
 *
 * @module-tag slow
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Chromium, chromium, chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { type JwtIssuer, jwtIssuer, writeAuthFile } from '../../testing/providers/jwt-issuers.ts'
import { UserTokens } from '../../testing/providers/user-tokens.ts'
import { type CuttingProxy, cuttingProxy } from '../../testing/servers/cutting-proxy.ts'
import { APPLICATION_HOST, CADDY, NGINX, type RunningProxy } from '../../testing/servers/proxies.ts'
import {
  type Application,
  application,
  createKey,
  fields,
  type Json,
  mutation,
  query,
  string,
} from '../application.ts'
import { type PageServer, pageServer } from './page-server.ts'
import { ChatWindow } from './window.ts'

const isLong = process.env.SVC_TEST_LONG === '1'
const ROUNDS = isLong ? 2 : 1
/** A server cuts a connection a minute after its last sign of life. */
const SLEEP_MILLIS = isLong ? 75_000 : 1_500

const CUTS = 5
const CUT_MILLIS = 150

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

let users: JwtIssuer
let tokens: UserTokens
let page: PageServer
let app: Application
let network: CuttingProxy
let browser: Chromium
let key: string
let channel: Json

beforeAll(async () => {
  if (!chromiumInstalled) return
  users = await jwtIssuer()
  tokens = new UserTokens(users)
  page = await pageServer(tokens)
  app = await application(requireUsers, {
    SERVICE_PRODUCT_AUTH_CONFIG: 'auth.json',
    SERVICE_PRODUCT_ALLOWED_ORIGINS: page.origin,
  })
  const scopes = 'query,mutation,realtime'
  ;({ key } = await createKey(app, { kind: 'public', scopes }))
  network = await cuttingProxy(app.installation.applicationListen)
  channel = await createChannel()
  await page.prepare(app.installation.workspace)
  browser = await chromium({ hosts: [APPLICATION_HOST] })
})

afterAll(async () => {
  await browser?.close()
  await network?.close()
  page?.close()
  await app?.installation.dispose()
  await users?.close()
})

/** Gives every Function of the template to signed-in users alone. */
function requireUsers(workspace: string): void {
  const functions = join(workspace, 'functions')
  for (const name of readdirSync(functions)) {
    const path = join(functions, name)
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.replaceAll('  clients: [', "  auth: 'user',\n  clients: ["))
  }
  writeAuthFile(join(workspace, '../product/auth.json'), users)
}

async function asUser(): Promise<Record<string, string>> {
  return { authorization: `Bearer ${await users.sign(users.claims(Date.now(), { jti: 'test' }))}` }
}

/** Creates the channel of all messages. Returns its ID as a tagged value. */
async function createChannel(): Promise<Json> {
  const created = await mutation(app, {
    function: 'channels.create',
    headers: await asUser(),
    arguments: { name: string('general'), author: string('test') },
  })
  return created.body.result
}

/** Sends a message from elsewhere: through the server, without a window. */
async function sendFromElsewhere(body: string): Promise<void> {
  const sent = await mutation(app, {
    function: 'messages.send',
    headers: await asUser(),
    arguments: { channel, author: string('elsewhere'), body: string(body) },
  })
  expect(sent.body.status).toBe('ok')
}

/** Returns the messages that people wrote, as the server has them, oldest first. */
async function stored(): Promise<string[]> {
  const listed = await query(app, {
    function: 'messages.list',
    headers: await asUser(),
    arguments: { channel, limit: { type: 'int64', value: '200' } },
  })
  return listed.body.result.value
    .map(fields)
    .filter(
      ({ kind }: { kind: unknown }) => JSON.stringify(kind) === JSON.stringify(string('text')),
    )
    .map(({ body }: { body: { value: string } }) => body.value)
    .reverse()
}

/** Injects the faults of a round while both windows write. Returns a message from elsewhere. */
async function story(windows: readonly ChatWindow[], round: number): Promise<string> {
  let messages = 0
  const write = async (): Promise<void> => {
    for (const [i, window] of windows.entries()) {
      await window.send(`${'ab'[i]}${round}.${messages++}`)
    }
  }
  const everybodyIsBack = async (): Promise<void> => {
    for (const window of windows) {
      await window.until('connected', () => window.isConnected())
      await window.until('confirmed', async () => (await window.drafts()) === 0)
    }
  }
  await write()
  await everybodyIsBack()
  // The connections are cut once the server has committed, but before its responses arrive.
  network.losesResponses = true
  await write()
  const last = windows.at(-1)!.sent.at(-1)
  await expect.poll(stored).toContain(last)
  // A browser repeats a request of a reused connection once before the request fails.
  for (let cuts = 0; cuts < CUTS; cuts++) {
    network.cut()
    await pause(CUT_MILLIS)
  }
  network.losesResponses = false
  network.cut()
  await write()
  await everybodyIsBack()
  // The server is killed and stays down for a while.
  await write()
  app.server.kill()
  await app.server.ended
  await write()
  await app.start()
  await write()
  await everybodyIsBack()
  // The token expires, and the application has no new one for a moment.
  tokens.isDown = true
  await expect.poll(() => Date.now() - tokens.expiresAtMillis).toBeGreaterThan(0)
  await write()
  const { refreshes } = tokens
  tokens.isDown = false
  await everybodyIsBack()
  expect(tokens.refreshes).toBeGreaterThan(refreshes)
  // The stored state of the pages is deleted.
  await browser.clearStorage(page.origin)
  await write()
  await everybodyIsBack()
  // The machine sleeps.
  await write()
  const elsewhere = `elsewhere ${round}`
  browser.pause()
  await sendFromElsewhere(elsewhere)
  await pause(SLEEP_MILLIS)
  browser.resume()
  await write()
  await everybodyIsBack()
  return elsewhere
}

async function chat(url: string): Promise<void> {
  page.settings = { url, applicationKey: key }
  // The server announces the end of such tokens at once: they are renewed again and again.
  tokens.lifetimeSeconds = isLong ? 8 : 3
  const first = await ChatWindow.open(browser, page.origin)
  const second = await ChatWindow.open(browser, page.origin)
  const windows = [first, second]
  for (const window of windows) await window.until('ready', () => window.hasChannel())
  const before = await stored()
  const sent: string[] = []
  for (let round = 0; round < ROUNDS; round++) sent.push(await story(windows, round))
  const messages = (await stored()).slice(before.length)
  sent.push(...windows.flatMap((window) => window.sent))
  expect(messages.toSorted()).toEqual(sent.toSorted())
  for (const window of windows) {
    expect(messages.filter((body) => window.sent.includes(body))).toEqual(window.sent)
    await window.until('complete', async () => {
      return JSON.stringify(await window.shown()) === JSON.stringify([...before, ...messages])
    })
    expect(await window.status()).toBe('Connected')
    expect(await window.alerts()).toEqual([])
    expect(await window.neverReloaded()).toBe(true)
  }
}

describe.skipIf(!chromiumInstalled)('two windows of the chat page (needs Chromium)', () => {
  test('two windows end equal after cuts, a crash, an expired token and a sleep', async () => {
    await chat(`http://${network.authority}`)
  }, 1_200_000)

  const proxies = [NGINX, CADDY].filter(({ installed }) => isLong && installed)
  test.each(proxies)(
    'two windows end equal behind $name as it ships (test:long)',
    async (kind) => {
      const management = new URL(app.server.management).host
      let proxy: RunningProxy | null = null
      try {
        proxy = await kind.start({ management, application: network.authority })
        await chat(`https://${APPLICATION_HOST}:${proxy.port}`)
      } finally {
        await proxy?.stop()
      }
    },
    1_200_000,
  )
})
