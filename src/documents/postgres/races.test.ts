import { afterEach, beforeEach, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../testing/databases/postgres.ts'
import { documentId, EVERYTHING } from '../../../testing/documents/store-fixtures.ts'
import { DOCUMENT_TEMPLATE, openDocuments } from '../../../testing/documents/stores.ts'
import { isFault } from '../../errors/fault.ts'
import type { DocumentStore } from '../store.ts'

/* Races of a remote store: other changes happen while a read is running. */

const DOCUMENTS = 200
const READERS = 40

let database: TestDatabase
let store: DocumentStore

beforeEach(async () => {
  database = await freshDatabase(DOCUMENT_TEMPLATE)
  const filled = await openDocuments(database.url)
  await commit(
    filled,
    Array.from({ length: DOCUMENTS }, (_, number) => number),
  )
  await filled.close()
  // A new store, which has no version in memory.
  store = await openDocuments(database.url)
})

afterEach(async () => {
  await store.close()
  await database.drop()
})

function commit(to: DocumentStore, numbers: readonly number[]): Promise<void> {
  const sequence = to.latestSequence + 1
  const writes = numbers.map((number) => {
    const text = `{"at":${sequence}}`
    return { id: documentId('notes', number), createdAtMicros: 0n, text, entries: [] }
  })
  return to.commit({ transactions: [{ sequence, atMicros: BigInt(sequence), writes }] })
}

test('a read that returns after a commit does not hide that commit from later reads', {
  tags: ['slow'],
}, async () => {
  for (let number = 0; number < DOCUMENTS; number++) {
    const id = documentId('notes', number)
    const before = store.latestSequence
    const read = async () => {
      // Some reads return before the commit and some after it.
      for (let turns = number % 8; turns > 0; turns--) await new Promise(setImmediate)
      return store.read(id, before)
    }
    const [early] = await Promise.all([read(), commit(store, [number])])
    expect(early?.sequence).toBeLessThanOrEqual(before)
    expect((await store.read(id, before + 1))?.sequence).toBe(before + 1)
  }
})

test('a read at a future snapshot does not hide the commit that gets its sequence', {
  tags: ['slow'],
}, async () => {
  for (let number = 0; number < DOCUMENTS; number++) {
    const id = documentId('notes', number)
    // The snapshot of a Mutation can include a commit that fails.
    const lost = store.latestSequence + 1
    await Promise.all([store.read(id, lost), commit(store, [number])])
    expect((await store.read(id, lost))?.sequence).toBe(lost)
  }
})

test('a read whose version is pruned meanwhile fails, and never resolves without it', async () => {
  const snapshot = store.latestSequence
  const numbers = Array.from({ length: DOCUMENTS }, (_, number) => number)
  await commit(store, numbers)
  await commit(store, numbers)
  const outcomes = new Set<string>()
  let isPruned = false
  const prune = store
    .prune({
      oldestSnapshot: EVERYTHING,
      beforeMicros: BigInt(EVERYTHING),
      operationsBeforeMicros: 0n,
      rowsMax: 10_000,
    })
    .then(() => {
      isPruned = true
    })
  const read = async (number: number): Promise<void> => {
    try {
      const version = await store.read(documentId('notes', number), snapshot)
      outcomes.add(String(version?.sequence))
    } catch (error) {
      outcomes.add(isFault(error) ? error.code : String(error))
    }
  }
  // Each reader continues until the versions are removed, and then reads once more.
  const readers = numbers.slice(0, READERS).map(async (number) => {
    for (let turns = number; turns > 0; turns--) await new Promise(setImmediate)
    while (!isPruned) {
      await read(number)
      await new Promise(setImmediate)
    }
    await read(number)
  })
  await Promise.all([prune, ...readers])
  expect([...outcomes].filter((each) => !['1', 'UNAVAILABLE'].includes(each))).toEqual([])
  expect(outcomes).toContain('UNAVAILABLE')
})
