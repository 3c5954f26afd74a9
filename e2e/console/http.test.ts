/**
 * HTTP in the console: an operator finds out why a delivery failed, and replays it.
 *
 * @module-tag slow
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { type Json, UNTYPED } from '../application.ts'
import { argv } from '../argv.ts'
import { effects, untilHandled } from '../deliveries/campaign.ts'
import { deliverUntilAccepted, type Event } from '../deliveries/deliveries.ts'
import { type HookedApplication, hookedApplication } from '../deliveries/workspace.ts'
import { type ConsolePage, openConsole } from './console-page.ts'

/** The handler writes the event, a space and a UUID into a name of at most 64 characters. */
const MARKUP = '<img/src=x/onerror=a=1>'
const BIDIRECTIONAL = 'safe\u202egnp.exe'
const EVENT: Event = { hook: 'once', id: `e${MARKUP}` }
const FAILING = `throw new Error('the total is missing ${MARKUP} ${BIDIRECTIONAL}')`

let application: HookedApplication
let page: ConsolePage

beforeAll(async () => {
  if (!chromiumInstalled) return
  application = await hookedApplication()
  page = await openConsole(application.app)
})

afterAll(async () => {
  await page?.close()
  await application?.app.installation.dispose()
})

const svc = (args: readonly string[]): Promise<Json> =>
  application.app.svc(argv`${args} --root ${application.app.installation.productRoot}`)
const release = () => svc(argv`release --channel production ${UNTYPED}`)
const functions = () => join(application.app.installation.workspace, 'functions/hooks.ts')

/** Chooses a state as a person does. */
const choose = (state: string): Promise<void> =>
  page.tab.evaluate(`(() => {
    const select = document.querySelector('.filters select')
    select.value = ${JSON.stringify(state)}
    select.dispatchEvent(new Event('change', { bubbles: true }))
  })()`)

const where = chromiumInstalled
  ? 'HTTP in the console in headless Chromium'
  : 'HTTP in the console in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  let corrected: string
  let deliveryId: string

  test('a mount is shown without its secret, and a state filters its deliveries', async () => {
    await page.show('http')
    await page.sees('channel:production')
    await page.sees('/v1/http/main/hkt_…/…')
    await page.isAccessible('http-mounts')
    await page.click('main')
    await page.sees('Nothing came in the last 7 days.')
    corrected = readFileSync(functions(), 'utf8')
    const failing = corrected.replace('await ctx.db.insert', `${FAILING}\n    await ctx.db.insert`)
    writeFileSync(functions(), failing)
    await release()
    deliveryId = await deliverUntilAccepted(application, EVENT)
    await untilHandled(application)
    await page.click('Reload')
    await page.sees('FUNCTION_FAILED: Error: the total is missing')
    await choose('succeeded')
    await page.sees('No delivery is in this state.')
    await choose('failed')
    await page.sees(EVENT.id)
    await page.isAccessible('http-deliveries')
    const token = application.path.split('/').at(-1)!
    expect(token).toMatch(/^hkt_/)
    const html = await page.tab.evaluate<string>('document.documentElement.outerHTML')
    expect(html).not.toContain(token)
  })

  test('a failed delivery says why, with what came, as text', async () => {
    await page.click(EVENT.id)
    await page.sees('Correct the handler, promote its Release, then replay the delivery.')
    await page.sees(MARKUP)
    await page.sees('safe\\u{202e}gnp.exe')
    await page.sees('webhook-id')
    await page.sees(JSON.stringify({ id: EVENT.id }))
    expect(await page.text()).not.toContain('\u202e')
    expect(await page.tab.evaluate('String(window.a)')).toBe('undefined')
    expect(await page.tab.evaluate(`document.querySelectorAll('main img').length`)).toBe(0)
    await page.isAccessible('http-delivery')
  })

  test('a delivery of a stranger is shown as text, whatever its query and body', async () => {
    const { app, path } = application
    const query = new URLSearchParams({ a: BIDIRECTIONAL, b: MARKUP })
    const response = await fetch(`${app.server.application}${path}/open?${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: `${BIDIRECTIONAL} ${MARKUP}` }),
    })
    expect(response.status).toBe(202)
    const accepted = await response.json()
    await untilHandled(application)
    await page.show(`http?mount=main&delivery=${accepted.deliveryId}`)
    await page.sees('?a')
    await page.sees(`{"id":"safe\\u{202e}gnp.exe ${MARKUP}"}`)
    expect(await page.text()).not.toContain('\u202e')
    expect(await page.tab.evaluate('String(window.a)')).toBe('undefined')
    await page.isAccessible('http-stranger')
  })

  test('a corrected handler runs a failed delivery once, after a question', async () => {
    writeFileSync(functions(), corrected)
    await release()
    await page.show(`http?mount=main&delivery=${deliveryId}`)
    await page.sees('Correct the handler')
    await page.click('Replay …')
    await page.sees(`svc http replay main ${deliveryId}`)
    await page.isAccessible('http-replay')
    await page.click('Cancel')
    expect((await svc(argv`http delivery main ${deliveryId}`)).state).toBe('failed')
    await page.click('Replay …')
    await page.click('Replay the delivery')
    await page.sees('Done: Replay the delivery')
    await page.sees('succeeded')
    await expect.poll(() => page.text()).not.toContain('Correct the handler')
    expect((await effects(application)).get(EVENT.id)).toBe(1)
    await page.isAccessible('http-replayed')
  })
})
