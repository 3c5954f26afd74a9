/**
 * A delivery whose handler fails, from the first answer to the effect: operators see its reason,
 * promote a corrected Release, and replay it.
 *
 * @module-tag slow
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Json, UNTYPED } from '../application.ts'
import { argv } from '../argv.ts'
import { effects, untilHandled } from './campaign.ts'
import { deliverUntilAccepted, type Event } from './deliveries.ts'
import { type HookedApplication, hookedApplication } from './workspace.ts'

const EVENT: Event = { hook: 'once', id: 'evt_failing' }
const FAILING = "throw new Error('the total is missing')"

let application: HookedApplication
beforeAll(async () => {
  application = await hookedApplication()
})
afterAll(() => application?.app.installation.dispose())

const remote = () => argv`--remote --root ${application.app.installation.productRoot}`
const svc = (args: readonly string[]): Promise<Json> =>
  application.app.svc(argv`${args} ${remote()}`)
const release = () => svc(argv`release --channel production ${UNTYPED}`)
const stateOf = (id: string) => svc(argv`http delivery main ${id}`)

test('a failed delivery has its effect once after a corrected Release and a replay', async () => {
  const file = join(application.app.installation.workspace, 'functions/hooks.ts')
  const corrected = readFileSync(file, 'utf8')
  writeFileSync(
    file,
    corrected.replace('await ctx.db.insert', `${FAILING}\n    await ctx.db.insert`),
  )
  await release()
  const id = await deliverUntilAccepted(application, EVENT)
  await untilHandled(application)
  expect(await stateOf(id)).toMatchObject({
    event: EVENT.id,
    state: 'failed',
    lastErrorMessage: expect.stringContaining('the total is missing'),
    content: { body: Buffer.from(JSON.stringify({ id: EVENT.id })).toString('base64url') },
  })
  // The same code fails again.
  await svc(argv`http replay main ${id}`)
  await untilHandled(application)
  expect(await stateOf(id)).toMatchObject({ state: 'failed', attempts: 2 })
  expect((await effects(application)).get(EVENT.id)).toBeUndefined()

  writeFileSync(file, corrected)
  const { releaseId } = await release()
  const { items } = await svc(argv`http deliveries main --state failed`)
  expect(items.map(({ deliveryId }: Json) => deliveryId)).toEqual([id])
  const replayed = await svc(argv`http replay main ${id}`)
  expect(replayed).toMatchObject({ state: 'pending', releaseId })
  await untilHandled(application)
  const { operationId } = replayed.operation
  const repeat = await svc(argv`http replay main ${id} --operation-id ${operationId}`)
  expect(repeat.operation.replayed).toBe(true)
  expect(await deliverUntilAccepted(application, EVENT)).toBe(id)
  await untilHandled(application)
  expect(await stateOf(id)).toMatchObject({ state: 'succeeded', attempts: 3, hasContent: true })
  expect((await effects(application)).get(EVENT.id)).toBe(1)
})
