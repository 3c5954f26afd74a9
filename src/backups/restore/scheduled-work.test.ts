/**
 * @module-tag slow
 */
/*
 * Goal: work in flight is treated after a restore as after a crash. Method: an engine under
 * simulated time over documents that are backed up, and another one over those that are restored
 * days later.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type BackedUpServer,
  backedUpServer,
  type DocumentsIn,
  RestorePlace,
} from '../../../testing/backups/backed-up-server.ts'
import {
  type SimulatedEngine,
  SteppedSystem,
  simulatedEngine,
} from '../../../testing/engine/simulated-engine.ts'
import { functionManifest } from '../../../testing/products.ts'
import { insertWork, type WorkFields } from '../../engine/scheduled-work/scheduled-documents.ts'
import type { PlannedCron } from '../../engine/scheduling/crons/crons.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const CRON: PlannedCron = {
  name: 'tick',
  schedule: '0 * * * *',
  timeZone: 'UTC',
  everyMillis: null,
  function: 'a.tick',
  kind: 'mutation',
  argumentsText: '{}',
  overlap: 'skip',
}
const FUNCTIONS = [
  functionManifest('a.run', { kind: 'mutation' }),
  functionManifest('a.receive', { kind: 'mutation', arguments: { delivery: { type: 'any' } } }),
  functionManifest('a.tick', { kind: 'mutation' }),
]

describe.each<DocumentsIn>(['sqlite', 'postgres'])('scheduled work in %s', (documents) => {
  let server: BackedUpServer
  let place: RestorePlace
  let engine: SimulatedEngine | null

  beforeEach(async () => {
    engine = null
    server = await backedUpServer(documents)
    place = await RestorePlace.make(documents)
  })
  afterEach(async () => {
    await engine?.close()
    await place.dispose()
    await server.dispose()
  })

  /** Opens an engine whose runs of Functions are noted in a list of their names. */
  async function open(
    open: () => ReturnType<RestorePlace['openDocuments']>,
    system: SteppedSystem,
  ): Promise<{ bench: SimulatedEngine; ran: string[] }> {
    const ran: string[] = []
    const handlers = Object.fromEntries(
      FUNCTIONS.map(({ name }) => [
        name,
        () => {
          ran.push(name)
          return null
        },
      ]),
    )
    const bench = await simulatedEngine({ functions: FUNCTIONS, handlers, system, open })
    engine = bench
    return { bench, ran }
  }

  /** Schedules a Mutation, and stores the request of another service, both an hour from now. */
  async function schedule({ engine: { documents: stored }, system, release }: SimulatedEngine) {
    const work: WorkFields = {
      function: 'a.run',
      kind: 'mutation',
      releaseId: release.releaseId,
      argumentsText: '{}',
      source: 'function',
      cron: null,
      dueAtMicros: system.nowMicros() + BigInt(HOUR) * 1_000n,
    }
    const http = { mount: 'main', route: 'a', event: 'evt', method: 'POST', path: '/', bytes: 2 }
    await stored.change(async (transaction) => {
      await insertWork(transaction, work)
      const argumentsText = '{"delivery":{"headers":{}}}'
      const delivery: WorkFields = { ...work, function: 'a.receive', argumentsText, source: 'http' }
      await insertWork(transaction, { ...delivery, http })
    })
  }

  async function backedUp(system: SteppedSystem): Promise<void> {
    const { bench, ran } = await open(async () => server.parts.store, system)
    await bench.follow([CRON])
    await bench.advance(90 * MINUTE)
    expect(ran).toEqual(['a.tick'])
    await schedule(bench)
    await server.base()
    // The lost server runs on, which its backup does not know.
    await bench.advance(2 * HOUR)
    expect(ran.filter((name) => name !== 'a.tick')).toHaveLength(2)
    await bench.engine.close()
    engine = null
  }

  test('pending work runs exactly once, and a Cron once for all times that passed', async () => {
    const system = new SteppedSystem()
    await backedUp(system)
    system.advance(3 * DAY)
    await place.restore(server)
    const { bench, ran } = await open(() => place.openDocuments(), system)
    await bench.follow([CRON])
    await bench.advance(1_000)
    expect([...ran].sort()).toEqual(['a.receive', 'a.run', 'a.tick'])
    ran.length = 0
    await bench.advance(2 * HOUR)
    expect(ran).toEqual(['a.tick', 'a.tick'])
    ran.length = 0
    engine = await bench.reopen()
    await engine.follow([CRON])
    await engine.advance(1_000)
    expect(ran).toEqual([])
  })

  test('work that is not due at the restore waits for its time', async () => {
    const system = new SteppedSystem()
    const { bench, ran } = await open(async () => server.parts.store, system)
    await schedule(bench)
    await server.base()
    await bench.engine.close()
    engine = null
    await place.restore(server)
    const restored = await open(() => place.openDocuments(), system)
    await restored.bench.advance(HOUR - 1_000)
    expect(restored.ran).toEqual([])
    await restored.bench.advance(2_000)
    expect([...restored.ran].sort()).toEqual(['a.receive', 'a.run'])
    expect(ran).toEqual([])
  })
})
