/**
 * Operators, sessions and the audit in the console, against the compiled server.
 *
 * @module-tag slow
 */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { type Application, application, type Json } from '../application.ts'
import { argv } from '../argv.ts'
import { type ConsolePage, openConsole } from './console-page.ts'

/** Markup in the name of a device, which a stranger writes, and in that of an operator. */
const HOSTILE = '<img src=x onerror="window.attacked=1">'
const BIDIRECTIONAL = `ana\u202egnp.exe ${HOSTILE}`
const VISIBLE = `ana\\u{202e}gnp.exe ${HOSTILE}`

let app: Application
let page: ConsolePage
let operatorId: string
let code: string

const root = () => argv`--root ${app.installation.productRoot}`
const homeOf = (name: string): string => join(app.installation.directory, `home-${name}`)

/** Runs svc as another operator, who has a home of its own. */
async function svcOf(name: string, args: readonly string[], variables: Json = {}) {
  const environment = { SERVICE_CONFIG_HOME: homeOf(name), ...variables }
  const { status, stdout } = await app.installation.svc(argv`${args} --json`, environment)
  return { status, body: JSON.parse(stdout) }
}

const login = (name: string, given: string, device: string) =>
  svcOf(name, [...argv`login --url ${app.server.management} --code-env CODE --device`, device], {
    CODE: given,
  })

const dialogText = () =>
  page.tab.evaluate<string>(`document.querySelector('dialog[open]')?.innerText ?? ''`)
const asks = (text: string) => expect.poll(dialogText, { timeout: 60_000 }).toContain(text)

beforeAll(async () => {
  if (!chromiumInstalled) return
  app = await application()
  page = await openConsole(app)
})

afterAll(async () => {
  await page?.close()
  await app?.installation.dispose()
})

const where = chromiumInstalled
  ? 'the administration of operators in headless Chromium'
  : 'the administration of operators in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  test('an owner invites an operator, whose code is shown once', async () => {
    await page.show('operators')
    await page.sees('All operators')
    await page.fill('input[name=operator-name]', BIDIRECTIONAL)
    await page.tab.evaluate(`(() => {
      const role = document.querySelector('select[name=role]')
      role.value = 'developer'
      role.dispatchEvent(new Event('change', { bubbles: true }))
    })()`)
    await page.sees('--role developer')
    await page.isAccessible('operators')
    await page.click('Invite')
    await page.sees('it is shown once, and works once')
    const shown = `document.querySelector('[aria-label="Code of the invitation"]').innerText`
    code = (await page.tab.evaluate<string>(shown)).trim()
    expect(code).toMatch(/^rk_inv_v1_/)
    // A picture of the page is kept for people: it has no code that works.
    await page.tab.evaluate(
      `document.querySelector('[aria-label="Code of the invitation"]').innerText = 'hidden'`,
    )
    await page.isAccessible('invitation')
    expect((await login('ana', code, HOSTILE)).status).toBe(0)
    await page.click('Done, hide the code')
    await page.click('Reload')
    await page.sees(VISIBLE)
    const kept = 'document.documentElement.innerHTML + location + JSON.stringify(localStorage)'
    expect(await page.tab.evaluate<string>(kept)).not.toContain(code)
  })

  test('an owner sees what an operator may do and where it is logged in, as text', async () => {
    await page.click(VISIBLE)
    await page.sees('Its records in the audit')
    await page.sees(HOSTILE)
    await page.sees('developer')
    const address = await page.tab.evaluate<string>('location.hash')
    operatorId = new URLSearchParams(address.split('?')[1]).get('operator')!
    expect(await page.text()).not.toContain('\u202e')
    expect(await page.tab.evaluate('String(window.attacked)')).toBe('undefined')
    expect(await page.tab.evaluate(`document.querySelectorAll('main img').length`)).toBe(0)
    await page.isAccessible('operator')
  })

  test('a revoked grant has no effect at once, and a role is given again', async () => {
    expect((await svcOf('ana', argv`status --remote ${root()}`)).status).toBe(0)
    await page.click('Revoke … the Environment')
    await asks(`svc grants revoke ${operatorId} --scope environment --project-id`)
    await page.isAccessible('question-grant')
    await page.click('Revoke the grant')
    await page.sees('It has no grant')
    const denied = await svcOf('ana', argv`status --remote ${root()}`)
    expect([denied.status, denied.body.error.code]).toEqual([3, 'PLATFORM_ACCESS_DENIED'])

    await page.click('Give the role …')
    await asks('has nothing there')
    await page.click('Give the role')
    await page.sees('observer')
    await expect
      .poll(async () => (await svcOf('ana', argv`status --remote ${root()}`)).status)
      .toBe(0)
    const me = await svcOf('ana', argv`whoami`)
    expect(me.body.grants).toMatchObject([{ source: 'invitation' }])
    expect(me.body.grants[0].capabilities).not.toContain('data:write')
  })

  test('an ended session of another operator fails at its next call', async () => {
    const { body } = await svcOf('ana', argv`whoami`)
    await page.click('Reload')
    await page.click(`End … ${body.session.sessionId}`)
    await asks(`svc sessions revoke ${body.session.sessionId}`)
    expect(await dialogText()).not.toContain('This console runs on it')
    await page.click('End the session')
    await page.sees('No session of it can be used.')
    const failed = await svcOf('ana', argv`whoami`)
    expect([failed.status, failed.body.error.code]).toEqual([3, 'PLATFORM_AUTHENTICATION_FAILED'])
  })

  test('a disabled operator is shown as such, and enabled again', async () => {
    await page.click('Disable …')
    await asks(`svc operators disable ${operatorId}`)
    await page.click('Disable the operator')
    await page.sees('Enable …')
    const { items } = await app.svc(argv`operators`)
    const stateOf = (found: Json[]) =>
      found.find((each) => each.operatorId === operatorId).disabledAtMicros
    expect(stateOf(items)).toMatch(/^\d+$/)
    await page.click('Enable …')
    await page.click('Enable the operator')
    await page.sees('Disable …')
    expect(stateOf((await app.svc(argv`operators`)).items)).toBeNull()
  })

  test('the audit says who did it, and that it was done in the console', async () => {
    await page.show(`audit?operation=session.revoke`)
    await page.sees('session.revoke')
    const row = `[...document.querySelectorAll('main tbody tr')].map((each) =>
      [...each.children].slice(1, 6).map((cell) => cell.innerText.trim()))`
    const rows = await page.tab.evaluate<string[][]>(row)
    const [owner] = (await app.svc(argv`operators`)).items.slice(-1)
    expect(rows[0]!.slice(0, 4)).toEqual([
      'session.revoke',
      'succeeded',
      owner.operatorName,
      'console',
    ])
    expect(rows[0]![4]).toContain(VISIBLE)
    await page.show('audit')
    for (const operation of ['grants.revoke', 'grants.change', 'invitation.create']) {
      await page.sees(operation)
    }
    await page.isAccessible('audit')
    const { items } = await app.svc(argv`audit --limit 100`)
    const purposes = items
      .filter(({ operation }: Json) => /^(grants|operator|invitation\.create)/.test(operation))
      .map(({ purpose }: Json) => purpose)
    expect(purposes).toEqual(['console', 'console', 'console', 'console', 'console'])
    const { stdout } = await app.installation.svc(argv`audit --operation grants.revoke`)
    expect(stdout).toMatch(/PURPOSE\n.* console\n/)
  })

  test('a record of a change of the Environment leads to its request in the log', async () => {
    await page.show('audit?operation=product.channel.promote')
    await page.click('req_')
    await page.sees('Records of one request')
    await page.sees('product.channel.promote')
  })

  test('nobody cuts off the session of the console without being told', async () => {
    const { sessionId } = (await app.svc(argv`whoami`)).session
    await page.show('sessions')
    await page.sees('login, which this console runs on')
    await page.isAccessible('sessions')
    await page.click(`End … ${sessionId}`)
    await asks('This console runs on it')
    await page.isAccessible('question-own-session')
    await page.click('Cancel')
    expect((await app.svc(argv`whoami`)).session.sessionId).toBe(sessionId)
  })

  test('an operator without operators:manage sees own sessions, and ends none here', async () => {
    const invite = argv`invite --operator-name eve --role observer --scope environment ${root()}`
    expect((await login('eve', (await app.svc(invite)).code, 'laptop')).status).toBe(0)
    const { installation } = app
    const clientEnvironment = {
      ...installation.clientEnvironment,
      SERVICE_CONFIG_HOME: homeOf('eve'),
    }
    const other = await openConsole({
      ...app,
      installation: { ...installation, clientEnvironment },
    })
    try {
      const links = `[...document.querySelectorAll('nav a')].map((each) => each.innerText)`
      const pages = await other.tab.evaluate<string[]>(links)
      expect(pages).toContain('Sessions')
      for (const name of ['Operators', 'Audit', 'Backups', 'Doctor']) {
        expect(pages).not.toContain(name)
      }
      await other.show('sessions')
      await other.sees('svc sessions revoke SESSION')
      await other.sees('derived for this console')
      expect(await other.text()).not.toContain('End …')
      await other.isAccessible('sessions-observer')
      expect(await other.end()).toBe(130)
    } finally {
      await other.close()
    }
  })

  test('an owner who ends the own session is told, and the page says what is next', async () => {
    const { sessionId } = (await app.svc(argv`whoami`)).session
    await page.click(`End … ${sessionId}`)
    await page.click('End the session')
    await page.sees('svc login')
    expect((await app.installation.svc(argv`whoami --json`)).status).toBe(3)
  })
})
