/**
 * @module-tag slow
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type FollowedServerBench,
  followedServer,
  write,
} from '../../../testing/backups/followed-servers.ts'
import { operationRecord, pruneAll } from '../../../testing/documents/store-fixtures.ts'
import type { DocumentWrite } from '../../documents/store.ts'
import { TestSystem } from '../../system/system.ts'
import type { BackupRecord } from '../../wire/files/backups.ts'
import { type CatchUpRequest, readCatchUp } from './catch-up.ts'

const FILE = Buffer.from('bytes of a stored file')

describe.each(['SQLite', 'PostgreSQL'] as const)('a catch-up of documents in %s', (kind) => {
  let bench: FollowedServerBench
  let system: TestSystem
  beforeEach(async () => {
    system = new TestSystem()
    bench = await followedServer(kind, system)
  })
  afterEach(() => bench.close())

  async function caughtUp(above: number, more: Partial<CatchUpRequest> = {}) {
    const found = await readCatchUp({
      server: bench.server,
      above,
      files: above,
      snapshot: bench.store.latestSequence,
      bytesMax: 1_000_000,
      signal: new AbortController().signal,
      ...more,
    })
    if (found === null) return null
    const lines = Buffer.from(found.lines.finish().lines).toString().trimEnd().split('\n')
    const records = lines.map((line) => JSON.parse(line) as BackupRecord)
    const documents = records.flatMap((record) => (record.t === 'document' ? [record] : []))
    const operations = records.flatMap((record) => (record.t === 'operation' ? [record] : []))
    return { documents, operations, files: found.files }
  }

  /** Commits documents, each with the record of an operation, many in a batch. */
  async function commitDocuments(first: number, count: number) {
    const perBatch = 1_000
    for (let begin = first; begin < first + count; begin += perBatch) {
      const numbers = Array.from(
        { length: Math.min(perBatch, first + count - begin) },
        (_, i) => begin + i,
      )
      const transactions = numbers.map((number) => ({
        sequence: number,
        atMicros: 0n,
        writes: [write('notes', number, '{"a":1}')],
        operation: operationRecord(number, { commitSequence: number }),
      }))
      await bench.store.commit({ transactions })
    }
  }

  /** Returns the pages, which have a bounded number of rows, that ten commits take. */
  async function pagesOfTen(documents: number): Promise<number> {
    const before = bench.store.latestSequence
    await commitDocuments(before + 1, documents)
    const above = bench.store.latestSequence
    for (let i = 1; i <= 10; i++) {
      await bench.commit([write('notes', i, '{"a":2}')], (sequence) =>
        operationRecord(above + i, { commitSequence: sequence }),
      )
    }
    let pages = 0
    const { store } = bench
    const counting: CatchUpRequest['server']['store'] = {
      changedVersions: (request) => {
        pages += 1
        return store.changedVersions(request)
      },
      newOperations: (request) => {
        pages += 1
        return store.newOperations(request)
      },
    }
    const found = await caughtUp(above, { server: { system, store: counting } })
    expect(found?.documents).toHaveLength(10)
    expect(found?.operations).toHaveLength(10)
    return pages
  }

  test('ten commits take as many pages among 20,000 documents as among 20', async () => {
    const small = await pagesOfTen(20)
    expect(await pagesOfTen(20_000)).toBe(small)
    expect(small).toBeLessThanOrEqual(4)
  })

  test('a document that was written twice in a batch is there once', async () => {
    const transactions = [1, 2, 3].map((sequence) => ({
      sequence,
      atMicros: 0n,
      writes: [write('notes', 1, `{"a":${sequence}}`)],
    }))
    await bench.store.commit({ transactions })
    const found = await caughtUp(0)
    expect(found?.documents.map(({ sequence, text }) => [sequence, text])).toEqual([[3, '{"a":3}']])
  })

  /** Commits ten seconds after the commit before, so that retention can pass each of them. */
  async function commitLater(...writes: DocumentWrite[]) {
    system.advance(10_000)
    await bench.commit(writes)
  }

  test('nothing is caught up where retention may have removed a tombstone', async () => {
    await commitLater(write('notes', 1, '{"a":1}'), write('notes', 2, '{"a":1}'))
    await commitLater(write('notes', 1, null))
    await commitLater(write('notes', 2, '{"a":2}'))
    expect((await caughtUp(1))?.documents.map(({ text }) => text)).toEqual(['{"a":2}', null])
    await pruneAll(bench.store, {})
    expect(await caughtUp(1)).toBeNull()
    expect((await caughtUp(3))?.documents).toEqual([])
  })

  test('files whose bytes are not stored are found although retention has gone on', async () => {
    await commitLater(write('fil', 1, await bench.stageFile(FILE)))
    await commitLater(write('notes', 1, '{"a":1}'))
    await commitLater(write('notes', 1, null))
    await commitLater(write('notes', 2, '{"a":1}'))
    await pruneAll(bench.store, {})
    expect(await caughtUp(2, { files: 0 })).toBeNull()
    const found = await caughtUp(4, { files: 0 })
    expect(found?.documents).toEqual([])
    expect(found?.files).toMatchObject([{ sequence: 1, contents: [{ size: FILE.length }] }])
    expect((await caughtUp(4, { files: 1 }))?.files).toEqual([])
  })

  test('changes with more bytes than the limit are left to a base', async () => {
    await commitDocuments(1, 100)
    expect(await caughtUp(0, { bytesMax: 2_000 })).toBeNull()
    expect((await caughtUp(98, { bytesMax: 2_000 }))?.documents).toHaveLength(2)
  })
})
