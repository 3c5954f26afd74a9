import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../testing/databases/postgres.ts'
import {
  documentId,
  EVERYTHING,
  found,
  operationRecord,
  pruneAll,
  whole,
} from '../../testing/documents/store-fixtures.ts'
import { openDocuments, TEST_ENVIRONMENT } from '../../testing/documents/stores.ts'
import { realSystem } from '../system/system.ts'
import { Secret } from '../value/secret.ts'
import { openPostgresLoader } from './postgres/loader.ts'
import { openSqliteLoader } from './sqlite/loader.ts'
import { openSqliteDocuments } from './sqlite/stores.ts'
import type { DocumentStore, StoredDocument } from './store.ts'
import type { LoadedState, StoreLoader } from './store-loader.ts'

interface Harness {
  load(state: LoadedState): Promise<StoreLoader>
  open(): Promise<DocumentStore>
}

let directory: string
let database: TestDatabase | null = null

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'loader-'))
})
afterEach(async () => {
  rmSync(directory, { recursive: true })
  await database?.drop()
  database = null
})

const sqlite = async (): Promise<Harness> => {
  const path = join(directory, 'documents.db')
  return {
    load: (state) => openSqliteLoader(path, state),
    open: () => openSqliteDocuments(path, { mayBeNew: false }),
  }
}

const postgres = async (): Promise<Harness> => {
  database = await freshDatabase()
  const { url } = database
  let databaseId: string | null = null
  return {
    load: async (state) => {
      const options = {
        url: new Secret(url),
        environmentId: TEST_ENVIRONMENT,
        system: realSystem(),
        onProblem: () => undefined,
      }
      const loader = await openPostgresLoader(options, state)
      databaseId = loader.databaseId
      return loader
    },
    open: () => openDocuments(url, { databaseId }),
  }
}

const STATE: LoadedState = {
  sequence: 9,
  atMicros: 5_000_000n,
  shapes: new Map([['notes', { body: null }]]),
}

const document = (number: number, sequence: number): StoredDocument => ({
  id: documentId('notes', number),
  createdAtMicros: BigInt(number),
  sequence,
  text: `{"body":"note ${number}"}`,
})

describe.each([
  ['SQLite', sqlite],
  ['PostgreSQL', postgres],
])('a loaded store in %s', (_, make) => {
  let harness: Harness
  let store: DocumentStore | null = null
  beforeEach(async () => {
    harness = await make()
  })
  afterEach(async () => {
    await store?.close()
    store = null
  })

  /** Loads documents whose commits are not in the order of their IDs, and opens the store. */
  async function loaded(): Promise<DocumentStore> {
    const loader = await harness.load(STATE)
    await loader.add([document(1, 7), document(2, 3)])
    await loader.add([document(3, 5)])
    const createdAtMicros = 4_000_000n
    await loader.addOperations([
      operationRecord(1, { commitSequence: 7, createdAtMicros }),
      operationRecord(2, { createdAtMicros }),
    ])
    await loader.finish()
    await loader.close()
    store = await harness.open()
    return store
  }

  test('documents keep the sequences of their commits, and the next commit follows', {
    tags: ['slow'],
  }, async () => {
    const opened = await loaded()
    expect(opened.latestSequence).toBe(9)
    expect(opened.fieldShapes()).toEqual(STATE.shapes)
    const page = await opened.versions({
      after: '',
      snapshot: 9,
      rowsMax: 10,
      textUnitsMax: EVERYTHING,
    })
    expect(page.rows).toEqual([document(1, 7), document(2, 3), document(3, 5)])
    expect(await opened.operation(documentId('opn', 1))).toMatchObject({ commitSequence: 7 })
    expect(await opened.operation(documentId('opn', 2))).toMatchObject({ commitSequence: null })
    const next = [{ ...document(2, 10), text: null, entries: [] }]
    await opened.commit({ transactions: [{ sequence: 10, atMicros: 6_000_000n, writes: next }] })
    expect(await opened.read(documentId('notes', 2), 10)).toBeNull()
    expect(await opened.read(documentId('notes', 2), 9)).toEqual(document(2, 3))
  })

  test('the changes after the loaded state are those of later commits', {
    tags: ['slow'],
  }, async () => {
    const opened = await loaded()
    const request = { after: '', above: 9, rowsMax: 10, textUnitsMax: EVERYTHING }
    const nothing = await opened.changedVersions({ ...request, snapshot: 9 })
    expect(nothing).toMatchObject({ rows: [], hasTombstones: true })
    const next = [{ ...document(2, 10), entries: [] }]
    const operation = operationRecord(3, { commitSequence: 10 })
    const transaction = { sequence: 10, atMicros: 6_000_000n, writes: next, operation }
    await opened.commit({ transactions: [transaction] })
    const page = await opened.changedVersions({ ...request, snapshot: 10 })
    expect(page).toMatchObject({ rows: [document(2, 10)], hasTombstones: true })
    const { rows } = await opened.newOperations({ ...request, snapshot: 10 })
    expect(rows.map(({ operationId }) => operationId)[0]).toBe(documentId('opn', 3))
    expect(rows.filter(({ commitSequence }) => commitSequence === 7)).toEqual([])
  })

  test('an index that is built afterwards has all documents', { tags: ['slow'] }, async () => {
    const opened = await loaded()
    const [index] = await opened.ensureIndexes([{ table: 'notes', fields: ['body'] }])
    await opened.buildIndex(index!.id)
    const range = await found(opened.range(whole(index!.id, 9)))
    expect(range.documents.map((row) => row.document)).toEqual([
      document(1, 7),
      document(2, 3),
      document(3, 5),
    ])
  })

  test('retention keeps what was loaded until it is replaced, but not old operations', async () => {
    const opened = await loaded()
    expect(await pruneAll(opened, {})).toBe(0)
    const writes = [{ ...document(1, 10), text: null, entries: [] }]
    await opened.commit({ transactions: [{ sequence: 10, atMicros: 9_000_000n, writes }] })
    // The loaded version and its tombstone.
    expect(await pruneAll(opened, {})).toBe(2)
    expect(await opened.read(documentId('notes', 2), 10)).toEqual(document(2, 3))
    expect(await pruneAll(opened, { operationsBeforeMicros: 4_000_001n })).toBe(2)
    expect(await opened.operation(documentId('opn', 1))).toBeNull()
  })

  test('an empty state is loaded', async () => {
    const loader = await harness.load({ ...STATE, sequence: 0, shapes: new Map() })
    await loader.finish()
    await loader.close()
    store = await harness.open()
    expect(store.latestSequence).toBe(0)
  })

  test('an ID that is not canonical is rejected', async () => {
    const loader = await harness.load(STATE)
    try {
      const load = async () => loader.add([{ ...document(1, 1), id: 'notes_1' }])
      await expect(load()).rejects.toMatchObject({ code: 'PRODUCT_CORRUPT' })
    } finally {
      await loader.close()
    }
  })
})
