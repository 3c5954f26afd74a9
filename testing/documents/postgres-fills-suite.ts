/** Adds an index to a full table while its documents are read and written. */
import { expect, test } from 'vitest'
import { indexKey, keySuccessor } from '../../src/documents/keys.ts'
import type { DocumentStore, DocumentWrite, PhysicalIndex } from '../../src/documents/store.ts'
import { encodeStored } from '../../src/value/stored.ts'
import type { ValueObject } from '../../src/value/values.ts'
import { freshDatabase } from '../databases/postgres.ts'
import { documentId, fieldsOf } from './store-fixtures.ts'
import { openDocuments } from './stores.ts'

const DEFINITION = { table: 'items', fields: ['group'] }
const BODY = 'An item of ordinary length, as most of them are.'
const BATCH = 2_000
/** Bounds of the duration of a commit beside a build of minutes. */
const COMMIT_MILLIS_MEDIAN = 250
const COMMIT_MILLIS_MAX = 5_000
const LONG_DOCUMENTS = 1_000_000
/** A build that held up commits would meet one. */
const COMMITS_MIN = 3

interface Item {
  group: bigint
  /** Null for a deleted document. */
  fields: ValueObject | null
}

function itemOf(group: bigint): Item {
  return { group, fields: fieldsOf({ group, body: BODY }) }
}

/** Writes texts without the encoder, whose million calls would dominate the test. */
function filling(from: number, count: number): DocumentWrite[] {
  return Array.from({ length: count }, (_, i) => {
    const text = `{"body":"${BODY}","group":{"$i":"${(from + i) % 100}"}}`
    return { id: documentId('items', from + i), createdAtMicros: 0n, text, entries: [] }
  })
}

/** Changes one document, with the entries of its indexes. */
function change(
  items: Item[],
  indexes: readonly PhysicalIndex[],
  number: number,
  next: Item,
): DocumentWrite {
  const id = documentId('items', number)
  const before = items[number]!
  items[number] = next
  const entries = indexes.flatMap((index) => {
    const keyOf = (fields: ValueObject | null) =>
      fields === null ? null : indexKey(index, { id, createdAtMicros: 0n, fields })
    const [old, key] = [keyOf(before.fields), keyOf(next.fields)]
    if (old === key) return []
    const lost = old === null ? [] : [{ index: index.id, key: old, live: false }]
    return key === null ? lost : [...lost, { index: index.id, key, live: true }]
  })
  const text = next.fields === null ? null : encodeStored(next.fields)
  return { id, createdAtMicros: 0n, text, entries }
}

async function commitAndTime(store: DocumentStore, writes: DocumentWrite[]): Promise<number> {
  const begin = performance.now()
  const sequence = store.latestSequence + 1
  await store.commit({ transactions: [{ sequence, atMicros: 0n, writes }] })
  return performance.now() - begin
}

async function keysOf(store: DocumentStore, index: number): Promise<string[]> {
  const keys: string[] = []
  for (let lower = ''; ; lower = keySuccessor(keys.at(-1)!)) {
    const page = await store.range({
      index,
      lower,
      upper: '\xff',
      order: 'asc',
      limit: 10_000,
      textUnitsMax: 1e9,
      snapshot: store.latestSequence,
    })
    for (const { key } of page.documents) keys.push(key)
    if (page.exhausted) return keys
  }
}

export function fillSuite(documents: number, timeout: number): void {
  test(`an index is added to ${documents} documents without stopping traffic`, {
    tags: ['slow'],
    timeout: timeout,
  }, async () => {
    const database = await freshDatabase()
    const store = await openDocuments(database.url)
    try {
      for (let from = 0; from < documents; from += BATCH) {
        await commitAndTime(store, filling(from, BATCH))
      }
      const items = Array.from({ length: documents }, (_, number) => itemOf(BigInt(number % 100)))
      const [index] = await store.ensureIndexes([DEFINITION])
      const begin = performance.now()
      let building = true
      const built = store.buildIndex(index!.id).finally(() => {
        building = false
      })
      const waits: number[] = []
      for (let i = 0; building; i++) {
        // Documents from the whole table: before and after the position of the build.
        const number = (i * 7_919) % documents
        const next = [{ group: 0n, fields: null }, itemOf(7n), itemOf(items[number]!.group)][i % 3]!
        const indexes = store.listIndexes()
        waits.push(await commitAndTime(store, [change(items, indexes, number, next)]))
        await store.read(documentId('items', (i * 31) % documents), store.latestSequence)
      }
      await built
      const seconds = (performance.now() - begin) / 1000
      waits.sort((a, b) => a - b)
      const [median, most] = [waits[waits.length >> 1]!, waits.at(-1)!]
      process.stdout.write(
        `${documents} documents in ${seconds.toFixed(1)} s, ${waits.length} commits meanwhile: ` +
          `median ${median.toFixed(1)} ms, at most ${most.toFixed(0)} ms\n`,
      )
      expect(waits.length).toBeGreaterThanOrEqual(COMMITS_MIN)
      if (documents >= LONG_DOCUMENTS) {
        expect(median).toBeLessThan(COMMIT_MILLIS_MEDIAN)
        expect(most).toBeLessThan(COMMIT_MILLIS_MAX)
      }
      const expected = items.flatMap(({ fields }, number) =>
        fields === null
          ? []
          : [
              indexKey(DEFINITION, {
                id: documentId('items', number),
                createdAtMicros: 0n,
                fields,
              }),
            ],
      )
      expect((await keysOf(store, index!.id)).join('\n') === expected.sort().join('\n')).toBe(true)
    } finally {
      await store.close()
      await database.drop()
    }
  })
}
