/**
 * A user logs in at a real OpenID Provider: the executables, the provider and a browser.
 *
 * @module-tag slow
 */
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Browser, httpBrowser } from '../../testing/browsers/browser.ts'
import { chromium, chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { providerFile } from '../../testing/providers/identity-providers.ts'
import { type OpenIdProvider, openIdProvider } from '../../testing/providers/oidc-providers.ts'
import type { ServerProcess } from '../../testing/servers/server-process.ts'
import { argv } from '../argv.ts'
import { CLIENT, createInstallation, type Installation, run } from '../harness.ts'

let installation: Installation
let op: OpenIdProvider
let server: ServerProcess

const within = (...names: string[]): string => join(installation.directory, ...names)

/** The program that svc opens addresses with on a desktop. It writes the address for the test. */
const OPENER = '#!/bin/sh\nprintf %s "$1" > ../opened.part && /bin/mv ../opened.part ../opened\n'

beforeEach(async () => {
  installation = await createInstallation()
  op = await openIdProvider({ forms: true })
  const content = JSON.stringify(providerFile(op.settings))
  writeFileSync(within('oidc.json'), content, { mode: 0o600 })
  server = await installation.start({ SERVICE_PLATFORM_OIDC_CONFIG: within('oidc.json') })
  mkdirSync(within('bin'))
  writeFileSync(within('bin/xdg-open'), OPENER, { mode: 0o755 })
})

afterEach(async () => {
  await installation?.dispose()
  await op?.close()
})

/** Runs `svc login --browser --json` with a browser at the address that it opens or prints. */
async function login(browser: Browser, args: readonly string[], code: string | null) {
  rmSync(within('opened'), { force: true })
  let printed = ''
  const running = run(
    argv`
      ${CLIENT} login --url ${server.management} --browser --json ${args}
      ${code === null ? [] : argv`--code-env CODE`}
    `,
    {
      environment: {
        ...installation.clientEnvironment,
        PATH: within('bin'),
        ...(code !== null && { CODE: code }),
      },
      directory: within('run'),
      onStderr: (text) => {
        printed += text
      },
    },
  )
  const address = (): string => {
    if (existsSync(within('opened'))) return readFileSync(within('opened'), 'utf8')
    const line = /^http:\S+$/m.exec(printed)?.[0]
    if (line === undefined) throw new Error(`no address was opened or printed: ${printed}`)
    return line
  }
  const page = await browser.visit(await vi.waitFor(address, { timeout: 60_000 }))
  const { status, stdout, stderr } = await running
  return { page, status, stdout, stderr, opened: existsSync(within('opened')) }
}

/** Logins of a user at the provider, before and after being invited, on two devices. */
async function story(browser: Browser): Promise<void> {
  const stranger = await login(browser, [], null)
  expect([stranger.status, stranger.opened]).toEqual([3, true])
  expect(stranger.page.title).toBe('The login failed')
  expect(stranger.page.forms).toEqual(['login', 'consent'])
  expect(JSON.parse(stranger.stdout).error.next).toContain('--code-env')
  expect(existsSync(within('config/credentials-v1.json'))).toBe(false)

  const code = readFileSync(installation.codeFile, 'utf8').trim()
  const first = await login(browser, argv`--device first`, code)
  expect([first.status, first.stderr, first.opened]).toEqual([0, '', true])
  expect(first.page.title).toBe('You are logged in')
  // The provider knows the user now; it requires consent for a native client each time.
  expect(first.page.forms).toEqual(['consent'])

  const second = await login(browser, argv`--device second --no-open`, null)
  expect([second.status, second.opened]).toEqual([0, false])
  expect(second.page.title).toBe('You are logged in')

  const { operator } = JSON.parse(first.stdout)
  const me = JSON.parse((await installation.svc(argv`whoami --json`)).stdout)
  expect([me.operator, me.session.deviceName]).toEqual([operator, 'second'])
  const { sessions } = JSON.parse((await installation.svc(argv`sessions --json`)).stdout)
  expect(sessions).toHaveLength(2)

  const file = within('config/credentials-v1.json')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const everything = [readFileSync(file, 'utf8'), ...server.lines]
  for (const { stdout, stderr } of [stranger, first, second]) everything.push(stdout, stderr)
  for (const { page } of [stranger, first, second]) {
    const callback = new URL(page.url)
    expect([callback.hostname, callback.pathname]).toEqual(['127.0.0.1', '/callback'])
    // Neither the provider's code nor any of its tokens is stored or printed.
    expect(everything.join('\n')).not.toContain(callback.searchParams.get('code'))
  }
  expect(everything.join('\n')).not.toContain('eyJ')
}

test('a user logs in at the provider, driven over HTTP', async () => {
  await story(httpBrowser())
})

const where = chromiumInstalled
  ? 'in headless Chromium'
  : 'in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  test('a user logs in at the provider', async () => {
    const browser = await chromium()
    try {
      await story(browser)
    } finally {
      await browser.close()
    }
  })
})
