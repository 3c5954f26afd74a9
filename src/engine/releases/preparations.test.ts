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
import { indexDefinitions, Preparations } from './preparations.ts'
import type { Release } from './release.ts'

const system = realSystem()

/** Its table `notes` has an index on each of the lists of fields. */
function newRelease(...indexes: readonly (readonly string[])[]): Release {
  const fields = { a: { type: 'string' }, b: { type: 'string' } }
  const named = indexes.map((of, i) => ({ name: `index${i}`, fields: of, unique: false }))
  const tables = indexes.length === 0 ? [] : [{ name: 'notes', fields, indexes: named }]
  return {
    releaseId: system.ids.make('rel'),
    tables: new Map(tables.map((table) => [table.name, table])),
    functions: new Map(),
  } as unknown as Release
}

/** Counts how often indexes were asked for: twice for each preparation. */
function stubbed() {
  const asked = { count: 0 }
  const ensureIndexes = async () => {
    asked.count += 1
    return []
  }
  const store = { ensureIndexes } as Partial<DocumentStore> as DocumentStore
  return { it: new Preparations(store, {} as Committer), asked }
}

describe('a Release', () => {
  test('is prepared once for all that ask at the same time, and found from then on', async () => {
    const { it, asked } = stubbed()
    const release = newRelease()
    expect(it.find(release.releaseId)).toBeNull()
    const [one, other] = await Promise.all([it.prepare(release), it.prepare(release)])
    expect(other).toBe(one)
    expect(asked.count).toBe(2)
    expect(it.find(release.releaseId)).toBe(one)
    expect(await it.prepare(release)).toBe(one)
  })

  test('that is used stays prepared, whatever comes; one that is not is let go', async () => {
    const { it } = stubbed()
    const [used, unused] = [newRelease(), newRelease()]
    const prepared = await it.prepare(used)
    await it.prepare(unused)
    for (let i = 0; i < 200; i++) {
      await it.prepare(newRelease())
      expect(it.find(used.releaseId)).toBe(prepared)
    }
    expect(it.find(unused.releaseId)).toBeNull()
    expect((await it.prepare(unused)).release).toBe(unused)
  })

  test('has its indexes built although commits never pause', async () => {
    const { it, store, committer } = await stored()
    const commit = store.commit.bind(store)
    store.commit = async (batch) => {
      await delay(5)
      await commit(batch)
    }
    let isPrepared = false
    const stopAt = system.monotonicMillis() + 25_000
    const writers = Array.from({ length: 16 }, async () => {
      while (!isPrepared && system.monotonicMillis() < stopAt) {
        await delay(5 * Math.random())
        const outcome = await committer.commit(emptyCommit(committer.assigned))
        if (outcome.kind === 'assigned') await outcome.durable
      }
    })
    await delay(50)
    await it.prepare(newRelease(['a']))
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
  const fields = () => store.listIndexes().map((index) => [...index.fields, index.state])
  return { it: new Preparations(store, committer), store, committer, fields }
}

/** Of a Mutation that wrote nothing: its operation is recorded. */
function emptyCommit(snapshot: number): CommitRequest {
  const atMicros = system.nowMicros()
  return {
    ...{ snapshot, pending: null, readSet: new ReadSet(), writes: [], atMicros, turn: null },
    operation: {
      ...{ operationId: system.ids.make('opn'), fingerprint: new Uint8Array(32) },
      ...{ releaseId: system.ids.make('rel'), function: 'f', result: 'null' },
      ...{ attempts: 1, createdAtMicros: atMicros },
    },
  }
}

describe('of Releases that are not called any more', () => {
  const live = (...releases: readonly Release[]) =>
    new Map(releases.map((one) => [one.releaseId, indexDefinitions(one.tables.values())]))

  test('nothing is prepared, and the indexes that no other declares are dropped', async () => {
    const { it, fields } = await stored()
    const [gone, kept] = [newRelease(['a'], ['a', 'b']), newRelease(['b'], ['a'])]
    await it.prepare(gone)
    await it.prepare(kept)
    expect(await it.keepOnly(live(gone, kept))).toBe(0)
    expect(await it.keepOnly(live(kept))).toBe(1)
    expect(fields()).toEqual([['ready'], ['a', 'ready'], ['b', 'ready']])
    expect([it.find(gone.releaseId), it.find(kept.releaseId)?.release]).toEqual([null, kept])
    expect(await it.keepOnly(live(kept))).toBe(0)
  })

  test('the indexes come back with another Release that declares them', async () => {
    const { it, fields } = await stored()
    await it.prepare(newRelease(['a']))
    expect(await it.keepOnly(new Map())).toBe(2)
    expect(fields()).toEqual([])
    await it.prepare(newRelease(['a']))
    expect(fields()).toEqual([['ready'], ['a', 'ready']])
  })
})
