/** The counts that a start makes of the work that the last server stored. */
import { afterEach, expect, test } from 'vitest'
import { type SimulatedEngine, simulatedEngine } from '../../../testing/engine/simulated-engine.ts'
import { functionManifest } from '../../../testing/products.ts'
import {
  finishWork,
  insertWork,
  SUCCEEDED_CHARACTERS_MAX,
  type WorkFields,
} from '../scheduled-work/scheduled-documents.ts'

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
    const http = { mount: 'main', route: 'a', event: 'evt', method: 'POST', path: '/', bytes: 2 }
    const delivery: WorkFields = { ...work, source: 'http', http }
    await insertWork(transaction, work)
    await insertWork(transaction, delivery)
    const ended = await insertWork(transaction, delivery)
    const finish = { attempts: 1, errorCode: null, atMicros: system.nowMicros() }
    await finishWork(transaction, ended, { state: 'succeeded', ...finish })
    // Its arguments are dropped.
    const long = JSON.stringify('x'.repeat(SUCCEEDED_CHARACTERS_MAX))
    const dropped = await insertWork(transaction, { ...delivery, argumentsText: long })
    await finishWork(transaction, dropped, { state: 'succeeded', ...finish })
  })
  const stored = 2 * text.length + '{}'.length
  expect(engine.scheduler.statistics.deliveryCharacters).toBe(stored)
  bench = await bench.reopen()
  await bench.engine.scheduler.whenSettled()
  expect(bench.engine.scheduler.statistics).toMatchObject({
    deliveryCharacters: stored,
    unfinished: 2,
  })
})
