/**
 * Each event of another service has one effect, though it is sent up to three times and in
 * parallel, and the server is killed meanwhile (contract/wire.md, HTTP mounts). SVC_TEST_LONG=1
 * sends 100,000 events and kills the server every 20 seconds.
 *
 * @module-tag slow
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SEED } from '../../testing/seeds.ts'
import { STORES } from '../serializability/stores.ts'
import {
  type CampaignOptions,
  contradictions,
  effects,
  runCampaign,
  untilHandled,
} from './campaign.ts'
import { deliver, deliverUntilAccepted } from './deliveries.ts'
import { type HookedApplication, hookedApplication } from './workspace.ts'

const IS_LONG = process.env.SVC_TEST_LONG === '1'
const EVENTS = Number(process.env.SVC_TEST_DELIVERIES ?? (IS_LONG ? 100_000 : 75))
const KILLS: CampaignOptions['kills'] = IS_LONG ? { everyMillis: 20_000 } : { times: 2 }
const MILLIS_MAX = IS_LONG ? 3_600_000 : 600_000
/** Maximum number of contradictions that are printed. */
const SHOWN = 10
/** Events that are sent again at the end, after an orderly restart. */
const REPEATED = 50

describe.each([
  ['SQLite', 'sqlite'],
  ['PostgreSQL', 'postgres'],
] as const)('with documents in %s', (_, name) => {
  let store: Awaited<ReturnType<(typeof STORES)[typeof name]>>
  let application: HookedApplication
  beforeAll(async () => {
    store = await STORES[name]()
    application = await hookedApplication(store.environment)
  })
  afterAll(async () => {
    await application?.app.installation.dispose()
    await store?.dispose()
  })

  test(`${EVENTS} events have one effect each, though the server is killed again and again`, {
    timeout: MILLIS_MAX,
  }, async () => {
    const seed = `SVC_SEED=${SEED} SVC_TEST_DELIVERIES=${EVENTS}`
    const campaign = await runCampaign(application, { seed: SEED, events: EVENTS, kills: KILLS })
    const begun = performance.now()
    await untilHandled(application)
    const behind = performance.now() - begun
    // A start counts what was stored before it in the background.
    const lines = async () => contradictions(campaign, await effects(application)).slice(0, SHOWN)
    await expect.poll(lines, { timeout: 60_000, message: seed }).toEqual([])
    const found = await effects(application)
    const { sent, kills, unanswered, millis } = campaign
    const answers = sent.reduce((sum, { deliveryIds }) => sum + deliveryIds.length, 0)
    console.info(
      `${name}, ${seed}: ${EVENTS} events in ${Math.round(millis)} ms, ${kills} kills, ` +
        `${answers} answers, ${unanswered} given up, ${found.size} with an effect, ` +
        `handled ${Math.round(behind)} ms later`,
    )
    expect(kills).toBeGreaterThan(0)

    await application.app.restart('stop')
    const repeated = sent.filter(({ deliveryIds }) => deliveryIds.length > 0).slice(-REPEATED)
    for (const event of repeated) {
      expect(await deliverUntilAccepted(application, event), seed).toBe(event.deliveryIds[0])
    }
    await untilHandled(application)
    expect(await effects(application)).toEqual(found)
  })

  test('an event with a signature of another secret has no effect', async () => {
    const before = await effects(application)
    const stranger = { ...application, secrets: { STANDARD: 'whsec_AAAA', GITHUB: 'another one' } }
    for (const hook of ['once', 'digest', 'action'] as const) {
      const answer = await deliver(stranger, { hook, id: `evt_of_a_stranger_${hook}` })
      expect(answer).toMatchObject({ status: 401, body: { error: { code: 'SIGNATURE_INVALID' } } })
    }
    await untilHandled(application)
    expect(await effects(application)).toEqual(before)
  })
})
