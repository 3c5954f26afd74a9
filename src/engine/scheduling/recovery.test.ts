/** The counts that a start makes of the work that the last server stored. */
import { afterEach, expect, test } from 'vitest'
import { type SimulatedEngine, simulatedEngine } from '../../../testing/engine/simulated-engine.ts'
import { functionManifest } from '../../../testing/products.ts'
import { finishWork, insertWork, type WorkFields } from '../scheduled-work/scheduled-documents.ts'

let bench: SimulatedEngine | null = null
afterEach(() => bench?.close())

test('a start counts the sizes of deliveries, and none of other work', async () => {
  const functions = [functionManifest('a.store', { kind: 'mutation' })]
  bench = await simulatedEngine({ functions, handlers: { 'a.store': () => null } })
  const { engine, system, release } = bench
  const text = JSON.stringify('"source":"http"'.padEnd(500))
  const work: WorkFields = {
    function: 'a.store',
    kind: 'mutation',
    releaseId: release.releaseId,
    argumentsText: text,
    source: 'function',
    cron: null,
    dueAtMicros: system.nowMicros() + 3_600_000_000n,
  }
  await engine.documents.change(async (transaction) => {
    const delivery: WorkFields = { ...work, source: 'http', http: { mount: 'main', route: 'a' } }
    await insertWork(transaction, work)
    await insertWork(transaction, delivery)
    const ended = await insertWork(transaction, delivery)
    const finish = { attempts: 1, errorCode: null, atMicros: system.nowMicros() }
    await finishWork(transaction, ended, { state: 'succeeded', ...finish })
  })
  expect(engine.scheduler.statistics.deliveryCharacters).toBe(2 * text.length)
  bench = await bench.reopen()
  await bench.engine.scheduler.whenSettled()
  expect(bench.engine.scheduler.statistics).toMatchObject({
    deliveryCharacters: 2 * text.length,
    unfinished: 2,
  })
})
