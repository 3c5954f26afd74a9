/** Tests of the document store port, which every store has to pass. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { keySuccessor } from '../../src/documents/keys.ts'
import type { Code } from '../../src/errors/codes.ts'
import { isFault } from '../../src/errors/fault.ts'
import type { FieldShape } from '../../src/value/schema/field-shapes.ts'
import {
  BY_CHANNEL,
  builtIndexes,
  CREATION,
  documentId,
  fieldsOf,
  found,
  Model,
  operationRecord,
  pruneAll,
  type StoreContext,
  type StoreHarness,
  whole,
} from './store-fixtures.ts'

export function documentStoreSuite(name: string, make: () => Promise<StoreHarness>): void {
  const groups = [versionTests, rangeTests, operationTests, indexTests, shapeTests, lifeTests]
  describeStore(`document store: ${name}`, make, groups)
}

/** Runs groups of tests, with a new store per test. */
export function describeStore(
  title: string,
  make: () => Promise<StoreHarness>,
  groups: readonly ((context: StoreContext) => void)[],
): void {
  describe(title, () => {
    const context = {} as StoreContext
    beforeEach(async () => {
      context.harness = await make()
      context.store = await context.harness.open()
      context.model = new Model()
    })
    afterEach(async () => {
      await context.store.close()
      await context.harness.dispose()
    })
    for (const group of groups) group(context)
  })
}

export function fault(code: Code) {
  return expect.toSatisfy((error: unknown) => isFault(error, code))
}

export async function rejection(run: () => unknown): Promise<unknown> {
  try {
    await run()
  } catch (error) {
    return error
  }
  return null
}

function versionTests(context: StoreContext): void {
  test('a read sees the newest version at or before its snapshot', async () => {
    const { store, model } = context
    const at = { table: 'messages', number: 1 }
    await model.commit(store, [model.write([], at, fieldsOf({ body: 'one' }))])
    await model.commit(store, [model.write([], { ...at, number: 2 }, fieldsOf({ body: 'x' }))])
    await model.commit(store, [model.write([], at, fieldsOf({ body: 'two' }))])
    await model.commit(store, [model.write([], at, null)])
    expect(store.latestSequence).toBe(4)
    const id = documentId('messages', 1)
    for (let snapshot = 0; snapshot <= 4; snapshot++) {
      expect(await store.read(id, snapshot)).toEqual(model.read(id, snapshot))
    }
    expect(await store.read(id, 4)).toBeNull()
    expect(await store.read(documentId('messages', 9), 4)).toBeNull()
  })

  test('the text of a document is read as it was written', async () => {
    const { store } = context
    const text = `{"a":"\\u0000 é \u{1f600}","b":${'[1]'.padEnd(1_000_000)}}`
    const write = { id: documentId('notes', 1), createdAtMicros: -5n, text, entries: [] }
    await store.commit({ transactions: [{ sequence: 7, atMicros: 0n, writes: [write] }] })
    const document = await store.read(write.id, 7)
    expect(document).toEqual({ id: write.id, createdAtMicros: -5n, sequence: 7, text })
  })

  test('a store that was trimmed reads and commits as before', async () => {
    const { store, model } = context
    const [one, two] = [1, 2].map((number) => ({ table: 'messages', number }))
    await model.commit(store, [model.write([], one!, fieldsOf({ body: 'one' }))])
    const committing = model.commit(store, [model.write([], two!, fieldsOf({ body: 'two' }))])
    store.trim()
    await committing
    store.trim()
    for (const number of [1, 2]) {
      const id = documentId('messages', number)
      for (const snapshot of [1, 2]) {
        expect(await store.read(id, snapshot)).toEqual(model.read(id, snapshot))
      }
    }
    await model.commit(store, [model.write([], one!, fieldsOf({ body: 'new' }))])
    expect(await store.read(documentId('messages', 1), 3)).toEqual(
      model.read(documentId('messages', 1), 3),
    )
  })

  test('a batch whose sequences do not ascend fails the store', async () => {
    const { store, model } = context
    await model.commit(store, [model.write([], { table: 'notes', number: 1 }, fieldsOf({}))])
    const write = (number: number) => ({
      id: documentId('notes', number),
      createdAtMicros: 0n,
      text: '{}',
      entries: [],
    })
    const batch = [2, 1].map((sequence, i) => ({
      sequence,
      atMicros: 0n,
      writes: [write(i + 2)],
    }))
    const error = await rejection(() => store.commit({ transactions: batch }))
    expect(error).toEqual(fault('PRODUCT_CORRUPT'))
    expect(store.status.state).toBe('failed')
    expect(await rejection(() => store.read(write(2).id, 2))).toEqual(fault('UNAVAILABLE'))
    await store.close()
    context.store = await context.harness.open()
    expect(context.store.latestSequence).toBe(1)
    expect(await context.store.read(write(2).id, 1)).toBeNull()
  })
}

function rangeTests(context: StoreContext): void {
  async function filled() {
    const { store, model } = context
    const indexes = await builtIndexes(store, [CREATION, BY_CHANNEL])
    for (let number = 1; number <= 20; number++) {
      const fields = fieldsOf({ channel: number % 2 === 0 ? 'even' : 'odd', body: `${number}` })
      const writes = [model.write(indexes, { table: 'messages', number }, fields)]
      await model.commit(store, writes)
    }
    return { store, model, indexes, byChannel: indexes[1]! }
  }

  test('a range has the documents of its interval in either key order', async () => {
    const { store, model, byChannel } = await filled()
    const all = model.range(BY_CHANNEL, 20)
    const [lower, upper] = [all[3]!.key, all[15]!.key]
    const request = { ...whole(byChannel.id, 20), lower, upper }
    const expected = model.range(BY_CHANNEL, 20, lower, upper)
    expect(expected).toHaveLength(12)
    expect(await found(store.range(request))).toEqual({ documents: expected, exhausted: true })
    expect(await found(store.range({ ...request, order: 'desc' }))).toEqual({
      documents: expected.toReversed(),
      exhausted: true,
    })
    const empty = { documents: [], exhausted: true }
    expect(await found(store.range({ ...request, lower: upper, upper: lower }))).toEqual(empty)
  })

  test('a limit ends a range, and the next range begins after its last key', async () => {
    const { store, model, byChannel } = await filled()
    let lower = ''
    const pages: string[] = []
    for (;;) {
      const page = await found(store.range({ ...whole(byChannel.id, 20), lower, limit: 7 }))
      pages.push(...page.documents.map(({ document }) => document.id))
      if (page.exhausted) break
      lower = keySuccessor(page.documents.at(-1)!.key)
    }
    expect(pages).toEqual(model.range(BY_CHANNEL, 20).map(({ document }) => document.id))
    const exact = await found(store.range({ ...whole(byChannel.id, 20), limit: 20 }))
    expect(exact.exhausted).toBe(false)
    const units = await found(store.range({ ...whole(byChannel.id, 20), textUnitsMax: 58 }))
    expect(units.documents).toHaveLength(2)
    expect(units.exhausted).toBe(false)
  })

  test('old versions, moved keys and deletions are not part of a range', async () => {
    const { store, model, indexes, byChannel } = await filled()
    for (let number = 1; number <= 18; number++) {
      const at = { table: 'messages', number }
      const channel = number % 2 === 0 ? 'even' : 'odd'
      const fields = [
        fieldsOf({ channel, body: 'same key' }),
        fieldsOf({ channel: 'moved', body: '' }),
        number % 3 === 0 ? null : fieldsOf({ channel, body: 'back' }),
      ]
      await model.commit(store, [model.write(indexes, at, fields[number % 3]!)])
      await model.commit(store, [model.write(indexes, at, fields[(number + 1) % 3]!)])
    }
    for (const snapshot of [1, 20, 33, 40, 51, model.sequence]) {
      for (const index of indexes) {
        const documents = model.range(index, snapshot)
        const result = await found(store.range(whole(index.id, snapshot)))
        expect(result).toEqual({ documents, exhausted: true })
      }
      const five = await found(store.range({ ...whole(byChannel.id, snapshot), limit: 5 }))
      expect(five.documents).toEqual(model.range(BY_CHANNEL, snapshot).slice(0, 5))
    }
  })
}

function operationTests(context: StoreContext): void {
  test('an operation record is found after a restart, with and without a write', async () => {
    const { store, harness } = context
    const [none, wrote] = [operationRecord(1), operationRecord(2, { commitSequence: 3 })]
    await store.commit({
      transactions: [
        { sequence: null, atMicros: 0n, writes: [], operation: none },
        { sequence: 3, atMicros: 0n, writes: [], operation: wrote },
      ],
    })
    expect(await store.operation(wrote.operationId)).toEqual(wrote)
    await store.close()
    context.store = await harness.open()
    expect(await context.store.operation(none.operationId)).toEqual(none)
    expect(await context.store.operation(wrote.operationId)).toEqual(wrote)
    expect(await context.store.operation(documentId('opn', 9))).toBeNull()
    expect(context.store.latestSequence).toBe(3)
  })

  test('one operation cannot be recorded twice', async () => {
    const { store } = context
    const transactions = [
      { sequence: null, atMicros: 0n, writes: [], operation: operationRecord(1) },
    ]
    await store.commit({ transactions })
    const error = await rejection(() => store.commit({ transactions }))
    expect(error).toEqual(fault('PRODUCT_CORRUPT'))
  })
}

function indexTests(context: StoreContext): void {
  test('a definition has one index, which survives a restart', async () => {
    const { store, harness } = context
    const [a, b] = await store.ensureIndexes([CREATION, BY_CHANNEL])
    expect((await store.ensureIndexes([BY_CHANNEL, CREATION])).map(({ id }) => id)).toEqual([
      b!.id,
      a!.id,
    ])
    expect(a).toEqual({ id: a!.id, ...CREATION, state: 'building' })
    await store.buildIndex(a!.id)
    await store.close()
    context.store = await harness.open()
    expect(context.store.listIndexes()).toEqual([
      { id: a!.id, ...CREATION, state: 'ready' },
      { id: b!.id, ...BY_CHANNEL, state: 'building' },
    ])
  })

  test('a build includes every document, also those that change during it', async () => {
    const { store, model } = context
    const writes = Array.from({ length: 700 }, (_, number) =>
      model.write([], { table: 'messages', number }, fieldsOf({ channel: `${number % 9}` })),
    )
    await model.commit(store, writes)
    const [index] = await store.ensureIndexes([BY_CHANNEL])
    const built = store.buildIndex(index!.id)
    for (let number = 0; number < 700; number += 35) {
      const change = [null, fieldsOf({ channel: 'new' }), fieldsOf({ channel: `${number % 9}` })]
      const at = { table: 'messages', number }
      await model.commit(store, [model.write([index!], at, change[(number / 35) % 3]!)])
    }
    await built
    const result = await found(store.range(whole(index!.id, model.sequence)))
    expect(result.documents).toEqual(model.range(BY_CHANNEL, model.sequence))
    const early = await rejection(() => store.range(whole(index!.id, 1)))
    expect(early).toEqual(fault('UNAVAILABLE'))
  })

  test('an index in which absent fields have a default is one of its own', async () => {
    const { store, model, harness } = context
    const byDefault = { ...BY_CHANNEL, defaults: ['"general"'] }
    const indexes = await store.ensureIndexes([BY_CHANNEL, byDefault])
    const at = (number: number) => ({ table: 'messages', number })
    const [plain, named] = [fieldsOf({ body: '' }), fieldsOf({ channel: 'alerts' })]
    await model.commit(store, [model.write(indexes, at(1), plain)])
    for (const { id } of indexes) await store.buildIndex(id)
    await model.commit(store, [
      model.write(indexes, at(2), named),
      model.write(indexes, at(3), plain),
    ])
    await store.close()
    context.store = await harness.open()
    const again = await context.store.ensureIndexes([
      { ...byDefault, defaults: ['"general"'] },
      BY_CHANNEL,
    ])
    expect(again).toEqual([
      { id: indexes[1]!.id, ...byDefault, state: 'ready' },
      { id: indexes[0]!.id, ...BY_CHANNEL, state: 'ready' },
    ])
    const orderOf = async (index: number) => {
      const { documents } = await context.store.range(whole(index, model.sequence))
      return documents.map(({ document }) => Number(document.id.slice(-1)))
    }
    expect(await orderOf(again[0]!.id)).toEqual([2, 1, 3])
    expect(await orderOf(again[1]!.id)).toEqual([1, 3, 2])
  })

  test('a document whose key is too long fails only the build', async () => {
    const { store, model } = context
    const fields = fieldsOf({ channel: 'x'.repeat(20_000) })
    await model.commit(store, [model.write([], { table: 'messages', number: 1 }, fields)])
    const [index] = await store.ensureIndexes([BY_CHANNEL])
    const error = await rejection(() => store.buildIndex(index!.id))
    expect(error).toEqual(fault('LIMIT_EXCEEDED'))
    await store.dropIndex(index!.id)
    expect(store.listIndexes()).toEqual([])
    const [again] = await store.ensureIndexes([BY_CHANNEL])
    expect(again!.id).toBeGreaterThan(index!.id)
    expect(store.status.state).toBe('open')
  })

  test('entries of a dropped index are ignored, and its build ends', async () => {
    const { store, model } = context
    const indexes = await builtIndexes(store, [BY_CHANNEL])
    const at = { table: 'messages', number: 1 }
    await model.commit(store, [model.write(indexes, at, fieldsOf({ channel: 'a' }))])
    const [creation] = await store.ensureIndexes([CREATION])
    const outcome = rejection(() => store.buildIndex(creation!.id))
    await Promise.all([store.dropIndex(indexes[0]!.id), store.dropIndex(creation!.id)])
    await outcome
    await model.commit(store, [model.write(indexes, at, fieldsOf({ channel: 'b' }))])
    const removed = await pruneAll(store, { oldestSnapshot: model.sequence - 1 })
    // One entry of each index: the first chunk of the build ran before its drop.
    expect(removed).toBe(2)
    expect(store.listIndexes()).toEqual([])
    const late = await rejection(() => store.range(whole(indexes[0]!.id, model.sequence)))
    expect(late).toEqual(fault('UNAVAILABLE'))
    expect(store.status.state).toBe('open')
    expect(await store.read(documentId('messages', 1), model.sequence)).not.toBeNull()
  })
}

function shapeTests(context: StoreContext): void {
  test('the fields of tables survive a restart, each as it was set last', async () => {
    const { store, harness } = context
    expect([...store.fieldShapes()]).toEqual([])
    await store.setFieldShapes(new Map([['messages', { body: null, by: { name: null } }]]))
    await store.setFieldShapes(new Map<string, FieldShape>([['notes', 'any']]))
    await store.setFieldShapes(new Map([['messages', { body: null }]]))
    const expected = new Map<string, FieldShape>([
      ['messages', { body: null }],
      ['notes', 'any'],
    ])
    expect(store.fieldShapes()).toEqual(expected)
    await store.close()
    context.store = await harness.open()
    expect(context.store.fieldShapes()).toEqual(expected)
  })
}

function lifeTests(context: StoreContext): void {
  test('a closing store waits for pending commits and rejects new ones', async () => {
    const { store, model, harness } = context
    const commits = Array.from({ length: 20 }, (_, number) =>
      model.commit(store, [model.write([], { table: 'notes', number }, fieldsOf({}))]),
    )
    const closed = store.close()
    const late = await rejection(() => store.commit({ transactions: [] }))
    expect(late).toEqual(fault('UNAVAILABLE'))
    await Promise.all([closed, ...commits])
    expect(store.status).toEqual({ state: 'closed' })
    expect(await rejection(() => store.read('x', 20))).toEqual(fault('UNAVAILABLE'))
    context.store = await harness.open()
    expect(context.store.latestSequence).toBe(20)
  })
}
