/** Tests of what a document store says was stored after a sequence, which backups read. */
import { expect, test } from 'vitest'
import type {
  ChangesPage,
  DocumentStore,
  DocumentVersion,
  OperationRecord,
  ScanPage,
  TransactionWrite,
} from '../../src/documents/store.ts'
import type { MaybePromise } from '../../src/system/maybe-promise.ts'
import { encodeStored } from '../../src/value/stored.ts'
import { Random } from '../fuzzing/fuzz.ts'
import { SEED } from '../seeds.ts'
import {
  documentId,
  EVERYTHING,
  everythingGone,
  fieldsOf,
  type Model,
  operationRecord,
  pruneAll,
  type StoreContext,
} from './store-fixtures.ts'
import { fault, rejection } from './store-suite.ts'

/** Time between two batches: retention can pass each of them. */
const STEP_MICROS = 10_000_000n
const BATCHES = 12
const ALL = { rowsMax: 1_000, textUnitsMax: EVERYTHING }

interface Range {
  readonly above: number
  readonly snapshot: number
}

async function pagesOf<P extends ScanPage<unknown>>(
  read: (after: string) => MaybePromise<P | null>,
  between: () => Promise<void> = async () => undefined,
): Promise<P[]> {
  const pages: P[] = []
  for (let after: string | null = ''; after !== null; ) {
    const page: P | null = await read(after)
    if (page === null) throw new Error('the store does not know its changes')
    pages.push(page)
    after = page.after
    if (after !== null) await between()
  }
  return pages
}

const versionPages = (store: DocumentStore, range: Range, more: Partial<typeof ALL> = {}) =>
  pagesOf<ChangesPage>((after) => store.changedVersions({ ...ALL, ...more, ...range, after }))

const operationPages = (store: DocumentStore, range: Range, more: Partial<typeof ALL> = {}) =>
  pagesOf<ScanPage<OperationRecord>>((after) =>
    store.newOperations({ ...ALL, ...more, ...range, after }),
  )

/** The versions without repetitions, which have to be equal. */
function distinct(pages: readonly ChangesPage[]): DocumentVersion[] {
  const found = new Map<string, DocumentVersion>()
  for (const version of pages.flatMap(({ rows }) => rows)) {
    expect(found.get(version.id) ?? version).toEqual(version)
    found.set(version.id, version)
  }
  return [...found.values()]
}

const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1)

/** The newest version at the snapshot of each document that was written after a sequence. */
function changed(model: Model, { above, snapshot }: Range): DocumentVersion[] {
  return [...model.documents.values()].flatMap(({ id, createdAtMicros, versions }) => {
    const newest = versions.findLast(({ sequence }) => sequence <= snapshot)
    if (newest === undefined || newest.sequence <= above) return []
    const text = newest.fields === null ? null : encodeStored(newest.fields)
    return [{ id, createdAtMicros, sequence: newest.sequence, text }]
  })
}

/** Stores batches of random transactions. Returns all transactions in their order. */
async function randomBatches({ store, model }: StoreContext, random: Random) {
  const stored: TransactionWrite[] = []
  let operations = 0
  for (let batch = 0; batch < BATCHES; batch++) {
    const atMicros = BigInt(batch) * STEP_MICROS
    const transactions = Array.from({ length: 1 + random.below(3) }, () => {
      const count = random.below(4)
      const numbers = new Set(Array.from({ length: count }, () => random.below(7)))
      const writes = [...numbers].map((number) => {
        const fields = random.below(4) === 0 ? null : fieldsOf({ body: `${random.below(99)}` })
        return model.write([], { table: 'notes', number }, fields)
      })
      const sequence = writes.length === 0 ? null : ++model.sequence
      operations += 1
      const isRecorded = sequence === null || random.below(3) > 0
      const operation = operationRecord(operations, { commitSequence: sequence })
      return { sequence, atMicros, writes, ...(isRecorded && { operation }) }
    })
    await store.commit({ transactions })
    stored.push(...transactions)
  }
  return stored
}

/** The IDs of the operations that a backup up to `above` lacks at the snapshot, newest first. */
function lacking(stored: readonly TransactionWrite[], { above, snapshot }: Range): string[] {
  const isBackedUp = ({ sequence }: TransactionWrite) => sequence !== null && sequence <= above
  return stored
    .slice(stored.findLastIndex(isBackedUp) + 1)
    .filter(({ sequence }) => sequence === null || sequence <= snapshot)
    .flatMap(({ operation }) => (operation === undefined ? [] : [operation.operationId]))
    .reverse()
}

export function changeTests(context: StoreContext): void {
  contentTests(context)
  pageTests(context)
  orderTests(context)
  retentionTests(context)
}

function contentTests(context: StoreContext): void {
  async function compare(stored: readonly TransactionWrite[], snapshots: readonly number[]) {
    const { store, model } = context
    for (const snapshot of snapshots) {
      for (let above = 0; above <= snapshot; above++) {
        const range = { above, snapshot }
        const pages = await versionPages(store, range)
        const found = distinct(pages)
        expect(found.sort(byId)).toEqual(changed(model, range).sort(byId))
        expect(pages.every((page) => page.hasTombstones)).toBe(true)
        const records = (await operationPages(store, range)).flatMap(({ rows }) => rows)
        const expected = lacking(stored, range)
        const ids = records.map(({ operationId }) => operationId)
        expect(ids.slice(0, expected.length)).toEqual(expected)
        const more = records.slice(expected.length)
        expect(more.filter(({ commitSequence }) => commitSequence !== null)).toEqual([])
      }
    }
  }

  test(`changes have what each snapshot has after each sequence (SVC_SEED=${SEED})`, {
    tags: ['slow'],
  }, async () => {
    const stored = await randomBatches(context, new Random(SEED))
    const { sequence } = context.model
    await compare(stored, [...Array(sequence + 1).keys()])
    await context.store.close()
    context.store = await context.harness.open()
    await compare(stored, [sequence])
  })

  test(`pages of few rows have all changes (SVC_SEED=${SEED})`, { tags: ['slow'] }, async () => {
    const { store, model } = context
    const stored = await randomBatches(context, new Random(SEED))
    for (const rowsMax of [1, 2, 5]) {
      for (const above of [0, 3, model.sequence - 1]) {
        const range = { above, snapshot: model.sequence }
        const pages = await versionPages(store, range, { rowsMax })
        expect(Math.max(...pages.map(({ rows }) => rows.length))).toBeLessThanOrEqual(rowsMax)
        expect(distinct(pages).sort(byId)).toEqual(changed(model, range).sort(byId))
        const records = (await operationPages(store, range, { rowsMax })).flatMap(
          ({ rows }) => rows,
        )
        const expected = lacking(stored, range)
        expect(records.slice(0, expected.length).map(({ operationId }) => operationId)).toEqual(
          expected,
        )
      }
    }
  })
}

function pageTests(context: StoreContext): void {
  test('a page of changes ends where its texts reach the limit', async () => {
    const { store } = context
    const writes = [1, 2, 3, 4].map((number) => {
      const text = JSON.stringify({ body: 'é'.repeat(100_000) })
      return { id: documentId('notes', number), createdAtMicros: 0n, text, entries: [] }
    })
    const operation = (number: number) =>
      operationRecord(number, { result: `"${'é'.repeat(100_000)}"` })
    await store.commit({
      transactions: [
        { sequence: 1, atMicros: 0n, writes },
        ...[1, 2, 3, 4].map((number) => {
          return { sequence: null, atMicros: 0n, writes: [], operation: operation(number) }
        }),
      ],
    })
    const range = { above: 0, snapshot: 1 }
    const pages = await versionPages(store, range, { textUnitsMax: 150_000 })
    expect(
      distinct(pages)
        .sort(byId)
        .map(({ id }) => id),
    ).toEqual(writes.map(({ id }) => id))
    const records = await operationPages(store, range, { textUnitsMax: 150_000 })
    expect(records.flatMap(({ rows }) => rows.map(({ operationId }) => operationId))).toEqual(
      [4, 3, 2, 1].map((number) => documentId('opn', number)),
    )
    for (const each of [...pages, ...records]) expect(each.rows.length).toBeLessThanOrEqual(2)
  })

  test('versions that a later one replaced are left out, however many there are', {
    tags: ['slow'],
  }, async () => {
    const { store, model } = context
    const at = { table: 'notes', number: 1 }
    for (let i = 0; i < 100; i++) {
      await model.commit(store, [model.write([], at, fieldsOf({ body: `${i}` }))])
    }
    for (const snapshot of [100, 60]) {
      const rows = (await versionPages(store, { above: 20, snapshot })).flatMap((page) => page.rows)
      expect(rows).toEqual(changed(model, { above: 20, snapshot }))
    }
  })

  test('changes at a snapshot that retention passed are UNAVAILABLE', async () => {
    const { store } = context
    await randomBatches(context, new Random(1))
    await pruneAll(store, { oldestSnapshot: 8 })
    const request = { after: '', ...ALL, snapshot: 7, above: 7 }
    expect(await rejection(() => store.changedVersions(request))).toEqual(fault('UNAVAILABLE'))
    expect(await rejection(() => store.newOperations(request))).toEqual(fault('UNAVAILABLE'))
  })
}

function orderTests(context: StoreContext): void {
  const write = (number: number, text = '{}') => {
    return { id: documentId('notes', number), createdAtMicros: 0n, text, entries: [] }
  }
  const commit = (sequence: number, number: number): TransactionWrite => ({
    sequence,
    atMicros: 0n,
    writes: [write(sequence)],
    operation: operationRecord(number, { commitSequence: sequence }),
  })
  /** An operation that wrote nothing, with a time from long before. */
  const idle = (number: number): TransactionWrite => ({
    sequence: null,
    atMicros: 0n,
    writes: [],
    operation: operationRecord(number, { createdAtMicros: 1n }),
  })
  const recordedAfter = async (above: number, snapshot: number) => {
    const pages = await operationPages(context.store, { above, snapshot }, { rowsMax: 2 })
    const ids = pages.flatMap(({ rows }) => rows.map(({ operationId }) => operationId))
    return ids.map((id) => Number(id.slice(-4)))
  }

  test('operations that wrote nothing are new if they were stored after the commit', async () => {
    const { store } = context
    // The IDs, and so the order of the index, are not in the order of the commits.
    await store.commit({ transactions: [idle(900)] })
    await store.commit({ transactions: [commit(1, 50), idle(40)] })
    for (const number of [30, 20, 70]) await store.commit({ transactions: [idle(number)] })
    await store.commit({ transactions: [commit(2, 10), idle(60)] })
    expect(await recordedAfter(1, 2)).toEqual([60, 10, 70, 20, 30, 40])
    expect(await recordedAfter(1, 1)).toEqual([60, 70, 20, 30, 40])
    expect(await recordedAfter(2, 2)).toEqual([60])
    expect(await recordedAfter(0, 2)).toEqual([60, 10, 70, 20, 30, 40, 50, 900])
  })

  test('operations that follow a commit in its batch are new', async () => {
    const { store } = context
    await store.commit({ transactions: [commit(1, 1), idle(2), commit(2, 3), idle(4)] })
    expect(await recordedAfter(1, 2)).toEqual([4, 3, 2])
    expect(await recordedAfter(2, 2)).toEqual([4])
    expect(await recordedAfter(1, 1)).toEqual([4, 2])
  })

  test('changes end although each page is followed by another commit', async () => {
    const { store } = context
    for (const sequence of [1, 2, 3, 4]) {
      await store.commit({ transactions: [commit(sequence, sequence)] })
    }
    let sequence = 4
    const between = async () => {
      sequence += 1
      const { id } = write(sequence % 4)
      const writes = [{ ...write(sequence), id }]
      await store.commit({ transactions: [{ ...commit(sequence, sequence), writes }] })
    }
    const request = { ...ALL, rowsMax: 1, above: 1, snapshot: 4 }
    const read = (after: string) => store.changedVersions({ ...request, after })
    const pages = await pagesOf<ChangesPage>(read, between)
    expect(distinct(pages).map((version) => version.sequence)).toEqual([4, 3, 2])
    const records = await pagesOf<ScanPage<OperationRecord>>(
      (after) => store.newOperations({ ...request, after }),
      between,
    )
    expect(records.flatMap(({ rows }) => rows.map((row) => row.commitSequence))).toEqual([4, 3, 2])
    expect(pages.length).toBeLessThan(8)
  })
}

/** The numbers of documents and their bodies, one for each commit; null deletes. */
const BODIES: readonly (readonly [number, string | null])[] = [
  [1, 'a'],
  [2, 'b'],
  [3, 'c'],
  [1, null],
  [2, 'd'],
  [4, 'e'],
  [3, null],
]

function retentionTests(context: StoreContext): void {
  const note = (number: number, body: string | null) =>
    context.model.write([], { table: 'notes', number }, body === null ? null : fieldsOf({ body }))

  /** Commits, a step apart, the last of which deletes a document. */
  async function written() {
    const { store, model } = context
    for (const [number, body] of BODIES) {
      await model.commit(store, [note(number, body)], BigInt(model.sequence) * STEP_MICROS)
    }
  }

  const isKnown = async (above: number) => {
    const { store, model } = context
    const request = { ...ALL, after: '', above, snapshot: model.sequence }
    const page = await store.changedVersions(request)
    return page?.hasTombstones === true
  }

  test('changes that lack a tombstone say so, and those that have all do not', async () => {
    const { store, model } = context
    await written()
    expect(await isKnown(3)).toBe(true)
    await pruneAll(store, { oldestSnapshot: 5 })
    // The tombstone of the sequence 4 is gone.
    expect(await Promise.all([0, 3].map(isKnown))).toEqual([false, false])
    expect(await Promise.all([5, 6, 7].map(isKnown))).toEqual([true, true, true])
    await pruneAll(store, {})
    expect(await Promise.all([5, 6, 7].map(isKnown))).toEqual([false, false, true])
    expect(model.sequence).toBe(7)
  })

  test('a store that retention has gone through knows the next commit', async () => {
    const { store, model } = context
    await written()
    await pruneAll(store, {})
    await context.store.close()
    context.store = await context.harness.open()
    await model.commit(context.store, [note(2, null)], 100n * STEP_MICROS)
    expect(await Promise.all([6, 7].map(isKnown))).toEqual([false, true])
    const range = { above: 7, snapshot: 8 }
    expect(distinct(await versionPages(context.store, range))).toEqual(changed(model, range))
  })

  test(`changes with all tombstones have all changes (SVC_SEED=${SEED})`, {
    tags: ['slow'],
  }, async () => {
    const { model } = context
    const random = new Random(SEED)
    await randomBatches(context, random)
    let known = 0
    for (let round = 0; round < 12; round++) {
      const oldestSnapshot = Math.min(model.sequence, Math.floor((round * model.sequence) / 9))
      const rowsMax = 1 + random.below(4)
      await context.store.prune({ ...everythingGone(rowsMax), oldestSnapshot })
      if (round % 4 === 3) {
        await context.store.close()
        context.store = await context.harness.open()
      }
      for (let above = 0; above <= model.sequence; above++) {
        const range = { above, snapshot: model.sequence }
        if (!(await isKnown(above))) continue
        known += 1
        expect(distinct(await versionPages(context.store, range)).sort(byId)).toEqual(
          changed(model, range).sort(byId),
        )
      }
    }
    expect(known).toBeGreaterThan(12)
  })

  test('a tombstone that retention removes between two pages is noticed', async () => {
    const { store, model } = context
    await written()
    const request = { ...ALL, rowsMax: 1, above: 3, snapshot: model.sequence }
    const pages = await pagesOf<ChangesPage>(
      (after) => store.changedVersions({ ...request, after }),
      async () => {
        await pruneAll(store, {})
      },
    )
    expect(pages[0]!.hasTombstones).toBe(true)
    expect(pages.at(-1)!.hasTombstones).toBe(false)
  })
}
