/**
 * An observer in the console: no page offers what the role lacks, and the server permits none.
 *
 * @module-tag slow
 */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CONSOLE_OPERATIONS, CONSOLE_UPLOADS } from '../../src/client/console/operations.ts'
import { type Capability, capabilitiesOfRole } from '../../src/value/capabilities.ts'
import type { ManagementOperation } from '../../src/wire/operations/operation.ts'
import { chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { type Application, application, type Json, operationId } from '../application.ts'
import { argv } from '../argv.ts'
import { type Answer, callOf, postOf, uploadOf } from './console-calls.ts'
import { type ConsolePage, openConsole } from './console-page.ts'

const DEADLINE = { timeout: 120_000 }
const HELD: ReadonlySet<Capability> = new Set(capabilitiesOfRole('observer'))

/** Buttons that change nothing. */
const HARMLESS = ['Skip to the content', 'Reload', 'Filter', 'Show', 'Export as', 'Check']
/** Pages of rights that the role lacks. */
const HIDDEN = ['operators', 'audit', 'backups', 'doctor']
/** Operations that every operator has for itself, and none of another one. */
const OWN = ['listSessions', 'revokeSession']

let app: Application
let page: ConsolePage
let environmentId: string

beforeAll(async () => {
  if (!chromiumInstalled) return
  app = await application()
  const { installation, server } = app
  const root = argv`--root ${installation.productRoot}`
  await app.svc(argv`config set GREETING hello ${root}`)
  await app.svc(argv`http mount main --target channel:production ${root}`)
  await app.svc(argv`promote --channel staging --release ${app.releaseId} --expected empty ${root}`)
  const invite = argv`invite --operator-name eve --role observer --scope environment ${root}`
  const { code } = await app.svc(invite)
  const home = { SERVICE_CONFIG_HOME: join(installation.directory, 'home-eve') }
  await app.svc(argv`login --url ${server.management} --code-env CODE`, { ...home, CODE: code })
  const clientEnvironment = { ...installation.clientEnvironment, ...home }
  page = await openConsole({ installation: { ...installation, clientEnvironment } })
  const about = await postOf(page.tab, 'about', {})
  environmentId = about.body.result.environmentId
})

afterAll(async () => {
  await page?.close()
  await app?.installation.dispose()
})

/** The labels of buttons and inputs that act, also in closed details. */
const CONTROLS = `(() => {
  for (const each of document.querySelectorAll('main details')) each.open = true
  return [...document.querySelectorAll('button, input[type=file], a[download]')]
    .map((each) => (each.innerText ?? '').trim() || each.name)
})()`
const LINKS = `[...document.querySelectorAll('main a, nav a')].map(({ hash }) => hash)`
const SETTLED = `document.querySelector('main') !== null &&
  document.querySelector('[aria-busy=true]') === null &&
  !document.body.innerText.includes('Loading …')`

type Listed = readonly [string, ManagementOperation]

const capabilityOf = ({ access }: ManagementOperation): Capability | null =>
  'capability' in access ? (access.capability as Capability | null) : null

/** The operations of a list that the role lacks. */
function lacking(list: Readonly<Record<string, ManagementOperation>>): Listed[] {
  return Object.entries(list).filter(([name, operation]) => {
    const capability = capabilityOf(operation)
    return !OWN.includes(name) && capability !== null && !HELD.has(capability)
  })
}

/** Parameters of the form that the path has; none of them needs to exist. */
function paramsOf({ path }: ManagementOperation): Json {
  const prefixes: Json = {
    clientId: 'app',
    credentialId: 'crd',
    operatorId: 'opr',
    invitationId: 'inv',
    bucketId: 'bkt',
    storageKeyId: 'stk',
    scheduledId: 'sch',
    sessionId: 'ops',
  }
  const values: Json = { releaseId: app.releaseId, clientId: app.clientId, mount: 'main' }
  return Object.fromEntries(
    [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => [
      name,
      values[name] ?? (name in prefixes ? operationId().replace('opn', prefixes[name]) : 'name'),
    ]),
  )
}

/** The code and the request of each rejection, by its operation. */
const rejected = new Map<string, { readonly code: string; readonly requestId: string | null }>()

function keep(name: string, { status, body }: Answer): void {
  expect([name, status, body.error?.code]).toEqual([name, 403, 'PLATFORM_ACCESS_DENIED'])
  rejected.set(name, body.error)
}

const where = chromiumInstalled
  ? 'an observer in headless Chromium'
  : 'an observer in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  test('no page offers an act that the role lacks', async () => {
    const waiting = ['#/']
    const known = new Set(waiting)
    const offered = new Set<string>()
    let visited = 0
    while (waiting.length > 0 && visited < 80) {
      const address = waiting.shift()!
      await page.show(address.slice('#/'.length))
      await expect.poll(() => page.tab.evaluate<boolean>(SETTLED), DEADLINE).toBe(true)
      for (const each of await page.tab.evaluate<string[]>(CONTROLS)) offered.add(each)
      visited++
      for (const link of await page.tab.evaluate<string[]>(LINKS)) {
        if (known.has(link)) continue
        known.add(link)
        waiting.push(link)
      }
    }
    expect(visited).toBeGreaterThan(10)
    const acts = [...offered].filter((each) => !HARMLESS.some((name) => each.startsWith(name)))
    expect(acts).toEqual([])
    for (const name of HIDDEN) expect(known).not.toContain(`#/${name}`)
  })

  test('the address of a page that the role lacks shows that it is none', async () => {
    for (const name of HIDDEN) {
      await page.show(name)
      await page.sees('There is no such page, or your grants do not include it.')
    }
  })

  test('the server rejects each call that the role lacks', async () => {
    for (const [name, operation] of lacking(CONSOLE_OPERATIONS)) {
      const parts = { environmentId, params: paramsOf(operation), body: {} }
      keep(name, await callOf(page.tab, name, parts))
    }
    expect(rejected.size).toBeGreaterThan(35)
  })

  test('the server rejects each upload and stream that the role lacks', async () => {
    for (const [name, operation] of lacking(CONSOLE_UPLOADS)) {
      const given = { environmentId, params: paramsOf(operation), contentType: 'text/plain' }
      keep(name, await uploadOf(page.tab, name, given, 'text'))
    }
    keep('follow', await postOf(page.tab, 'follow', { environmentId }))
    expect(rejected.get('putObject')).toBeDefined()
  })

  test('the calls that the role has are not rejected for want of a right', async () => {
    for (const [name, parts] of [
      ['readStatus', {}],
      ['listConfiguration', {}],
      ['listBuckets', { query: { limit: 10 } }],
      ['listSessions', { query: { limit: 10 } }],
    ] as const) {
      expect([name, (await callOf(page.tab, name, { environmentId, ...parts })).status]).toEqual([
        name,
        200,
      ])
    }
  })

  test('the log of the server has ten rejections of a session, and counts the others', async () => {
    const requestIds = [...rejected.values()].map(({ requestId }) => requestId)
    const sent = requestIds.filter((each) => each !== null)
    // A session that manages operators is derived for none of these, so they are not sent.
    const unsent = [...rejected].filter(([, { requestId }]) => requestId === null)
    for (const [name] of unsent) {
      const { access }: ManagementOperation = CONSOLE_OPERATIONS[name as never]
      expect([name, access]).toEqual([name, { kind: 'operator', capability: 'operators:manage' }])
    }
    const { server } = app
    await app.restart('stop')
    const denials = server.lines
      .filter((line) => line.includes('PLATFORM_ACCESS_DENIED'))
      .map((line) => JSON.parse(line) as Json)
    const whole = denials.filter(({ event }) => event === 'request.rejected')
    const counted = denials.filter(({ event }) => event === 'request.rejections_suppressed')
    expect(whole.length).toBeGreaterThanOrEqual(10)
    for (const { requestId, purpose } of whole) {
      expect(sent).toContain(requestId)
      expect(purpose).toBe('console')
    }
    const others = counted.map(({ suppressed }) => Number(suppressed.PLATFORM_ACCESS_DENIED))
    expect(whole.length + others.reduce((sum, count) => sum + count, 0)).toBe(sent.length)
  })

  test('nothing was changed', async () => {
    const root = argv`--root ${app.installation.productRoot}`
    const { entries } = await app.svc(argv`config list ${root}`)
    expect(entries.map(({ name }: Json) => name)).toEqual(['GREETING'])
    const { items } = await app.svc(argv`operators`)
    expect(items).toHaveLength(2)
  })
})
