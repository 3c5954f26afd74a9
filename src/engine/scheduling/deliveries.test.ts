/**
 * Pages of deliveries on both stores: their order, their filters, and the rows that they read.
 *
 * @module-tag slow
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  STORES,
  type StoredDocuments,
  storedDocuments,
} from '../../../testing/migrations/migration-bench.ts'
import type { DocumentStore, RangeRequest } from '../../documents/store.ts'
import { TestSystem } from '../../system/system.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { Committer } from '../commits/committer.ts'
import { SystemDocuments } from '../files/system-documents.ts'
import {
  finishWork,
  insertWork,
  insertWorkAs,
  readWork,
  rerunWork,
  SUCCEEDED_CHARACTERS_MAX,
} from '../scheduled-work/scheduled-documents.ts'
import { SystemTablesLoader } from '../tables/system-tables.ts'
import { Deliveries, type DeliveryQuery } from './deliveries.ts'
import { WorkReads } from './work-reads.ts'

const system = new TestSystem()
const ALL = { mount: 'main', state: null, route: null, afterId: null, limit: 100 } as const
const WORK = {
  function: 'a.onEvent',
  kind: 'mutation',
  releaseId: 'rel',
  argumentsText: '{"delivery":{}}',
  cron: null,
  dueAtMicros: 0n,
} as const

describe.each(STORES)('on %s', (kind) => {
  let stored: StoredDocuments
  let store: DocumentStore
  let committer: Committer
  let documents: SystemDocuments
  let deliveries: Deliveries
  /** Rows that reads of ranges have returned. */
  let rowsRead = 0
  beforeEach(async () => {
    stored = await storedDocuments(kind)
    store = await stored.open()
    const counted = new Proxy(store, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target)
        if (typeof member !== 'function') return member
        if (name !== 'range') return member.bind(target) as unknown
        return async (request: RangeRequest) => {
          const result = await target.range(request)
          rowsRead += result.documents.length
          return result
        }
      },
    })
    committer = new Committer({ store, system, metrics: new Metrics(system), onCommit: () => {} })
    const tables = new SystemTablesLoader(store, committer)
    documents = new SystemDocuments({ store, committer, system, tables })
    deliveries = new Deliveries(new WorkReads(counted, tables), committer)
  })
  afterEach(async () => {
    await committer.drain()
    await store.close()
    await stored.close()
  })

  async function deliver(
    state: 'pending' | 'failed' | 'succeeded' = 'succeeded',
    { mount = 'main', route = 'a', argumentsText = String(WORK.argumentsText) } = {},
  ): Promise<string> {
    const id = system.ids.make('sch')
    await documents.change(async (transaction) => {
      const request = { mount, route, event: 'evt', method: 'POST', path: '/', bytes: 2 }
      await insertWorkAs(transaction, id, { ...WORK, argumentsText, source: 'http', http: request })
      if (state === 'pending') return
      const failure = state === 'failed' ? 'FUNCTION_FAILED' : null
      const finish = { attempts: 1, errorCode: failure, errorMessage: failure, atMicros: 1n }
      await finishWork(transaction, id, { state, ...finish })
    })
    return id
  }

  const list = (query: Partial<DeliveryQuery> = {}) => deliveries.list({ ...ALL, ...query })
  const idsOf = async (query: Partial<DeliveryQuery> = {}) =>
    (await list(query)).items.map(({ scheduledId }) => scheduledId)

  test('pages have the newest delivery of the mount first, and each one once', async () => {
    const ids: string[] = []
    for (let i = 0; i < 9; i++) {
      ids.unshift(await deliver(i % 3 === 0 ? 'failed' : 'succeeded'))
      await deliver('failed', { mount: 'other' })
      // Several deliveries have IDs of one millisecond.
      if (i % 2 === 0) system.advance(1)
    }
    expect(await idsOf()).toEqual(ids)
    const found: string[] = []
    for (let afterId: string | null = null; ; ) {
      const page = await list({ limit: 2, afterId })
      found.push(...page.items.map(({ scheduledId }) => scheduledId))
      afterId = page.nextId
      if (afterId === null) break
    }
    expect(found).toEqual(ids)
  })

  test('a filter of states and routes finds those that have them', async () => {
    const failed = await deliver('failed')
    system.advance(1)
    const pending = await deliver('pending')
    system.advance(1)
    const other = await deliver('failed', { route: 'b' })
    expect(await idsOf({ state: 'failed' })).toEqual([other, failed])
    expect(await idsOf({ state: 'failed', route: 'a' })).toEqual([failed])
    expect(await idsOf({ state: 'pending' })).toEqual([pending])
    await documents.change((transaction) =>
      rerunWork(transaction, failed, { ...WORK, rerunBy: null }),
    )
    expect(await idsOf({ state: 'failed' })).toEqual([other])
    expect(await idsOf({ state: 'pending' })).toEqual([pending, failed])
  })

  test('a page of failures reads neither other work nor other deliveries', async () => {
    await documents.change(async (transaction) => {
      for (let i = 0; i < 500; i++) await insertWork(transaction, { ...WORK, source: 'function' })
      for (let i = 0; i < 500; i++) {
        const request = { mount: 'main', route: 'a', event: '', method: '', path: '', bytes: 0 }
        const id = system.ids.make('sch')
        await insertWorkAs(transaction, id, { ...WORK, source: 'http', http: request })
      }
    })
    const failed = await deliver('failed')
    rowsRead = 0
    expect(await idsOf({ state: 'failed' })).toEqual([failed])
    expect(rowsRead).toBe(1)
  })

  test('a page without matches ends after a number of rows, and is continued', async () => {
    const first = await deliver('pending', { route: 'rare' })
    for (let i = 0; i < 5; i++) {
      await documents.change(async (transaction) => {
        for (let n = 0; n < 500; n++) {
          const request = { mount: 'main', route: 'a', event: '', method: '', path: '', bytes: 0 }
          const id = system.ids.make('sch')
          await insertWorkAs(transaction, id, { ...WORK, source: 'http', http: request })
        }
      })
    }
    rowsRead = 0
    const page = await list({ route: 'rare' })
    expect(page.items).toEqual([])
    expect(rowsRead).toBeLessThanOrEqual(2_100)
    expect(await idsOf({ route: 'rare', afterId: page.nextId })).toEqual([first])
  })

  test('a delivery that succeeded keeps a short content, a failed one all', async () => {
    const long = JSON.stringify('x'.repeat(SUCCEEDED_CHARACTERS_MAX))
    const ids = [
      await deliver('failed', { argumentsText: long }),
      await deliver('succeeded', { argumentsText: long }),
      await deliver('succeeded'),
    ]
    const kept = await documents.read((transaction) =>
      Promise.all(ids.map((id) => readWork(transaction, id))),
    )
    expect(kept.map((work) => work!.argumentsText)).toEqual([long, '{}', WORK.argumentsText])
    expect(kept.map((work) => work!.lastErrorMessage)).toEqual(['FUNCTION_FAILED', null, null])
    const listed = (await list()).items.map(({ scheduledId, hasContent }) => [
      scheduledId,
      hasContent,
    ])
    expect(new Map(listed as [string, boolean][])).toEqual(
      new Map([
        [ids[0]!, true],
        [ids[1]!, false],
        [ids[2]!, true],
      ]),
    )
  })
})
