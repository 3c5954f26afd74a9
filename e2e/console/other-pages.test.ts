/**
 * Other pages of the browser and other users of the machine at the address of the console: they
 * know every path of it, and get nothing and change nothing.
 *
 * @module-tag slow
 */
import { mkdirSync, readdirSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromiumInstalled, type Tab } from '../../testing/browsers/chromium.ts'
import { type Application, application, type Json } from '../application.ts'
import { argv } from '../argv.ts'
import { type Result, run } from '../harness.ts'
import { postOf } from './console-calls.ts'
import { type ConsolePage, openConsole, runConsole } from './console-page.ts'

const NAME = 'attacker.test'
const DEADLINE = { timeout: 120_000 }
const NOTHING = 'nothing'
const ATTACK_MS_MAX = 20_000
/** A browser of a person; curl names no site by itself. */
const HEADERS = ['none', 'navigate', 'document'].map(
  (value, i) => `sec-fetch-${['site', 'mode', 'dest'][i]}: ${value}`,
)

let app: Application
let page: ConsolePage
/** The page of the console, with its secret path. */
let base: string
let call: string
/** The folder of downloads. */
let saved: string
/** A server that admits everyone, at which the same attacks succeed. */
let victim: Victim
let attacker: Victim

/** A server that answers every page with all that it has, and records the requests. */
interface Victim {
  readonly origin: string
  readonly port: number
  /** Methods and paths. */
  readonly requests: string[]
  readonly cookies: string[]
  close(): void
}

async function openVictim(): Promise<Victim> {
  const requests: string[] = []
  const cookies: string[] = []
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { method = '', url = '', headers } = request
    requests.push(`${method} ${url}`)
    cookies.push(headers.cookie ?? '')
    request.resume()
    response.writeHead(200, {
      'access-control-allow-origin': headers.origin ?? '*',
      'access-control-allow-credentials': 'true',
      'access-control-allow-headers': 'content-type',
      'content-type': TYPES[url.split('.').at(-1)!] ?? TYPES[url.split('/').at(-1)!] ?? 'text/html',
      'cache-control': 'no-store',
    })
    response.end(BODIES[url.split('.').at(-1)!] ?? BODIES[url.split('/').at(-1)!] ?? '<p>page</p>')
  }
  const server: Server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    requests,
    cookies,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript',
  css: 'text/css',
  svg: 'image/svg+xml',
  follow: 'text/event-stream',
}
const BODIES: Readonly<Record<string, string>> = {
  js: 'globalThis.loaded = true',
  css: 'p { color: red }',
  svg: '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>',
  follow: 'data: x\n\n',
}

/** Resolves with what an element got: `loaded` where the browser used the response. */
const element = (make: string): string => `new Promise((resolve) => {
  const each = ${make}
  each.onload = () => resolve('loaded')
  each.onloadeddata = () => resolve('loaded')
  each.onerror = () => resolve('nothing')
  document.body.append(each)
})`
const made = (name: string, properties: string): string =>
  element(`Object.assign(document.createElement('${name}'), ${properties})`)
const got = (promise: string): string => `${promise}.then((text) => text, () => 'nothing')`

/** Attempts to read: each is an expression for the page of the attacker. */
const READS: Readonly<Record<string, (at: string) => string>> = {
  'fetch with credentials': (at) =>
    got(`fetch('${at}', { credentials: 'include' }).then((answer) => answer.text())`),
  'fetch without CORS': (at) =>
    got(`fetch('${at}', { credentials: 'include', mode: 'no-cors' }).then((a) => a.text())
      .then((text) => text === '' ? 'nothing' : text)`),
  'a call with a preflight': (at) =>
    got(`fetch('${at}about', { method: 'POST', credentials: 'include', body: '{}',
      headers: { 'content-type': 'application/json' } }).then((answer) => answer.text())`),
  XMLHttpRequest: (at) => `new Promise((resolve) => {
    const request = new XMLHttpRequest()
    request.withCredentials = true
    request.onload = () => resolve(request.responseText)
    request.onerror = () => resolve('nothing')
    request.open('GET', '${at}')
    request.send()
  })`,
  'a script': (at) => made('script', `{ src: '${at}console.js' }`),
  'a module': (at) => made('script', `{ type: 'module', src: '${at}console.js' }`),
  'a style': (at) => made('link', `{ rel: 'stylesheet', href: '${at}style.css' }`),
  'an image': (at) => made('img', `{ src: '${at}icon.svg' }`),
  EventSource: (at) => `new Promise((resolve) => {
    const source = new EventSource('${at}follow', { withCredentials: true })
    source.onmessage = () => resolve('loaded')
    source.onerror = () => resolve('nothing')
  })`,
}

/** Attempts that a server of the attacker cannot imitate: a browser stops them by itself. */
const STOPPED: Readonly<Record<string, (at: string) => string>> = {
  WebSocket: (at) => `new Promise((resolve) => {
    const socket = new WebSocket('${at.replace('http', 'ws')}follow')
    socket.onopen = () => resolve('open')
    socket.onerror = () => resolve('nothing')
  })`,
  'a service worker': (at) =>
    `navigator.serviceWorker === undefined ? 'nothing' :
      navigator.serviceWorker.register('${at}console.js')
        .then(() => 'registered', () => 'nothing')`,
  'a worker': (at) => `new Promise((resolve) => {
    try {
      const worker = new Worker('${at}console.js')
      worker.onmessage = () => resolve('ran')
      worker.onerror = () => resolve('nothing')
    } catch {
      resolve('nothing')
    }
  })`,
  'a frame': (at) => `new Promise((resolve) => {
    const frame = Object.assign(document.createElement('iframe'), { src: '${at}' })
    frame.onload = () => {
      try {
        resolve(frame.contentWindow.document.body.innerHTML || 'nothing')
      } catch {
        resolve('nothing')
      }
    }
    document.body.append(frame)
  })`,
  'a window': (at) => `new Promise((resolve) => {
    const opened = open('${at}', '_blank')
    setTimeout(() => {
      try {
        resolve(opened.document.body.innerText || 'nothing')
      } catch {
        resolve('nothing')
      }
    }, 2_000)
  })`,
  'a named window of the console': (at) => `new Promise((resolve) => {
    const opened = open('${at}', 'console')
    setTimeout(() => {
      try {
        resolve(String(opened.about ?? (opened.document.title || 'nothing')))
      } catch {
        resolve('nothing')
      }
    }, 2_000)
  })`,
}

/** Attempts to change, with a body that is a call. */
const WRITES: Readonly<Record<string, (at: string, body: string) => string>> = {
  'a POST without CORS': (at, body) =>
    got(`fetch('${at}', { method: 'POST', mode: 'no-cors', credentials: 'include',
      body: ${JSON.stringify(body)} }).then(() => 'nothing')`),
  'a POST with the media type of a call': (at, body) =>
    got(`fetch('${at}', { method: 'POST', mode: 'cors', credentials: 'include',
      headers: { 'content-type': 'application/json' }, body: ${JSON.stringify(body)} })
      .then((answer) => answer.text())`),
  sendBeacon: (at, body) =>
    `(navigator.sendBeacon('${at}', new Blob([${JSON.stringify(body)}],
      { type: 'text/plain' })), 'nothing')`,
  'a form': (at, body) => `new Promise((resolve) => {
    const frame = Object.assign(document.createElement('iframe'), { name: 'target' })
    document.body.append(frame)
    const form = Object.assign(document.createElement('form'),
      { method: 'POST', action: '${at}', enctype: 'text/plain', target: 'target' })
    form.append(Object.assign(document.createElement('input'),
      { name: ${JSON.stringify(body)}, value: '' }))
    document.body.append(form)
    form.submit()
    frame.onload = () => resolve('nothing')
  })`,
}

const bodyOf = (environmentId: string): string =>
  JSON.stringify({
    environmentId,
    params: { name: 'ATTACKED' },
    body: { expectedRevision: '0', kind: 'variable', value: 'x', changedAtMicros: '1' },
  })

async function variables(): Promise<string[]> {
  const { entries } = await app.svc(argv`config list --root ${app.installation.productRoot}`)
  return entries.map(({ name }: Json) => name)
}

/** Returns what an attack got; one that a browser leaves without an answer got nothing either. */
const gets = (tab: Tab, attack: string): Promise<string> =>
  tab.evaluate(`Promise.race([${attack},
    new Promise((resolve) => setTimeout(() => resolve('${NOTHING}'), ${ATTACK_MS_MAX}))])`)

/** The page of the console is as it was, and works. */
async function isUnharmed(): Promise<void> {
  expect(await variables()).toEqual([])
  expect((await postOf(page.tab, 'about', {})).status).toBe(200)
  expect(await page.tab.evaluate('[location.href.split("#")[0], opener]')).toEqual([base, null])
}

beforeAll(async () => {
  if (!chromiumInstalled) return
  app = await application()
  ;[victim, attacker] = [await openVictim(), await openVictim()]
  page = await openConsole(app, { hosts: [NAME] })
  base = await page.tab.evaluate<string>('location.origin + location.pathname')
  call = `${base}call/setConfiguration`
  saved = join(app.installation.directory, 'saved')
  mkdirSync(saved)
})

afterAll(async () => {
  await page?.close()
  victim?.close()
  attacker?.close()
  await app?.installation.dispose()
})

const where = chromiumInstalled
  ? 'other pages in headless Chromium'
  : 'other pages in Chromium, which is not installed here'

const PLACES = {
  'another port': () => attacker.origin,
  'another name of the machine': () => `http://${NAME}:${attacker.port}`,
} as const

const until = (tab: Tab, expression: string) =>
  expect.poll(() => tab.evaluate<boolean>(expression), DEADLINE).toBe(true)

async function openAttacker(origin: string): Promise<Tab> {
  const tab = await page.browser.open(`${origin}/`)
  await until(tab, `location.origin === '${origin}' && document.readyState === 'complete'`)
  return tab
}

describe.skipIf(!chromiumInstalled)(where, () => {
  test.each(Object.entries(PLACES))('a page at %s reads nothing', async (_, origin) => {
    const tab = await openAttacker(origin())
    for (const [name, attack] of Object.entries(READS)) {
      const control = await gets(tab, attack(`${victim.origin}/base/`))
      const isReadable = name !== 'fetch without CORS'
      expect([name, control !== NOTHING]).toEqual([name, isReadable])
      expect([name, await gets(tab, attack(base))]).toEqual([name, NOTHING])
    }
    for (const [name, attack] of Object.entries(STOPPED)) {
      expect([name, await gets(tab, attack(base))]).toEqual([name, NOTHING])
    }
    await isUnharmed()
  })

  test.each(Object.entries(PLACES))('a page at %s changes nothing', async (_, origin) => {
    const tab = await openAttacker(origin())
    const { environmentId } = (await postOf(page.tab, 'about', {})).body.result
    const body = bodyOf(environmentId)
    for (const [name, attack] of Object.entries(WRITES)) {
      const path = `/call/${encodeURIComponent(name)}`
      await gets(tab, attack(`${victim.origin}${path}`, body))
      await expect.poll(() => victim.requests, DEADLINE).toContain(`POST ${path}`)
      expect([name, await gets(tab, attack(call, body))]).toEqual([name, NOTHING])
    }
    await isUnharmed()
  })

  test('a name that is bound to the address of the console reaches nothing', async () => {
    const { port, pathname } = new URL(base)
    const rebound = `http://${NAME}:${port}`
    const tab = await page.browser.open(`${rebound}${pathname}`)
    await until(tab, `location.origin === '${rebound}' && document.readyState === 'complete'`)
    expect(await tab.evaluate('document.body.innerText.trim()')).toBe('403')
    const status = (path: string, init: object) =>
      tab.evaluate(`fetch('${path}', ${JSON.stringify(init)}).then(({ status }) => status)`)
    expect(await status(pathname, {})).toBe(403)
    expect(await status(`${pathname}console.js`, {})).toBe(403)
    const headers = { 'content-type': 'application/json' }
    const { environmentId } = (await postOf(page.tab, 'about', {})).body.result
    const body = bodyOf(environmentId)
    const post = { method: 'POST', headers, body }
    expect(await status(`${pathname}call/setConfiguration`, post)).toBe(403)
    expect(await status(new URL(page.url).pathname, {})).toBe(403)
    await isUnharmed()
  })

  test('a name of a download gives another page nothing, and stays for the console', async () => {
    const root = argv`--root ${app.installation.productRoot}`
    await page.browser.saveDownloads(saved)
    const file = `${app.installation.productRoot}/service.json`
    await app.svc(argv`files put ${file} --key object ${root}`)
    const { environmentId } = (await postOf(page.tab, 'about', {})).body.result
    const { items } = (
      await postOf(page.tab, 'call/listBuckets', { environmentId, query: { limit: 10 } })
    ).body.result
    const params = { bucketId: items[0].bucketId, objectKey: 'object' }
    const given = { environmentId, params, fileName: 'object' }
    const { body } = await postOf(page.tab, 'prepare/readObject', given)
    const address = base + body.result.path
    const tab = await openAttacker(attacker.origin)
    for (const [name, attack] of Object.entries({ ...READS, ...STOPPED })) {
      expect([name, await gets(tab, attack(address))]).toEqual([name, NOTHING])
    }
    await tab.evaluate(`void Object.assign(document.createElement('a'),
      { href: '${address}', download: '' }).click()`)
    await isUnharmed()
    await page.tab.evaluate(`void Object.assign(document.createElement('a'),
      { href: '${address}', download: '' }).click()`)
    await expect.poll(() => readdirSync(saved), DEADLINE).toEqual(['object'])
  })

  test('cookies of another port do not close the page, and get none of it', async () => {
    const tab = await openAttacker(attacker.origin)
    await tab.evaluate(`void Array.from({ length: 100 }, (_, i) => {
      document.cookie = 'svc-console' + (i === 0 ? '' : i) + '=wrong; Path=/'
    })`)
    await isUnharmed()
    expect(await tab.evaluate('document.cookie.includes("svc-console=wrong")')).toBe(true)
    await tab.evaluate(`fetch('/').then((answer) => answer.text())`)
    expect(attacker.cookies.at(-1)).toContain('svc-console=wrong')
    const all = [...attacker.cookies, ...victim.cookies].join('; ')
    expect(all.match(/svc-console=(?!wrong)\S*/)).toBeNull()
  })

  test('an address that was not used is used up by no page that knows it', async () => {
    const command = await runConsole(app)
    try {
      const start = command.url()
      for (const origin of [attacker.origin, `http://${NAME}:${attacker.port}`]) {
        const tab = await openAttacker(origin)
        for (const [name, attack] of Object.entries({ ...READS, ...STOPPED })) {
          expect([name, await gets(tab, attack(start))]).toEqual([name, NOTHING])
        }
        await tab.evaluate(`void document.head.append(
          Object.assign(document.createElement('link'), { rel: 'prefetch', href: '${start}' }),
          Object.assign(document.createElement('script'), { type: 'speculationrules',
            text: '{"prerender":[{"urls":["${start}"]}],"prefetch":[{"urls":["${start}"]}]}' }))`)
        await tab.evaluate(`void (location.href = '${start}')`)
        await until(tab, `location.origin !== '${origin}' && document.readyState === 'complete'`)
        expect(await tab.evaluate('document.body.innerText.trim()')).toBe('403')
      }
      const opened = await page.browser.open(start)
      await until(opened, `document.querySelector('nav a') !== null`)
      expect(command.url()).toBe(start)
    } finally {
      command.kill()
    }
  })
})

describe.skipIf(process.getuid?.() !== 0 || process.platform !== 'linux')(
  'another user of this machine (needs root on Linux)',
  () => {
    const NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']

    const curl = (as: readonly string[], url: string, cookie = ''): Promise<Result> => {
      const headers = [...HEADERS, ...(cookie === '' ? [] : [`cookie: ${cookie}`])]
      const options = [
        '--silent',
        '--include',
        '--max-time',
        '60',
        ...headers.flatMap((each) => ['-H', each]),
      ]
      const environment = { PATH: process.env.PATH ?? '' }
      return run([...as, 'curl', ...options, url], { environment })
    }

    test('gets nothing, with or without the address and the cookie', async () => {
      const command = await runConsole(app)
      try {
        const start = command.url()
        expect((await curl(NOBODY, start)).stdout).toBe('')
        const opened = (await curl([], start)).stdout
        expect(opened).toMatch(/^HTTP\/1\.1 303 /)
        const cookie = /^set-cookie: ([^;]+)/im.exec(opened)![1]!
        const path = /^location: (\S+)/im.exec(opened)![1]!
        const address = new URL(path, start).href
        expect((await curl([], address, cookie)).stdout).toMatch(/^HTTP\/1\.1 200 /)
        for (const url of [start, address, `${address}console.js`, new URL('/', start).href]) {
          expect([url, (await curl(NOBODY, url)).stdout]).toEqual([url, ''])
          expect([url, (await curl(NOBODY, url, cookie)).stdout]).toEqual([url, ''])
        }
        expect((await curl([], address, cookie)).stdout).toMatch(/^HTTP\/1\.1 200 /)
      } finally {
        command.kill()
      }
    })

    test('an address that was used gives nothing, and the page that it opened ends', async () => {
      const command = await runConsole(app)
      try {
        const start = command.url()
        const opened = (await curl([], start)).stdout
        const cookie = /^set-cookie: ([^;]+)/im.exec(opened)![1]!
        const address = new URL(/^location: (\S+)/im.exec(opened)![1]!, start).href
        const again = (await curl([], start)).stdout
        expect(again).toMatch(/^HTTP\/1\.1 410 /)
        expect(again).not.toMatch(/^(?:set-cookie|location):/im)
        expect((await curl([], address, cookie)).stdout).toMatch(/^HTTP\/1\.1 403 /)
        await expect.poll(() => command.url(), DEADLINE).not.toBe(start)
        expect((await curl([], start)).stdout).toMatch(/^HTTP\/1\.1 403 /)
      } finally {
        command.kill()
      }
    })
  },
)
