/**
 * Clients and keys in the console: a key is made, rotated with an overlap, revoked and deleted.
 *
 * @module-tag slow
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { type Application, application, type Json } from '../application.ts'
import { argv } from '../argv.ts'
import { type ConsolePage, openConsole } from './console-page.ts'

/** Names have no control characters, so this one may stand in a name. */
const MARKUP = '<img src=x onerror="window.attacked=1">'
const BIDIRECTIONAL = 'safe\u202egnp.exe'

let app: Application
let page: ConsolePage
let root: readonly string[]
/** Keys that the page showed. */
const shown: string[] = []

beforeAll(async () => {
  if (!chromiumInstalled) return
  app = await application()
  root = argv`--root ${app.installation.productRoot}`
  page = await openConsole(app)
})

afterAll(async () => {
  await page?.close()
  await app?.installation.dispose()
})

/** The status of a call of a Function that does not exist: 404 with a valid key, else 401. */
async function statusWith(key: string): Promise<number> {
  const response = await fetch(`${app.server.application}/v1/functions/no.such`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-service-key': key,
      'x-service-target': 'channel:production',
    },
    body: '{}',
  })
  await response.body?.cancel()
  return response.status
}

const VALID = 404
const REJECTED = 401

/** The key that the page shows. */
async function shownKey(prefix: string): Promise<string> {
  await page.sees(prefix)
  const block = `document.querySelector('[aria-label="Key"]').innerText`
  const key = await page.tab.evaluate<string>(block)
  expect(key).toMatch(/^rk_(?:pub|sec|dev)_v1_[\w-]{43}$/)
  if (!shown.includes(key)) shown.push(key)
  return key
}

async function credentialsOf(clientId: string): Promise<Json[]> {
  return (await app.svc(argv`credentials list ${root} --client ${clientId}`)).credentials
}

async function clientOf(name: string): Promise<Json> {
  const { clients } = await app.svc(argv`clients list ${root}`)
  return clients.find((each: Json) => each.name === name)
}

const chosenScopes = `[...document.querySelectorAll('input[name=scope]')]
  .filter((each) => each.checked).map((each) => each.value).join()`

const where = chromiumInstalled
  ? 'clients and keys of the console in headless Chromium'
  : 'clients and keys of the console in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  test('a person creates a client and a key, and copies the key', async () => {
    await page.show('clients')
    await page.sees('Application Clients')
    await page.isAccessible('clients')
    await page.fill('input[name=name]', MARKUP)
    expect(await page.tab.evaluate(chosenScopes)).toBe('mutation,query,realtime')
    await page.click('Create the client')
    await page.sees('This client has no key yet')
    const { clientId, kind } = await clientOf(MARKUP)
    expect(kind).toBe('confidential')
    await page.isAccessible('client')

    await page.fill('input[name=name]', MARKUP)
    await page.fill('input[name=rate]', '50')
    await page.click('Create the key')
    await page.sees('This key is shown only once.')
    const key = await shownKey('rk_sec_v1_')
    await page.sees('X-Service-Key')
    expect(await page.tab.evaluate('document.activeElement.id')).toBe('issued')
    expect(await statusWith(key)).toBe(VALID)
    await page.isAccessible('new-key')
    const [credential] = await credentialsOf(clientId)
    expect(credential).toMatchObject({ rateLimit: 50, scopes: ['mutation', 'query', 'realtime'] })

    await page.tab.evaluate(`void (navigator.clipboard.writeText = async (text) => {
      window.copied = text
    })`)
    await page.click('Copy')
    await page.sees('Copied.')
    expect(await page.tab.evaluate('window.copied')).toBe(key)
    await page.tab.evaluate('void delete window.copied')
    await page.click('It is stored: hide the key')
    await expect.poll(() => page.text()).not.toContain(key)
    expect(await page.tab.evaluate('String(window.attacked)')).toBe('undefined')
    expect(await page.tab.evaluate(`document.querySelectorAll('main img').length`)).toBe(0)
  })

  test('a rotated key works beside its replacement until it is revoked', async () => {
    const { clientId } = await clientOf(MARKUP)
    const [old] = await credentialsOf(clientId)
    const oldKey = shown[0]!
    await page.show('clients')
    await page.sees('New Application Client')
    await page.click(MARKUP)
    await page.click(`Rotate … ${old.credentialId}`)
    await page.sees(`svc credentials rotate --client ${clientId} --credential ${old.credentialId}`)
    await page.isAccessible('rotate')
    expect(await credentialsOf(clientId)).toHaveLength(1)
    await page.click('Make the second key')
    const newKey = await shownKey('rk_sec_v1_')
    expect(newKey).not.toBe(oldKey)
    const all = await credentialsOf(clientId)
    const made = all.find(({ credentialId }: Json) => credentialId !== old.credentialId)
    expect(made).toMatchObject({ replaces: old.credentialId, name: MARKUP, rateLimit: 50 })
    await page.sees('its replacement was not used yet')
    expect([await statusWith(oldKey), await statusWith(newKey)]).toEqual([VALID, VALID])

    const isUsed = async () => {
      await page.click('Reload')
      return page.text()
    }
    await expect.poll(isUsed, { timeout: 120_000 }).toContain('its replacement is used')
    await page.isAccessible('rotated')
    await page.click(`Revoke … ${old.credentialId}`)
    await page.sees('rejected permanently')
    await page.click('Cancel')
    expect(await statusWith(oldKey)).toBe(VALID)
    await page.click(`Revoke … ${old.credentialId}`)
    await page.click('Revoke the key')
    await page.sees('Done: Revoke the key')
    expect([await statusWith(oldKey), await statusWith(newKey)]).toEqual([REJECTED, VALID])

    await page.click(`Delete … ${old.credentialId}`)
    await page.click('Delete the key')
    await page.sees('Deleted keys (1)')
    const after = await credentialsOf(clientId)
    const { state } = after.find(({ credentialId }: Json) => credentialId === old.credentialId)
    expect(state).toBe('deleted')
  })

  test('a public key is revealed again, and a development client has its one scope', async () => {
    await page.show('clients')
    await page.sees('New Application Client')
    await page.tab.evaluate(`(() => {
      const kind = document.querySelector('select[name=kind]')
      kind.value = 'public'
      kind.dispatchEvent(new Event('change', { bubbles: true }))
    })()`)
    await page.fill('input[name=name]', 'web')
    await page.click('Create the client')
    await page.sees('This client has no key yet')
    await page.fill('input[name=name]', 'page')
    await page.click('Create the key')
    await page.sees('can be shown again')
    const key = await shownKey('rk_pub_v1_')
    await page.click('Hide the key')
    await expect.poll(() => page.text()).not.toContain(key)
    await page.click('Reveal crd_')
    expect(await shownKey('rk_pub_v1_')).toBe(key)

    await page.show('clients')
    await page.sees('New Application Client')
    expect(await page.text()).not.toContain(key)
    await page.tab.evaluate(`(() => {
      const kind = document.querySelector('select[name=kind]')
      kind.value = 'development'
      kind.dispatchEvent(new Event('change', { bubbles: true }))
    })()`)
    await expect.poll(() => page.tab.evaluate(chosenScopes)).toBe('workspace')
  })

  test('a rejected request says why, and names that the server accepts are shown', async () => {
    await page.fill('input[name=name]', BIDIRECTIONAL)
    await page.tab.evaluate(`void document.querySelector('input[name=scope]').click()`)
    await page.click('Create the client')
    await page.sees('PRODUCT_INVALID')
    await page.sees('maximumScopes')
    await page.isAccessible('client-rejected')
    await page.tab.evaluate(`void document.querySelector('input[name=scope]').click()`)
    await page.click('Create the client')
    await expect.poll(() => page.text()).not.toContain('PRODUCT_INVALID')
    await page.sees('This client has no key yet')
    await page.sees('safe\\u{202e}gnp.exe')
    const heading = `document.querySelector('main h2').innerText`
    expect(await page.tab.evaluate(heading)).toBe('safe\\u{202e}gnp.exe')
    expect(await page.text()).not.toContain('\u202e')
    await page.isAccessible('bidirectional')
  })

  test('no key stays anywhere but on the page that was asked for it', async () => {
    expect(shown).toHaveLength(3)
    await page.show('')
    await page.sees('Health')
    const kept = await page.tab.evaluate<string>(
      `JSON.stringify([location.href, document.cookie, { ...localStorage }, { ...sessionStorage },
        performance.getEntries().map(({ name }) => name), document.documentElement.outerHTML,
        history.length])`,
    )
    await page.end()
    const { stdout: log } = await app.installation.svc(argv`logs ${root} --limit 1000 --json`)
    expect(log).toContain('product.application_credential.rotate')
    for (const key of shown) {
      expect(kept).not.toContain(key)
      expect(page.printed()).not.toContain(key)
      expect(log).not.toContain(key)
    }
  })
})
