/**
 * Documents as the second version of both schemas has them, and a test of what a store reads after
 * it migrated them.
 */
import { expect } from 'vitest'
import { encodeTrailer, encodeValue } from '../../src/documents/key-encoding.ts'
import type { DocumentStore, DocumentsSnapshot } from '../../src/documents/store.ts'
import { idMillis } from '../../src/value/ids.ts'
import { found, operationRecord, pruneAll, whole } from './store-fixtures.ts'

interface EarlierVersion {
  readonly id: string
  readonly sequence: number
  readonly createdAtMicros: bigint
  readonly text: string | null
}

interface EarlierEntry {
  readonly index: number
  /** Hexadecimal. */
  readonly key: string
  readonly from: number
  /** Null while it is in use. */
  readonly until: number | null
}

const FIRST = 'notes_01M8B10X1Y00000QQ69M4DVGJ8'
const SECOND = 'notes_7ZZZZZZZZZZZZZZZZZZZZZZZZZ'
const GONE = 'notes_0123456789ABCDEFGHJKMNPQRS'
/** A document whose time is that of its ID, and one with another time, as after an import. */
const TIMES: Readonly<Record<string, bigint>> = {
  [FIRST]: BigInt(idMillis(FIRST)) * 1_000n,
  [SECOND]: -7n,
  [GONE]: 1n,
}
const OPERATION = operationRecord(1, {
  operationId: 'opn_01M8B10X1PJVR64WFNDK882PPY',
  result: JSON.stringify({ type: 'string', value: 'x'.repeat(5_000) }),
})

function version(id: string, sequence: number, text: string | null): EarlierVersion {
  return { id, sequence, createdAtMicros: TIMES[id]!, text }
}

function key(id: string, field: string | null): string {
  const fields = field === null ? '' : encodeValue(field)
  return fields + encodeTrailer({ id, createdAtMicros: TIMES[id]! })
}

function entry(index: number, of: string, from: number, until: number | null = null): EarlierEntry {
  return { index, key: Buffer.from(of, 'latin1').toString('hex'), from, until }
}

/** Index 1 is the order of the creation of `notes`, index 2 that of the field `a`. */
export const EARLIER = {
  latestSequence: 4,
  versions: [
    version(FIRST, 1, '{"a":"one","b":{"$i":"1"}}'),
    version(SECOND, 2, '{"a":"\\u0000"}'),
    version(GONE, 2, '{"a":"two"}'),
    version(FIRST, 3, '{"a":"three","b":{"$i":"1"}}'),
    version(GONE, 4, null),
  ],
  entries: [
    entry(1, key(FIRST, null), 1),
    entry(1, key(SECOND, null), 2),
    entry(1, key(GONE, null), 2, 4),
    entry(2, key(FIRST, 'one'), 1, 3),
    entry(2, key(FIRST, 'three'), 3),
    entry(2, key(SECOND, '\0'), 2),
    entry(2, key(GONE, 'two'), 2, 4),
  ],
  operation: OPERATION,
}

/** Checks that a store has migrated the documents, writes more of them and prunes them. */
export async function checkMigrated(store: DocumentStore): Promise<void> {
  const [first, second] = [EARLIER.versions[3]!, EARLIER.versions[1]!]
  expect(await store.read(FIRST, 4)).toEqual(first)
  expect(await store.read(SECOND, 4)).toEqual(second)
  expect(await store.read(GONE, 4)).toBeNull()
  expect(await store.operation(OPERATION.operationId)).toEqual(OPERATION)
  const byCreation = await found(store.range(whole(1, 4)))
  expect(byCreation.documents).toEqual([
    { key: key(SECOND, null), document: second },
    { key: key(FIRST, null), document: first },
  ])
  const byField = await found(store.range(whole(2, 4)))
  expect(byField.documents).toEqual([
    { key: key(SECOND, '\0'), document: second },
    { key: key(FIRST, 'three'), document: first },
  ])
  await store.setFieldShapes(new Map([['notes', { b: null, a: null, c: null }]]))
  const text = '{"a":"one","b":{"$i":"2"},"c":true}'
  const entries = [
    { index: 2, key: key(FIRST, 'three'), live: false },
    { index: 2, key: key(FIRST, 'one'), live: true },
  ]
  const createdAtMicros = TIMES[FIRST]!
  const writes = [{ id: FIRST, createdAtMicros, text, entries }]
  await store.commit({ transactions: [{ sequence: 5, atMicros: 0n, writes }] })
  // 2 versions of the first document, 2 of the deleted one; 4 entries.
  expect(await pruneAll(store, {})).toBe(8)
  const document = { id: FIRST, createdAtMicros, sequence: 5, text }
  const { documents } = await found(store.range(whole(2, 5)))
  expect(documents).toEqual([
    { key: key(SECOND, '\0'), document: second },
    { key: key(FIRST, 'one'), document },
  ])
}

/** Returns what a backup reads of a store. */
export async function scanned(documents: DocumentsSnapshot) {
  const { latestSequence } = documents
  const page = { after: '', snapshot: latestSequence, rowsMax: 100, textUnitsMax: 1_000_000 }
  const { indexes, shapes, names } = documents.schema()
  return {
    latestSequence,
    versions: (await documents.versions({ ...page })).rows,
    operations: (await documents.operations(page)).rows,
    schema: { indexes: [...indexes], shapes: [...shapes], names: [...names] },
  }
}
