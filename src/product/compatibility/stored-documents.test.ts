import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  openTestProduct,
  publishRelease,
  REQUEST_ID,
  type TestProduct,
} from '../../../testing/products.ts'
import { bindChannel } from '../../../testing/releases.ts'
import { Fault } from '../../errors/fault.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { TableManifest } from '../../value/manifest.ts'
import type { FieldsJson } from '../../value/validators.ts'
import type { Value } from '../../value/values.ts'
import { rollback } from '../channels/rollback.ts'
import { setServingPolicy } from '../serving/serving-policy.ts'
import { prepareRelease } from './stored-documents.ts'

let harness: TestProduct

beforeEach(async () => {
  harness = await openTestProduct()
})
afterEach(() => harness.close())

function tableOf(name: string, fields: FieldsJson, unique: readonly string[] = []): TableManifest {
  const indexes = unique.map((field) => ({ name: `by_${field}`, fields: [field], unique: true }))
  return { name, fields, indexes }
}

async function releaseOf(...tables: TableManifest[]): Promise<ReleaseId> {
  const { releaseId } = await publishRelease(harness, { source: String(Math.random()), tables })
  return releaseId
}

/** Stores documents in the table `notes`. */
function store(...documents: Record<string, Value>[]): void {
  const stored = documents.map((fields) => new Map(Object.entries(fields)))
  harness.engine.documents.set('notes', stored)
}

/** Clears the preparations of earlier validations. */
function startChecking(): string[][] {
  harness.engine.checkedTables.length = 0
  return harness.engine.checkedTables
}

function bind(channel: string, releaseId: ReleaseId) {
  return bindChannel(harness, releaseId, { channel })
}

const NARROW = tableOf('notes', { text: { type: 'string', maximumLength: 4 } })
const WIDE = tableOf('notes', { text: { type: 'string' } })
const UNIQUE = tableOf('notes', { text: { type: 'string' } }, ['text'])
const OTHER = tableOf('other', { text: { type: 'string' } })

describe('a binding', () => {
  test('a binding checks no document if its Release accepts those of all served ones', async () => {
    const releases = [await releaseOf(NARROW, OTHER), await releaseOf(WIDE, OTHER)]
    const checkedTables = startChecking()
    for (const releaseId of releases) await bind('production', releaseId)
    expect(checkedTables).toEqual([])
  })

  test.each([
    ['its validators reject some documents', NARROW, 'documents:notes'],
    ['it adds a unique index', UNIQUE, 'unique:notes.by_text'],
  ])('a binding checks only the table that may not fit if %s', async (_, next, check) => {
    const served = await releaseOf(WIDE, OTHER)
    await bind('production', served)
    const release = await releaseOf(next, OTHER)
    store({ text: 'longer' }, { text: 'longer' })
    const checkedTables = startChecking()
    const error = await bind('production', release).catch((thrown: Fault) => thrown)
    expect(error).toMatchObject({
      code: 'PRODUCT_INCOMPATIBLE',
      violations: [{ path: `checks.${check}`, rule: expect.stringContaining('notes_0') }],
    })
    expect(checkedTables).toEqual([['notes']])
    expect(harness.product.serving.find('production')).toMatchObject({ releaseId: served })
    store({ text: 'abcd' })
    expect(await bind('production', release)).toMatchObject({ releaseId: release })
  })

  test('a binding, like a policy, checks documents of the Releases of other Channels', async () => {
    await bind('staging', await releaseOf(WIDE))
    const narrow = await releaseOf(NARROW)
    store({ text: 'longer' })
    const checkedTables = startChecking()
    await expect(bind('production', narrow)).rejects.toMatchObject({ code: 'PRODUCT_INCOMPATIBLE' })
    const policy = setServingPolicy(harness.product, harness.actor, {
      operationId: harness.system.ids.make('opn'),
      expectedRevision: 0n,
      mode: 'atomic',
      releases: [{ releaseId: narrow, weight: 10_000 }],
      changedAtMicros: 0n,
      requestId: REQUEST_ID,
    })
    await expect(policy).rejects.toMatchObject({ code: 'PRODUCT_INCOMPATIBLE' })
    expect(checkedTables).toEqual([['notes'], ['notes']])
  })
})

test('a rollback succeeds after the later Release wrote a field that it added', async () => {
  const earlier = await releaseOf(WIDE)
  const nick = { type: 'optional', inner: { type: 'string' } } as const
  const later = await releaseOf(tableOf('notes', { text: { type: 'string' }, nick }))
  await bind('production', earlier)
  await bind('production', later)
  store({ text: 'a', nick: 'b' })
  const input = { channel: 'production', targetReleaseId: earlier, expectedReleaseId: later }
  const bound = await rollback(harness.product, harness.actor, { ...input, requestId: REQUEST_ID })
  expect(bound).toMatchObject({ releaseId: earlier })
})

test('a rollback may leave tables behind and is rejected for documents alone', async () => {
  const earlier = await releaseOf(NARROW)
  const later = await releaseOf(WIDE, OTHER)
  const checkedTables = startChecking()
  await bind('production', earlier)
  await bind('production', later)
  const back = () =>
    rollback(harness.product, harness.actor, {
      channel: 'production',
      targetReleaseId: earlier,
      expectedReleaseId: later,
      requestId: REQUEST_ID,
    })
  store({ text: 'longer' })
  await expect(back()).rejects.toMatchObject({ code: 'PRODUCT_INCOMPATIBLE' })
  store({ text: 'abcd' })
  expect(await back()).toMatchObject({ releaseId: earlier })
  // A table that the served Release lacks may hold documents of earlier Releases.
  expect(checkedTables).toEqual([['other'], ['notes'], ['notes']])
})

describe('a preparation', () => {
  async function checksOf(table: TableManifest, only?: ReadonlySet<string>) {
    const release = await harness.product.releases.load(await releaseOf(table))
    return prepareRelease(harness.engine, release, only)
  }

  test('a preparation checks every table unless some are named', async () => {
    const namesOf = async (only?: ReadonlySet<string>) =>
      (await checksOf(WIDE, only)).map(({ name }) => name)
    expect(await namesOf()).toEqual(['indexes', 'documents:notes'])
    expect(await namesOf(new Set(['notes']))).toEqual(['indexes', 'documents:notes'])
    expect(await namesOf(new Set(['other']))).toEqual(['indexes'])
  })

  test('a preparation counts defects and lists five samples without stored values', async () => {
    const release = await harness.product.releases.load(await releaseOf(NARROW))
    store(...Array.from({ length: 7 }, () => ({ text: 'private' })), { text: 'abcd' })
    const [, check] = await prepareRelease(harness.engine, release)
    const samples = [0, 1, 2, 3, 4].map((i) => `notes_${i} (notes.text: at most 4 characters)`)
    const detail = `7 stored documents do not fit the validators: ${samples.join('; ')}`
    expect(check).toEqual({ name: 'documents:notes', outcome: 'failed', detail })
  })

  test('a preparation finds documents that share a complete unique key', async () => {
    const fields = { text: { type: 'string' }, rank: { type: 'optional', inner: { type: 'any' } } }
    const table = tableOf('notes', fields as FieldsJson, ['rank', 'text'])
    const release = await harness.product.releases.load(await releaseOf(table))
    store({ text: 'a' }, { text: 'b', rank: 1n }, { text: 'a', rank: 2n }, { text: 'c' })
    expect(await prepareRelease(harness.engine, release)).toEqual([
      { name: 'indexes', outcome: 'passed', detail: '' },
      { name: 'documents:notes', outcome: 'passed', detail: '' },
      { name: 'unique:notes.by_rank', outcome: 'passed', detail: '' },
      {
        name: 'unique:notes.by_text',
        outcome: 'failed',
        detail: '1 pairs of stored documents share the key: notes_0 and notes_2',
      },
    ])
  })

  test('a preparation checks what the Release sees of a document', async () => {
    const item = { type: 'object', fields: { a: { type: 'string' } } } as const
    const members = [{ type: 'literal', value: { string: 'on' } }] as const
    const fields: FieldsJson = {
      text: { type: 'optional', inner: { type: 'string' }, default: 'none' },
      state: { type: 'open', inner: { type: 'union', members } },
      part: item,
      parts: { type: 'array', items: item },
    }
    const table = tableOf('notes', fields, ['text'])
    const release = await harness.product.releases.load(await releaseOf(table))
    const outcomeOf = async () => {
      const [, ...checks] = await prepareRelease(harness.engine, release)
      return checks.map(({ outcome, detail }) => (outcome === 'passed' ? outcome : detail))
    }
    const [known, hidden] = [
      new Map([['a', 'x']]),
      new Map([
        ['a', 'x'],
        ['b', 'y'],
      ]),
    ]
    store({ state: 'off', part: hidden, parts: [known], other: 1n })
    expect(await outcomeOf()).toEqual(['passed', 'passed'])
    const [one, two] = [{ state: 'on', part: known, parts: [] }, { text: 'none' }]
    store(one, { ...one, ...two })
    expect(await outcomeOf()).toEqual(['passed', expect.stringContaining('notes_0 and notes_1')])
    store({ state: 'on', part: known, parts: [hidden] })
    expect(await outcomeOf()).toEqual([
      expect.stringContaining('notes.parts[0].b: no undeclared field'),
      'passed',
    ])
  })

  test('a preparation fails for a key that is too long, and starts no runner', async () => {
    const release = await harness.product.releases.load(await releaseOf(UNIQUE))
    let starts = 0
    harness.engine.warm = async () => {
      starts += 1
    }
    harness.engine.prepare = async () => {
      throw new Fault('LIMIT_EXCEEDED', { detail: 'the key is too long' })
    }
    expect(await prepareRelease(harness.engine, release)).toEqual([
      { name: 'indexes', outcome: 'failed', detail: 'the key is too long' },
    ])
    expect(starts).toBe(0)
  })
})
