import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import type { DocumentStore } from '../../documents/store.ts'
import { realSystem } from '../../system/system.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { type CommitRequest, Committer } from '../commits/committer.ts'
import { ReadSet } from '../commits/read-set.ts'
import { indexDefinitions } from '../tables/physical-indexes.ts'
import type { SystemTablesLoader } from '../tables/system-tables.ts'
import type { Release } from './executable-release.ts'
import { Preparations } from './preparations.ts'

/** Tables of the server, whose indexes every store has. */
const SYSTEM = ['crn', 'fil', 'mig', 's3p', 's3u', 'sch', 'upl']

const system = realSystem()

/** Returns a Release whose table `notes` has an index on each of the lists of fields. */
function newRelease(...indexes: readonly (readonly string[])[]): Release {
  const fields = { a: { type: 'string' }, b: { type: 'string' } }
  const named = indexes.map((list, i) => ({ name: `index${i}`, fields: list, unique: false }))
  const tables = indexes.length === 0 ? [] : [{ name: 'notes', fields, indexes: named }]
  return {
    releaseId: system.ids.make('rel'),
    tables: new Map(tables.map((table) => [table.name, table])),
    functions: new Map(),
  } as unknown as Release
}

/** Counts the calls of `ensureIndexes`: one for each preparation whose indexes are ready. */
function stubbed() {
  const ensured = { count: 0 }
  const ensureIndexes = async () => {
    ensured.count += 1
    return []
  }
  const store = { ensureIndexes } as Partial<DocumentStore> as DocumentStore
  const systemTables = { load: async () => ({ all: new Map(), shared: new Map() }) }
  const parts = [store, {} as Committer, systemTables as unknown as SystemTablesLoader] as const
  return { preparations: new Preparations(...parts), ensured }
}

describe('a Release', () => {
  test('a Release is prepared once for concurrent callers, and cached afterwards', async () => {
    const { preparations, ensured } = stubbed()
    const release = newRelease()
    expect(preparations.find(release.releaseId)).toBeNull()
    const calls = [preparations.prepare(release), preparations.prepare(release)]
    const [first, second] = await Promise.all(calls)
    expect(second).toBe(first)
    expect(ensured.count).toBe(1)
    expect(preparations.find(release.releaseId)).toBe(first)
    expect(await preparations.prepare(release)).toBe(first)
  })

  test('stays cached while it is used, and is evicted when 200 others follow', async () => {
    const { preparations } = stubbed()
    const [used, unused] = [newRelease(), newRelease()]
    const prepared = await preparations.prepare(used)
    await preparations.prepare(unused)
    for (let i = 0; i < 200; i++) {
      await preparations.prepare(newRelease())
      expect(preparations.find(used.releaseId)).toBe(prepared)
    }
    expect(preparations.find(unused.releaseId)).toBeNull()
    expect((await preparations.prepare(unused)).release).toBe(unused)
  })

  test('what is not served is dropped when memory is returned, once that is known', async () => {
    const { preparations } = stubbed()
    const [served, other] = [newRelease(), newRelease()]
    for (const release of [served, other]) await preparations.prepare(release)
    preparations.trim()
    expect(preparations.find(other.releaseId)?.release).toBe(other)
    preparations.markServed(new Set([served.releaseId]))
    preparations.trim()
    expect(preparations.find(served.releaseId)?.release).toBe(served)
    expect(preparations.find(other.releaseId)).toBeNull()
  })

  test('a Release has its indexes built although commits never pause', async () => {
    const { preparations, store, committer } = await stored()
    const commit = store.commit.bind(store)
    store.commit = async (batch) => {
      await delay(5)
      await commit(batch)
    }
    let isPrepared = false
    const stopAt = system.monotonicMillis() + 100_000
    const writers = Array.from({ length: 16 }, async () => {
      while (!isPrepared && system.monotonicMillis() < stopAt) {
        await delay(5 * Math.random())
        const outcome = await committer.commit(emptyCommit(committer.assigned))
        if (outcome.kind === 'assigned') await outcome.durable
      }
    })
    await delay(50)
    await preparations.prepare(newRelease(['a']))
    expect(system.monotonicMillis()).toBeLessThan(stopAt)
    isPrepared = true
    await Promise.all(writers)
  })
})

async function stored() {
  const directory = mkdtempSync(join(tmpdir(), 'svc-preparations-'))
  const store = await openSqliteDocuments(join(directory, 'documents.db'))
  const metrics = new Metrics(system)
  const committer = new Committer({ store, system, metrics, onCommit: () => undefined })
  onTestFinished(async () => {
    await store.close()
    rmSync(directory, { recursive: true })
  })
  const fields = () => {
    const own = store.listIndexes().filter(({ table }) => !SYSTEM.includes(table))
    return own.map((index) => [...index.fields, index.state])
  }
  return { preparations: new Preparations(store, committer), store, committer, fields }
}

/** Returns the commit of a Mutation that wrote nothing but its record. */
function emptyCommit(snapshot: number): CommitRequest {
  const atMicros = system.nowMicros()
  return {
    snapshot,
    pending: null,
    readSet: new ReadSet(),
    writes: [],
    atMicros,
    lock: null,
    operation: {
      operationId: system.ids.make('opn'),
      fingerprint: new Uint8Array(32),
      releaseId: system.ids.make('rel'),
      function: 'f',
      result: 'null',
      attempts: 1,
      createdAtMicros: atMicros,
    },
  }
}

describe('retainOnly', () => {
  const live = (...releases: readonly Release[]) =>
    new Map(releases.map((each) => [each.releaseId, indexDefinitions(each.tables.values())]))

  test('evicts other Releases and drops the indexes that no live Release declares', async () => {
    const { preparations, fields } = await stored()
    const [retired, retained] = [newRelease(['a'], ['a', 'b']), newRelease(['b'], ['a'])]
    await preparations.prepare(retired)
    await preparations.prepare(retained)
    expect(await preparations.retainOnly(live(retired, retained))).toBe(0)
    expect(await preparations.retainOnly(live(retained))).toBe(1)
    expect(fields()).toEqual([['ready'], ['a', 'ready'], ['b', 'ready']])
    const found = [preparations.find(retired.releaseId), preparations.find(retained.releaseId)]
    expect(found.map((each) => each?.release ?? null)).toEqual([null, retained])
    expect(await preparations.retainOnly(live(retained))).toBe(0)
  })

  test('drops indexes that another Release declares and builds again', async () => {
    const { preparations, fields } = await stored()
    await preparations.prepare(newRelease(['a']))
    expect(await preparations.retainOnly(new Map())).toBe(2)
    expect(fields()).toEqual([])
    await preparations.prepare(newRelease(['a']))
    expect(fields()).toEqual([['ready'], ['a', 'ready']])
  })
})
