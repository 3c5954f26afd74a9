/** The launcher of the desktop and a whole login, with scripts in place of `xdg-open`. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FakeProvider } from '../../../testing/client/fake-provider.ts'
import { FakeServer } from '../../../testing/client/fake-server.ts'
import { runProcess } from '../../../testing/client/processes.ts'
import { TestClient } from '../../../testing/client/test-client.ts'
import { openBrowser } from './browsers.ts'

const URL_TEXT = 'https://idp.test/authorize?a=1&b=$(touch%20x)&c=%3B'
const path = process.env.PATH
let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-browser-'))
  process.env.PATH = directory
})

afterEach(() => {
  process.env.PATH = path
  rmSync(directory, { recursive: true, force: true })
})

function launcher(...lines: readonly string[]): void {
  const file = join(directory, 'xdg-open')
  writeFileSync(file, ['#!/bin/sh', ...lines, ''].join('\n'))
  chmodSync(file, 0o755)
}

describe('the launcher', () => {
  it('gets the address as one argument without a shell', async () => {
    launcher(`printf '%s\\n' "$#" "$@" > ${directory}/seen`)
    expect(await openBrowser('linux', URL_TEXT)).toBe(true)
    expect(readFileSync(join(directory, 'seen'), 'utf8')).toBe(`1\n${URL_TEXT}\n`)
  })

  it('returns false if it fails or is missing', async () => {
    for (const platform of ['linux', 'darwin', 'win32', 'freebsd']) {
      expect(await openBrowser(platform, URL_TEXT)).toBe(false)
    }
    launcher('exit 3')
    expect(await openBrowser('linux', URL_TEXT)).toBe(false)
    chmodSync(join(directory, 'xdg-open'), 0o644)
    expect(await openBrowser('linux', URL_TEXT)).toBe(false)
  })
})

describe('the process of svc login --browser', () => {
  let server: FakeServer
  let provider: FakeProvider
  let client: TestClient

  beforeEach(async () => {
    server = await new FakeServer().start()
    provider = await new FakeProvider().start()
    client = new TestClient()
    server.oidcConfig = () => provider.config
    server.externalToken = provider.accessToken
    server.linked = true
    client.variables.PATH = directory
  })

  afterEach(() => {
    server.stop()
    provider.stop()
    client[Symbol.dispose]()
  })

  const login = (): string[] => ['login', '--url', server.origin, '--browser', '--json']

  it('opens the browser, which shows the final page', { tags: ['slow'] }, async () => {
    const visit = 'const page = await (await fetch(process.argv.at(-1))).text()'
    const keep = `require('node:fs').writeFileSync('${directory}/page', page)`
    launcher(`exec ${process.execPath} -e "${visit};${keep}" "$1"`)
    const started = performance.now()
    const ran = await runProcess(client, login())
    expect([ran.exit, ran.err]).toEqual([0, ''])
    expect(JSON.parse(ran.out).session.sessionId).toBe(server.sessionId)
    // The process ends as soon as it has printed its result.
    expect(performance.now() - started).toBeLessThan(60_000)
    const page = () => readFileSync(join(directory, 'page'), 'utf8')
    await expect.poll(page).toContain('You are logged in')
  })

  it('ends with 130 after an interrupt and closes its port', { tags: ['slow'] }, async () => {
    let address = ''
    const ran = await runProcess(client, [...login(), '--no-open'], (child) => {
      child.stderr?.on('data', (chunk) => {
        address += chunk
        if (address.endsWith('\n')) child.kill('SIGINT')
      })
    })
    expect([ran.exit, JSON.parse(ran.out).error.code]).toEqual([130, 'CLIENT_INTERRUPTED'])
    const [url = ''] = /http:\S+/.exec(address) ?? []
    await expect(fetch(new URL(url).searchParams.get('redirect_uri')!)).rejects.toThrow()
  })

  it('prints the address without a browser, and waits', { tags: ['slow'] }, async () => {
    const ran = await runProcess(client, login(), (child) => {
      let text = ''
      child.stderr?.on('data', (chunk) => {
        text += chunk
        const [url] = text.endsWith('\n') ? (/http:\S+/.exec(text) ?? []) : []
        if (url !== undefined) void fetch(url).then((response) => response.text())
      })
    })
    expect(ran.exit).toBe(0)
    expect(ran.err).toMatch(/^No browser could be started\. Open this address:\nhttp:\S+\n$/)
  })
})
