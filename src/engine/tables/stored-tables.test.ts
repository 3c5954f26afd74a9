import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { BY_CHANNEL, CREATION, Model } from '../../../testing/documents/store-fixtures.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import { storedTables } from './stored-tables.ts'

test('a scan yields every document of its snapshot once, in the order of the keys', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-stored-tables-'))
  const store = await openSqliteDocuments(join(directory, 'documents.db'))
  try {
    const indexes = await store.ensureIndexes([CREATION, BY_CHANNEL])
    for (const { id } of indexes) await store.buildIndex(id)
    const model = new Model()
    const write = (number: number, channel: string) =>
      model.write(indexes, { table: 'messages', number }, new Map([['channel', channel]]))
    // More than two pages, whose keys order the documents otherwise than their creation.
    const numbers = Array.from({ length: 1_201 }, (_, i) => i)
    await model.commit(
      store,
      numbers.map((number) => write(number, `c${number % 7}`)),
    )
    const snapshot = model.sequence
    await model.commit(store, [write(5_000, 'c3'), write(3, 'c0')])
    for (const index of indexes) {
      const ids: string[] = []
      const { scan } = storedTables(store, new Map(), snapshot)
      for await (const { id } of scan(index)) ids.push(id)
      const expected = model.range(index, snapshot).map(({ document }) => document.id)
      expect(ids).toEqual(expected)
      expect(ids).toHaveLength(1_201)
    }
  } finally {
    await store.close()
    rmSync(directory, { recursive: true })
  }
})
