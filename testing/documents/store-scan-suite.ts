/** Tests of the scans that backups read a document store with, which every store has to pass. */
import { expect, test } from 'vitest'
import type {
  DocumentVersion,
  DocumentWrite,
  OperationRecord,
  ScanPage,
  ScanRequest,
} from '../../src/documents/store.ts'
import { changeTests } from './store-changes.ts'
import {
  documentId,
  EVERYTHING,
  fieldsOf,
  operationRecord,
  pruneAll,
  type StoreContext,
  type StoreHarness,
} from './store-fixtures.ts'
import { describeStore, fault, rejection } from './store-suite.ts'

export function documentScanSuite(name: string, make: () => Promise<StoreHarness>): void {
  describeStore(`scans of a document store: ${name}`, make, [scanTests, changeTests])
}

function scanTests(context: StoreContext): void {
  const all = { rowsMax: 1_000, textUnitsMax: EVERYTHING }

  /** Reads all pages, each of which looks at `rowsMax` documents at most. */
  async function scanned(request: Omit<ScanRequest, 'after'>) {
    const pages: DocumentVersion[][] = []
    let after: string | null = ''
    while (after !== null) {
      const page = await context.store.versions({ ...request, after })
      pages.push([...page.rows])
      after = page.after
    }
    return pages
  }

  /** Ten commits, ten seconds apart, so that retention can pass each of them. */
  async function written() {
    const { store, model } = context
    const change = (table: string, number: number, body: string | null) =>
      model.write([], { table, number }, body === null ? null : fieldsOf({ body }))
    const commit = (...writes: DocumentWrite[]) =>
      model.commit(store, writes, BigInt(model.sequence) * 10_000_000n)
    for (const number of [5, 3, 4]) await commit(change('notes', number, 'one'))
    await commit(change('messages', 9, 'x'), change('notes', 3, 'two'))
    for (let i = 0; i < 5; i++) await commit(change('notes', 4, `version ${i}`))
    await commit(change('notes', 5, null))
  }

  test('a scan has the documents that its snapshot sees, in the order of their IDs', async () => {
    const { model } = context
    await written()
    const ids = [...context.model.documents.keys()].sort()
    for (let snapshot = 0; snapshot <= model.sequence; snapshot++) {
      const expected = ids.map((id) => model.read(id, snapshot)).filter((found) => found !== null)
      for (const rowsMax of [1, 2, 1_000]) {
        const pages = await scanned({ ...all, snapshot, rowsMax })
        expect(pages.flat()).toEqual(expected)
        expect(Math.max(...pages.map(({ length }) => length))).toBeLessThanOrEqual(rowsMax)
      }
    }
  })

  test('a page of a scan ends where its texts reach the limit', async () => {
    const { store } = context
    const writes = [1, 2, 3, 4].map((number) => {
      const text = JSON.stringify({ body: 'é'.repeat(100_000) })
      return { id: documentId('notes', number), createdAtMicros: 0n, text, entries: [] }
    })
    await store.commit({ transactions: [{ sequence: 1, atMicros: 0n, writes }] })
    const pages = await scanned({ ...all, snapshot: 1, textUnitsMax: 150_000 })
    expect(pages.flat().map(({ text }) => text)).toEqual(writes.map(({ text }) => text))
    expect(Math.max(...pages.map(({ length }) => length))).toBeLessThanOrEqual(2)
  })

  test('a scan of operations has those of its snapshot, and those that wrote nothing', async () => {
    const { store } = context
    const write = { id: documentId('notes', 1), createdAtMicros: 0n, text: '{}', entries: [] }
    const records = [
      operationRecord(7, { commitSequence: 1, result: `"${'long '.repeat(1_000)}"` }),
      operationRecord(3, { commitSequence: 2 }),
      operationRecord(5),
    ]
    for (const operation of records) {
      const sequence = operation.commitSequence
      const writes = sequence === null ? [] : [write]
      await store.commit({ transactions: [{ sequence, atMicros: 0n, writes, operation }] })
    }
    const read = async (request: Omit<ScanRequest, 'after'>) => {
      const found: OperationRecord[] = []
      let after: string | null = ''
      while (after !== null) {
        const page = await store.operations({ ...request, after })
        expect(page.rows.length).toBeLessThanOrEqual(request.rowsMax)
        found.push(...page.rows)
        after = page.after
      }
      const plain = found.map((record) => ({
        ...record,
        fingerprint: new Uint8Array(record.fingerprint),
      }))
      // Each store has an order of its own.
      return plain.sort((a, b) => (a.operationId < b.operationId ? -1 : 1))
    }
    const [first, second, third] = records
    expect(await read({ ...all, snapshot: 2 })).toEqual([second, third, first])
    expect(await read({ ...all, snapshot: 2, rowsMax: 1 })).toEqual([second, third, first])
    expect(await read({ ...all, snapshot: 1, textUnitsMax: 1 })).toEqual([third, first])
  })

  test('a scan of operations ends although each page is followed by another commit', async () => {
    const { store } = context
    const commit = (sequence: number) => {
      const operation = operationRecord(sequence, { commitSequence: sequence })
      const text = `{"number":${sequence}}`
      const write = { id: documentId('notes', 1), createdAtMicros: 0n, text, entries: [] }
      const transaction = { sequence, atMicros: 0n, writes: [write], operation }
      return store.commit({ transactions: [transaction] })
    }
    for (const sequence of [1, 2, 3]) await commit(sequence)
    const found: OperationRecord[] = []
    let pages = 0
    for (let after: string | null = ''; after !== null; pages++) {
      expect(pages).toBeLessThan(5)
      const page: ScanPage<OperationRecord> = await store.operations({
        ...all,
        snapshot: 3,
        rowsMax: 1,
        after,
      })
      found.push(...page.rows)
      after = page.after
      await commit(4 + pages)
    }
    expect(found.map(({ commitSequence }) => commitSequence)).toEqual([1, 2, 3])
  })

  test('a scan of a snapshot that retention passed is UNAVAILABLE', async () => {
    const { store } = context
    await written()
    await pruneAll(store, { oldestSnapshot: 8 })
    const scan = { after: '', ...all, snapshot: 7 }
    expect(await rejection(() => store.versions(scan))).toEqual(fault('UNAVAILABLE'))
    expect(await rejection(() => store.operations(scan))).toEqual(fault('UNAVAILABLE'))
  })
}
