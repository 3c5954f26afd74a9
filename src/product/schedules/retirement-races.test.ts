/**
 * Races of a retirement with scheduled work: all work that remains has a Release that can run it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type HeldStore, heldStore } from '../../../testing/documents/held-stores.ts'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { functionManifest, publishRelease, REQUEST_ID } from '../../../testing/products.ts'
import { bindChannel } from '../../../testing/releases.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import { finishWork, insertWork } from '../../engine/scheduled-work/scheduled-documents.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { retire } from '../releases/retire.ts'

const tick = functionManifest('a.tick', { kind: 'mutation', visibility: 'internal', clients: [] })
let gateway: TestGateway
let held: HeldStore
let directory: string
let runs = 0
let old: ReleaseId
let current: ReleaseId

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-retirement-'))
  held = heldStore(await openSqliteDocuments(join(directory, 'documents.db')))
  const handlers = {
    'a.tick': () => {
      runs += 1
      return null
    },
  }
  gateway = await openTestGateway({ functions: [tick], tables: [], handlers, store: held.store })
  old = gateway.releaseId
  const { releaseId } = await publishRelease(gateway.harness, { functions: [tick], source: 'next' })
  current = releaseId
  bindChannel(gateway.harness, releaseId, { expectedReleaseId: old })
  await gateway.harness.product.serving.whenIdle()
  await gateway.engine.scheduler.whenSettled()
})
afterAll(async () => {
  await gateway.close()
  rmSync(directory, { recursive: true })
})

/** Schedules work as a call in flight of the Release does; `beforeCommit` runs in between. */
function schedule(releaseId: ReleaseId, beforeCommit: () => void = () => undefined) {
  return gateway.engine.documents.change(async (transaction) => {
    const scheduledId = await insertWork(transaction, {
      function: 'a.tick',
      kind: 'mutation',
      releaseId,
      argumentsText: '{}',
      dueAtMicros: 0n,
      source: 'function',
      cron: null,
    })
    beforeCommit()
    return scheduledId
  })
}

const retireOld = () => {
  const { product, actor } = gateway.harness
  retire(product, actor, { releaseId: old, requestId: REQUEST_ID })
}

test('a Release is in use while a commit that schedules its work is not durable yet', async () => {
  held.hold()
  const scheduling = schedule(old)
  await held.arrived()
  expect(retireOld).toThrow(expect.objectContaining({ code: 'PRODUCT_STATE_CONFLICT' }))
  held.release()
  await scheduling
  await expect.poll(() => runs).toBe(1)
})

test('a Release is in use until the end of its work is durable', async () => {
  const scheduled = gateway.engine.scheduler
  held.hold()
  const scheduling = schedule(old)
  await held.arrived()
  held.release()
  await scheduling
  // This is the commit that ends the work, because nothing else is due.
  held.hold()
  await held.arrived()
  expect(scheduled.pendingOf(old)).toBe(1)
  expect(retireOld).toThrow(expect.objectContaining({ code: 'PRODUCT_STATE_CONFLICT' }))
  held.release()
  await expect.poll(() => scheduled.pendingOf(old), { timeout: 60_000 }).toBe(0)
})

test('a Release is unused again after that commit has failed', async () => {
  held.hold()
  const scheduling = schedule(old)
  await held.arrived()
  expect(gateway.engine.scheduler.pendingOf(old)).toBe(1)
  held.fail('UNAVAILABLE')
  await expect(scheduling).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  expect(gateway.engine.scheduler.pendingOf(old)).toBe(0)
})

test('a call in flight at the retirement schedules nothing', async () => {
  await expect(schedule(old, retireOld)).rejects.toMatchObject({ code: 'RELEASE_RETIRED' })
  expect(gateway.engine.scheduler.pendingOf(old)).toBe(0)
  const { items } = await gateway.engine.scheduler.list(null, 100)
  expect(items.map(({ state }) => state)).toEqual(['succeeded', 'succeeded'])
})

test('failed work is not made to run again under a retired Release', async () => {
  const { engine } = gateway
  const scheduledId = await engine.documents.change(async (transaction) => {
    const id = await insertWork(transaction, {
      function: 'a.tick',
      kind: 'mutation',
      releaseId: current,
      argumentsText: '{}',
      dueAtMicros: 0n,
      source: 'function',
      cron: null,
    })
    const finish = { attempts: 1, errorCode: 'INTERNAL', atMicros: 0n }
    await finishWork(transaction, id, { state: 'failed', ...finish })
    return id
  })
  const next = { function: 'a.tick', kind: 'mutation', rerunBy: null } as const
  const retired = engine.scheduler.rerun(scheduledId, { ...next, releaseId: old })
  await expect(retired).rejects.toMatchObject({ code: 'RELEASE_RETIRED' })
  expect(engine.scheduler.pendingOf(old)).toBe(0)
})
