/**
 * An event keeps its delivery regardless of what happens between two of its repeats: a shutdown, a
 * rotation of the keys, another Release, one without the hook, and a mount that is made again.
 *
 * @module-tag slow
 */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Json, UNTYPED } from '../application.ts'
import { argv } from '../argv.ts'
import { run, SERVER } from '../harness.ts'
import { effects, untilHandled } from './campaign.ts'
import { deliver, deliverUntilAccepted, type Event, HOOKS } from './deliveries.ts'
import { type HookedApplication, hookedApplication } from './workspace.ts'

let application: HookedApplication
beforeAll(async () => {
  application = await hookedApplication()
})
afterAll(() => application?.app.installation.dispose())

const remote = () => argv`--remote --root ${application.app.installation.productRoot}`
const svc = (args: readonly string[]): Promise<Json> =>
  application.app.svc(argv`${args} ${remote()}`)

let count = 0
/** Sends one new event to each hook; returns the events with their deliveries. */
async function firstDeliveries(): Promise<ReadonlyMap<Event, string>> {
  const number = ++count
  const sent = new Map<Event, string>()
  for (const hook of HOOKS) {
    const event = { hook, id: `evt_${number}_${hook}` }
    sent.set(event, await deliverUntilAccepted(application, event))
  }
  await untilHandled(application)
  return sent
}

/** Sends the events again: each has its first delivery, and no further effect. */
async function expectRepeats(sent: ReadonlyMap<Event, string>): Promise<void> {
  const before = await effects(application)
  for (const [event, id] of sent) {
    expect(before.get(event.id)).toBeGreaterThan(0)
    expect(await deliverUntilAccepted(application, event)).toBe(id)
  }
  await untilHandled(application)
  expect(await effects(application)).toEqual(before)
}

test('a shutdown loses no delivery that was accepted, and repeats none', async () => {
  const events = Array.from({ length: 64 }, (_, i) => {
    return { hook: HOOKS[i % HOOKS.length]!, id: `evt_stop_${i}` }
  })
  const sending = events.map((event) => deliver(application, event))
  await Promise.any(
    sending.map(async (each) => {
      if ((await each)?.status !== 202) throw new Error('not accepted')
    }),
  )
  await application.app.restart('stop')
  const answers = await Promise.all(sending)
  await untilHandled(application)
  const found = await effects(application)
  for (const [i, answer] of answers.entries()) {
    const { hook, id } = events[i]!
    if (answer?.status === 202) expect(found.get(id), id).toBeGreaterThan(0)
    else expect(answer?.status ?? 503).toBe(503)
    if (hook !== 'action') expect(found.get(id) ?? 0, id).toBeLessThanOrEqual(1)
  }
  for (const [i, event] of events.entries()) {
    const again = await deliverUntilAccepted(application, event)
    if (answers[i]?.status === 202) expect(again).toBe(answers[i]!.body.deliveryId)
  }
})

test('an event keeps its delivery after rotations of the keys', async () => {
  const sent = await firstDeliveries()
  const { app } = application
  const environment = {
    ...app.installation.environment,
    SERVICE_PRODUCT_ROOT: app.installation.productRoot,
  }
  for (let i = 0; i < 2; i++) {
    await app.server.stop()
    const { directory } = app.installation
    const { status, stderr } = await run(argv`${SERVER} rotate-keys`, { environment, directory })
    expect(status, stderr).toBe(0)
    await app.start()
    await expectRepeats(sent)
  }
})

test('an event keeps its delivery under another Release, and after a rollback', async () => {
  const { workspace } = application.app.installation
  const first = (await svc(argv`releases list`)).releases[0].releaseId
  writeFileSync(join(workspace, 'functions/other.ts'), 'export const other = 1\n')
  const released = await svc(argv`release --channel production ${UNTYPED}`)
  const sent = await firstDeliveries()
  rmSync(join(workspace, 'http.ts'))
  const without = await svc(argv`release --channel production ${UNTYPED}`)
  for (const event of sent.keys()) {
    const answer = await deliver(application, event)
    expect(answer).toEqual({ status: 404, body: null })
  }
  await svc(
    argv`rollback --channel production --expected ${without.releaseId} --to ${released.releaseId}`,
  )
  await expectRepeats(sent)
  await svc(argv`rollback --channel production --expected ${released.releaseId} --to ${first}`)
  await expectRepeats(sent)
})

test('an event keeps its delivery when its mount is removed and made again', async () => {
  const sent = await firstDeliveries()
  await svc(argv`http unmount main`)
  for (const event of sent.keys()) {
    expect(await deliver(application, event)).toEqual({ status: 404, body: null })
  }
  const { path, token } = await svc(
    argv`http mount main --target channel:production --secret-path --rate 1000`,
  )
  // The earlier secret part is unknown, and the new one leads to the same events.
  const [event] = sent.keys()
  expect(await deliver(application, event!)).toEqual({ status: 404, body: null })
  application = { ...application, path: `${path}/${token}` }
  await expectRepeats(sent)
})

test('metrics count new deliveries and repeats, and the health stays whole', async () => {
  const before = await svc(argv`metrics`)
  const sent = await firstDeliveries()
  await expectRepeats(sent)
  const after = await svc(argv`metrics`)
  const grown = (name: string) => Number(after.counters[name]) - Number(before.counters[name])
  expect([grown('deliveriesAccepted'), grown('deliveriesRepeated')]).toEqual([3, 3])
  expect(Number(after.gauges.deliveryCharacters)).toBeGreaterThan(
    Number(before.gauges.deliveryCharacters),
  )
  const { components } = await svc(argv`health`)
  const scheduler = components.find(({ name }: Json) => name === 'scheduler')
  expect(scheduler.status).toBe('healthy')
})
