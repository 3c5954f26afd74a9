import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { functionManifest, publishRelease, REQUEST_ID } from '../../../testing/products.ts'
import { faultCode } from '../../../testing/releases.ts'
import type { DocumentChange } from '../../engine/administration/document-administration.ts'
import { Fault } from '../../errors/fault.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { TableManifest } from '../../value/manifest.ts'
import type { Value, ValueObject } from '../../value/values.ts'
import { retire } from '../releases/retire.ts'
import {
  changeDocument,
  compactDocuments,
  importDocuments,
  queryDocuments,
  readDocument,
} from './documents.ts'

const TABLES: readonly TableManifest[] = [
  {
    name: 'notes',
    fields: {
      body: { type: 'string', maximumLength: 20 },
      stars: { type: 'optional', inner: { type: 'int64' } },
    },
    indexes: [
      { name: 'byBody', fields: ['body'], unique: true },
      { name: 'byStars', fields: ['stars'], unique: false },
    ],
  },
  { name: 'pages', fields: { text: { type: 'string' } }, indexes: [] },
]
const TARGET = 'channel:production'

let gateway: TestGateway
beforeEach(async () => {
  gateway = await openTestGateway({
    functions: [functionManifest('notes.list')],
    tables: TABLES,
    handlers: {},
  })
})
afterEach(() => gateway.close())

const ids = () => gateway.harness.system.ids
/** Crockford digits of a document's ID; `n` decides the last two. */
const idOf = (n: number) => `notes_01ARZ3NDEKTSV4RRFFQ69G5F${String(n).padStart(2, '0')}`
const fields = (body: string, stars?: bigint): ValueObject => {
  const value = new Map<string, Value>([['body', body]])
  return stars === undefined ? value : value.set('stars', stars)
}

function change(
  changed: DocumentChange,
  { operationId = ids().make('opn'), actor = gateway.harness.actor, target = TARGET } = {},
) {
  const changedAtMicros = gateway.harness.system.nowMicros()
  const input = { operationId, target, change: changed, changedAtMicros, requestId: REQUEST_ID }
  return changeDocument(gateway.harness.product, actor, input)
}

function insert(n: number, value: ValueObject, options?: Parameters<typeof change>[1]) {
  const createdAtMicros = gateway.harness.system.nowMicros()
  return change(
    { kind: 'insert', table: 'notes', documentId: idOf(n), createdAtMicros, value },
    options,
  )
}

function replace(n: number, expectedRevision: number, value: ValueObject) {
  return change({ kind: 'replace', table: 'notes', documentId: idOf(n), expectedRevision, value })
}

function remove(n: number, expectedRevision: number) {
  return change({ kind: 'delete', table: 'notes', documentId: idOf(n), expectedRevision })
}

const read = (n: number) => {
  const { product } = gateway.harness
  return readDocument(product, TARGET, { table: 'notes', documentId: idOf(n) })
}

const query = (more: Partial<Parameters<typeof queryDocuments>[2]> = {}) =>
  queryDocuments(gateway.harness.product, TARGET, {
    table: 'notes',
    index: null,
    order: 'asc',
    limit: 100,
    equalFields: [],
    equal: [],
    field: undefined,
    lower: undefined,
    upper: undefined,
    after: undefined,
    ...more,
  })

test('a document is inserted, replaced under its revision, and deleted', async () => {
  const { document: first } = await insert(1, fields('one', 1n))
  expect(await read(1)).toEqual(first)
  const { document: second } = await replace(1, first.revision, fields('two'))
  expect(second.revision).toBeGreaterThan(first.revision)
  expect(await read(1)).toEqual({ ...first, revision: second.revision, value: fields('two') })
  const { document: last } = await remove(1, second.revision)
  expect(last).toEqual(second)
  expect(await faultCode(() => read(1))).toBe('PRODUCT_NOT_FOUND')
})

describe('a write that is rejected changes nothing', () => {
  test.each<[string, () => Promise<unknown>, string]>([
    ['fields that violate the schema', () => insert(2, fields('x'.repeat(21))), 'PRODUCT_INVALID'],
    ['an undeclared field', () => insert(2, new Map([['other', 'x']])), 'PRODUCT_INVALID'],
    ['an ID that exists', () => insert(1, fields('other')), 'PRODUCT_STATE_CONFLICT'],
    ['a violated unique index', () => insert(2, fields('one')), 'PRODUCT_STATE_CONFLICT'],
    ['another revision', () => replace(1, 7, fields('two')), 'PRODUCT_CAS_CONFLICT'],
    ['another revision of a deletion', () => remove(1, 7), 'PRODUCT_CAS_CONFLICT'],
    ['a document that is not there', () => replace(3, 1, fields('x')), 'PRODUCT_NOT_FOUND'],
    [
      'an unknown target',
      () => insert(2, fields('x'), { target: 'channel:none' }),
      'PRODUCT_NOT_FOUND',
    ],
    [
      'an ID of another table',
      () => change({ kind: 'delete', table: 'users', documentId: idOf(1), expectedRevision: 1 }),
      'PRODUCT_INVALID',
    ],
  ])('a write is rejected and changes nothing for %s', { tags: ['slow'] }, async (_, act, code) => {
    const { document } = await insert(1, fields('one'))
    expect(await faultCode(act)).toBe(code)
    expect((await query()).documents).toEqual([document])
    await gateway.harness.product.audit.whenIdle()
    const { audited } = gateway.harness
    const operations = audited.map(({ operation }) => operation)
    expect(operations.filter((operation) => operation.startsWith('product.document'))).toEqual([
      'product.document.insert',
    ])
  })
})

test('an exact repeat gets the first result, and any other request is a reuse', {
  tags: ['slow'],
}, async () => {
  const operationId = ids().make('opn')
  const { documentId, value } = { documentId: idOf(1), value: fields('one') }
  const changedAtMicros = gateway.harness.system.nowMicros()
  const input = {
    operationId,
    target: TARGET,
    changedAtMicros,
    requestId: REQUEST_ID,
    change: {
      ...({ kind: 'insert', table: 'notes', documentId, value } as const),
      createdAtMicros: changedAtMicros,
    },
  }
  const { product, actor } = gateway.harness
  const first = await changeDocument(product, actor, input)
  await replace(1, first.document.revision, fields('later'))
  expect(await changeDocument(product, actor, input)).toEqual({ ...first, replayed: true })
  const other = { ...input, change: { ...input.change, value: fields('other') } }
  expect(await faultCode(() => changeDocument(product, actor, other))).toBe(
    'PRODUCT_OPERATION_REUSED',
  )
})

describe('a query', () => {
  beforeEach(async () => {
    for (const n of [1, 2, 3, 4]) await insert(n, fields(`note ${n}`, BigInt(n % 2)))
  })
  const bodies = (page: Awaited<ReturnType<typeof query>>) =>
    page.documents.map(({ value }) => value.get('body'))

  test('a query reads by index and range, in either order', { tags: ['slow'] }, async () => {
    const odd = { index: 'byStars', equalFields: ['stars'], equal: [{ $i: '1' }] }
    expect(bodies(await query(odd))).toEqual(['note 1', 'note 3'])
    expect(bodies(await query({ ...odd, order: 'desc' }))).toEqual(['note 3', 'note 1'])
    const lower = { value: 'note 3', inclusive: true }
    expect(bodies(await query({ index: 'byBody', field: 'body', lower }))).toEqual([
      'note 3',
      'note 4',
    ])
  })

  test('a query continues after its cursor without a gap or a repeat', {
    tags: ['slow'],
  }, async () => {
    const first = await query({ limit: 3 })
    expect(bodies(first)).toEqual(['note 1', 'note 2', 'note 3'])
    const second = await query({ limit: 3, after: first.next! })
    expect([bodies(second), second.next]).toEqual([['note 4'], null])
  })

  test.each<[string, Parameters<typeof query>[0], string]>([
    ['of an unknown table', { table: 'users' }, 'PRODUCT_NOT_FOUND'],
    ['of an unknown index', { index: 'byNothing' }, 'PRODUCT_INVALID'],
    ['with a forged cursor', { after: 'x' }, 'PRODUCT_INVALID'],
    [
      'with fields in another order',
      { index: 'byBody', equalFields: ['stars'], equal: [{ $i: '1' }] },
      'PRODUCT_INVALID',
    ],
  ])('a query %s is rejected', { tags: ['slow'] }, async (_, more, code) => {
    expect(await faultCode(() => query(more))).toBe(code)
  })
})

test('a write is seen by the cache and leaves an audit record without values', {
  tags: ['slow'],
}, async () => {
  await insert(1, fields('secret text'))
  const { product, audited } = gateway.harness
  await product.audit.whenIdle()
  const record = audited.find(({ operation }) => operation === 'product.document.insert')!
  expect(record.subject).toBe(idOf(1))
  expect(JSON.stringify(record, (_, v) => (typeof v === 'bigint' ? String(v) : v))).not.toContain(
    'secret text',
  )
})

describe('after a crash', () => {
  test('after a crash only the record of the committed change is delivered', {
    tags: ['slow'],
  }, async () => {
    const { product, actor, audited } = gateway.harness
    const committed = ids().make('opn')
    const lost = ids().make('opn')
    for (const operationId of [committed, lost]) {
      const subject = idOf(1)
      const operation = 'product.document.insert' as const
      const held = product.heldAudits.hold(
        actor,
        { operation, subject, requestId: REQUEST_ID, operationId },
        {
          perform: () => Promise.reject(new Fault('PRODUCT_UNAVAILABLE')),
          isUndone: () => false,
        },
      )
      expect(await faultCode(() => held)).toBe('PRODUCT_UNAVAILABLE')
    }
    await product.audit.whenIdle()
    expect(audited.filter(({ subject }) => subject === idOf(1))).toEqual([])
    await product.heldAudits.resolve(async (operationId) => operationId === committed)
    await product.audit.whenIdle()
    const delivered = audited.filter(({ subject }) => subject === idOf(1))
    expect(delivered.map(({ operationId }) => operationId)).toEqual([committed])
  })
})

describe('an import', () => {
  const importNotes = (notes: readonly (readonly [number, ValueObject])[], more = {}) => {
    const { product, actor, system } = gateway.harness
    return importDocuments(product, actor, {
      operationId: ids().make('opn'),
      target: TARGET,
      table: 'notes',
      requestId: REQUEST_ID,
      documents: notes.map(([n, value]) => ({ documentId: idOf(n), value })),
      changedAtMicros: system.nowMicros(),
      ...more,
    })
  }

  test('an import inserts all documents in one commit, and equal ones only once', {
    tags: ['slow'],
  }, async () => {
    const first = await importNotes([
      [1, fields('one')],
      [2, fields('two', 2n)],
    ])
    expect(first).toMatchObject({ inserted: 2, unchanged: 0, replayed: false })
    const { documents } = await query()
    expect(documents.map(({ revision }) => revision)).toEqual([
      first.commitSequence,
      first.commitSequence,
    ])
    const second = await importNotes([
      [2, fields('two', 2n)],
      [3, fields('three')],
    ])
    expect(second).toMatchObject({ inserted: 1, unchanged: 1 })
    expect((await query()).documents.slice(0, 2)).toEqual(documents)
  })

  test('an import creates documents in the order of the request, not of their IDs', async () => {
    const first = gateway.harness.system.nowMicros()
    await importNotes([
      [3, fields('three')],
      [1, fields('one')],
      [2, fields('two')],
    ])
    const { documents } = await query()
    expect(documents.map(({ id }) => id)).toEqual([idOf(3), idOf(1), idOf(2)])
    const times = documents.map(({ createdAtMicros }) => createdAtMicros)
    expect(times).toEqual([first, first + 1n, first + 2n])
  })

  test('a rejected import names the document that is too large', { tags: ['slow'] }, async () => {
    const documents = ['short', 'x'.repeat(1024 ** 2)].map((text, i) => {
      return { documentId: idOf(i).replace('notes', 'pages'), value: new Map([['text', text]]) }
    })
    const failed = await importNotes([], { table: 'pages', documents }).catch(
      (error: unknown) => error,
    )
    const path = 'documents[1].value'
    expect(failed).toMatchObject({ code: 'PLATFORM_BODY_TOO_LARGE', violations: [{ path }] })
  })

  test('an import has an effect once for an Operation ID', { tags: ['slow'] }, async () => {
    const { system } = gateway.harness
    const same = { operationId: ids().make('opn'), changedAtMicros: system.nowMicros() }
    const first = await importNotes([[1, fields('one')]], same)
    await remove(1, first.commitSequence!)
    const repeat = await importNotes([[1, fields('one')]], same)
    expect(repeat).toEqual({ ...first, replayed: true })
    expect(await faultCode(() => read(1))).toBe('PRODUCT_NOT_FOUND')
    const other = importNotes([[1, fields('other')]], same)
    expect(await faultCode(() => other)).toBe('PRODUCT_OPERATION_REUSED')
  })

  test.each<[string, ValueObject, number, string, string]>([
    ['fields that violate the schema', fields('x'.repeat(21)), 2, 'PRODUCT_INVALID', 'value.body'],
    ['an ID with other fields', fields('x'), 1, 'PRODUCT_STATE_CONFLICT', 'documentId'],
    ['a violated unique index', fields('one'), 2, 'PRODUCT_STATE_CONFLICT', 'value'],
  ])(
    'an import with %s inserts nothing and names the document',
    { tags: ['slow'] },
    async (_, value, n, code, part) => {
      await insert(1, fields('one'))
      const failed = await importNotes([
        [3, fields('three')],
        [n, value],
      ]).catch((error: unknown) => error)
      expect(failed).toMatchObject({ code, violations: [{ path: `documents[1].${part}` }] })
      expect((await query()).documents).toHaveLength(1)
    },
  )

  test('an import leaves one audit record, which names the table and has no value', {
    tags: ['slow'],
  }, async () => {
    await importNotes([[1, fields('secret text')]])
    const { product, audited } = gateway.harness
    await product.audit.whenIdle()
    const records = audited.filter(({ operation }) => operation === 'product.document.import')
    expect(records.map(({ subject }) => subject)).toEqual(['notes'])
    const text = JSON.stringify(records, (_, v) => (typeof v === 'bigint' ? String(v) : v))
    expect(text).not.toContain('secret text')
  })
})

describe('a compaction', () => {
  /** Publishes a Release with a further field and inserts a document as it does. */
  async function widerRelease(): Promise<ReleaseId> {
    const { harness } = gateway
    harness.engine.retainOnly = (...given) => gateway.engine.retainOnly(...given)
    const [notes, ...others] = TABLES
    const nick = { type: 'optional', inner: { type: 'string' } } as const
    const wider = { ...notes!, fields: { ...notes!.fields, nick } }
    const { releaseId } = await publishRelease(harness, {
      functions: [functionManifest('notes.list')],
      tables: [wider, ...others],
      source: 'export const wider = true',
    })
    // The head of a Workspace is in use, so another one follows.
    const head = { functions: [functionManifest('notes.list')], tables: TABLES }
    await publishRelease(harness, { ...head, source: 'export const head = true' })
    const value: ValueObject = new Map([...fields('one'), ['nick', 'secret text']])
    await insert(1, value, { target: `release:${releaseId}` })
    return releaseId
  }

  const compact = (more = {}) => {
    const { product, actor, system } = gateway.harness
    return compactDocuments(product, actor, {
      operationId: ids().make('opn'),
      target: TARGET,
      table: 'notes',
      dryRun: false,
      after: undefined,
      requestId: REQUEST_ID,
      changedAtMicros: system.nowMicros(),
      ...more,
    })
  }

  async function retireRelease(releaseId: ReleaseId): Promise<void> {
    const { product, actor } = gateway.harness
    retire(product, actor, { releaseId, requestId: REQUEST_ID })
    await product.engineCollection.whenIdle()
  }

  test('a compaction removes fields once the Release that declares them is retired', {
    tags: ['slow'],
  }, async () => {
    const releaseId = await widerRelease()
    expect(await read(1)).toMatchObject({ value: fields('one'), hiddenFields: 1 })
    expect(await compact()).toMatchObject({ read: 1, changed: 0, next: null })
    await retireRelease(releaseId)
    expect(await compact({ dryRun: true })).toMatchObject({ changed: 1, removedFields: 1 })
    expect((await read(1)).hiddenFields).toBe(1)
    const done = await compact()
    expect(done).toMatchObject({ read: 1, changed: 1, removedFields: 1, next: null })
    expect(await read(1)).toMatchObject({ value: fields('one'), hiddenFields: 0 })
  })

  test('a compaction has an effect once for an Operation ID, and one audit record', {
    tags: ['slow'],
  }, async () => {
    await retireRelease(await widerRelease())
    const { product, audited, system } = gateway.harness
    const same = { operationId: ids().make('opn'), changedAtMicros: system.nowMicros() }
    const first = await compact(same)
    expect(await compact(same)).toEqual({ ...first, replayed: true })
    expect(await faultCode(() => compact({ ...same, after: 'x' }))).toBe('PRODUCT_OPERATION_REUSED')
    await compact({ dryRun: true })
    await product.audit.whenIdle()
    const records = audited.filter(({ operation }) => operation === 'product.document.compact')
    expect(records.map(({ subject }) => subject)).toEqual(['notes'])
  })

  test('a compaction of an unknown table is rejected', async () => {
    expect(await faultCode(() => compact({ table: 'unknown' }))).toBe('PRODUCT_NOT_FOUND')
  })
})
