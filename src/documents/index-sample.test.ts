/**
 * Goal: a sample finds an index that disagrees with its documents, in both stores. Method: commits
 * whose entries are wrong in one way, since no store checks what the engine computes.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { freshDatabase } from '../../testing/databases/postgres.ts'
import { documentId } from '../../testing/documents/store-fixtures.ts'
import { DOCUMENT_TEMPLATE, openDocuments } from '../../testing/documents/stores.ts'
import { realSystem } from '../system/system.ts'
import { sampleIndexes } from './index-sample.ts'
import { storedKey } from './keys.ts'
import { openSqliteDocuments } from './sqlite/stores.ts'
import type { DocumentStore, EntryWrite, PhysicalIndex } from './store.ts'

const COUNT = 200
const system = realSystem()
const options = {
  entriesMax: 10,
  indexesMax: 8,
  randomBytes: (length: number) => system.randomBytes(length),
  pause: async () => undefined,
}
const directory = mkdtempSync(join(tmpdir(), 'index-sample-'))
afterAll(() => rmSync(directory, { recursive: true }))
let files = 0

const OPENS: Record<string, () => Promise<DocumentStore>> = {
  sqlite: async () => openSqliteDocuments(join(directory, `${files++}.db`)),
  postgres: async () => {
    const { url, drop } = await freshDatabase(DOCUMENT_TEMPLATE)
    onTestFinished(drop)
    return openDocuments(url)
  },
}

describe.each(Object.keys(OPENS))('%s', (kind) => {
  let store: DocumentStore
  let indexes: readonly PhysicalIndex[]

  beforeEach(async () => {
    store = await OPENS[kind]!()
    onTestFinished(() => store.close())
    await store.setFieldShapes(new Map([['notes', { color: 'any' }]]))
    indexes = await store.ensureIndexes([
      { table: 'notes', fields: [] },
      { table: 'notes', fields: ['color'] },
    ])
    for (const { id } of indexes) await store.buildIndex(id)
  })

  /** Stores documents; `entries` may change those of the first one. */
  async function store200(change: (entries: EntryWrite[]) => EntryWrite[]): Promise<void> {
    const writes = Array.from({ length: COUNT }, (_, number) => {
      const id = documentId('notes', number + 1)
      const document = { id, createdAtMicros: BigInt(number), text: `{"color":"c${number % 7}"}` }
      const entries = indexes.map((index) => ({
        index: index.id,
        key: storedKey(index, document)!,
        live: true,
      }))
      return { ...document, entries: number === 0 ? change(entries) : entries }
    })
    await store.commit({ transactions: [{ sequence: 1, atMicros: 1n, writes }] })
  }

  test('indexes that agree with their documents have no defect', { tags: ['slow'] }, async () => {
    await store200((entries) => entries)
    const { sampled, defects } = await sampleIndexes(store, options)
    expect(defects).toEqual([])
    expect(sampled).toBeGreaterThanOrEqual(40)
    expect(sampled).toBeLessThanOrEqual(80)
  })

  test('a document without its entry is found', async () => {
    await store200(([creation]) => [creation!])
    const { defects } = await sampleIndexes(store, options)
    expect(defects).toEqual([
      {
        index: 'notes(creation)',
        defect: `${documentId('notes', 1)} has no entry in notes(color)`,
      },
    ])
  })

  test('an entry with other values than its document is found', async () => {
    await store200(([creation, color]) => {
      const id = documentId('notes', 1)
      const other = { id, createdAtMicros: 0n, text: '{"color":"a"}' }
      return [creation!, color!, { ...color!, key: storedKey(indexes[1]!, other)! }]
    })
    const { defects } = await sampleIndexes(store, options)
    expect(defects).toEqual([
      {
        index: 'notes(color)',
        defect: `the entry of ${documentId('notes', 1)} does not have the values of the document`,
      },
    ])
  })

  test('an entry without a document is found', { tags: ['slow'] }, async () => {
    await store200((entries) => {
      const id = documentId('notes', COUNT + 1)
      const lost = { id, createdAtMicros: 0n, text: '{"color":"a"}' }
      return [...entries, { index: indexes[1]!.id, key: storedKey(indexes[1]!, lost)!, live: true }]
    })
    const { defects } = await sampleIndexes(store, options)
    expect(defects.map(({ index }) => index)).toEqual(['notes(color)'])
  })
})
