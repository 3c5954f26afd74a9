/** Tests of Releases with different schemas over the same documents, for each store. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { DocumentStore } from '../../src/documents/store.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { MemoryBudget } from '../../src/system/memory/memory-budget.ts'
import type { IndexManifest } from '../../src/value/manifest.ts'
import { encodeStored } from '../../src/value/stored.ts'
import { decodeTagged } from '../../src/value/tagged.ts'
import type { FieldsJson, OptionalJson, ValidatorJson } from '../../src/value/validators.ts'
import { Evolution, functionOf, withoutSystem } from './evolutions.ts'
import type { Loose } from './in-process-pool.ts'

export interface EvolutionHarness {
  /** Opens the same documents each time. */
  open(): Promise<DocumentStore>
  dispose(): Promise<void>
}

const string: ValidatorJson = { type: 'string' }
const optional = (inner: ValidatorJson): OptionalJson => ({ type: 'optional', inner })
const object = (fields: FieldsJson): ValidatorJson => ({ type: 'object', fields })
const literal = (text: string): ValidatorJson => ({ type: 'literal', value: { string: text } })
const open = (...texts: string[]): ValidatorJson => ({
  type: 'open',
  inner: { type: 'union', members: texts.map(literal) },
})
const array = (items: ValidatorJson): ValidatorJson => ({ type: 'array', items })
const withDefault = (value: string): OptionalJson => ({ ...optional(string), default: value })
const index = (name: string, fields: readonly string[], unique = false): IndexManifest => ({
  name,
  fields,
  unique,
})

export function schemaEvolutionSuite(name: string, make: () => Promise<EvolutionHarness>): void {
  describe(`Releases with different schemas: ${name}`, () => {
    let harness: EvolutionHarness
    let evolution: Evolution
    const release: Evolution['release'] = (...input) => evolution.release(...input)
    beforeEach(async () => {
      harness = await make()
      evolution = new Evolution(await harness.open())
    })
    afterEach(async () => {
      await evolution.engine.close()
      await harness.dispose()
    })
    const context: Context = {
      release,
      stored: (id) => evolution.stored(id),
      get engine() {
        return evolution.engine
      },
      get store() {
        return evolution.store
      },
      async reopen(change = async () => undefined) {
        await evolution.engine.close()
        const store = await harness.open()
        await change(store)
        evolution = new Evolution(store)
      },
    }
    hiddenFieldTests(context)
    defaultTests(context)
    openUnionTests(context)
    projectionTests(context)
    administrationTests(context)
  })
}

interface Context {
  readonly release: Evolution['release']
  readonly stored: Evolution['stored']
  readonly engine: Engine
  readonly store: DocumentStore
  reopen(change?: (store: DocumentStore) => Promise<void>): Promise<void>
}

const OLD: FieldsJson = {
  name: string,
  address: { type: 'nullable', inner: object({ city: string }) },
}
const NEW: FieldsJson = {
  name: string,
  nick: optional(string),
  address: { type: 'nullable', inner: object({ city: string, zip: optional(string) }) },
}
const FULL = { name: 'Ann', nick: 'a', address: { city: 'Bern', zip: '3000' } }

function hiddenFieldTests({ release, stored }: Context): void {
  test('an older Release does not see the fields of a newer one', async () => {
    const [older, newer] = [release(OLD), release(NEW)]
    const id = await newer.insert(FULL)
    const visible = { name: 'Ann', address: { city: 'Bern' } }
    expect(await older.get(id)).toEqual(visible)
    expect(await older.list()).toEqual([visible])
    const own = await older.mutate(['patch', id, { name: 'Bea' }, []], ['get', id])
    expect(withoutSystem(own)).toEqual({ ...visible, name: 'Bea' })
    const range = { table: 'users', index: null, equal: [], order: 'asc', limit: 9, next: 'none' }
    const { documents } = await older.mutate(
      ['patch', id, { name: 'Cat' }, []],
      ['range', range as never],
    )
    expect(documents.map(withoutSystem)).toEqual([{ ...visible, name: 'Cat' }])
    expect(await newer.get(id)).toEqual({ ...FULL, name: 'Cat' })
  })

  test('a patch keeps hidden fields of the document and of an object that it writes', async () => {
    const [older, newer] = [release(OLD), release(NEW)]
    const id = await newer.insert(FULL)
    await older.patch(id, { name: 'Bea' })
    expect(await stored(id)).toEqual({ ...FULL, name: 'Bea' })
    await older.patch(id, { address: { city: 'Chur' } })
    expect(await stored(id)).toEqual({
      ...FULL,
      name: 'Bea',
      address: { city: 'Chur', zip: '3000' },
    })
    await older.patch(id, {}, ['nick'])
    expect(await stored(id)).toMatchObject({ nick: 'a' })
    await older.patch(id, { address: null })
    expect(await stored(id)).toEqual({ name: 'Bea', nick: 'a', address: null })
  })

  test('a replacement keeps hidden fields of the document and of its objects', async () => {
    const [older, newer] = [release(OLD), release(NEW)]
    const id = await newer.insert(FULL)
    await older.replace(id, { name: 'Bea', address: { city: 'Chur' } })
    expect(await stored(id)).toEqual({
      ...FULL,
      name: 'Bea',
      address: { city: 'Chur', zip: '3000' },
    })
    const replaced = { name: 'Cat', address: { city: 'Biel' } }
    await older.mutate(['replace', id, replaced], ['replace', id, replaced])
    expect(await stored(id)).toEqual({
      ...FULL,
      name: 'Cat',
      address: { city: 'Biel', zip: '3000' },
    })
  })

  test('an undeclared field is an error in every write', async () => {
    const [older, newer] = [release(OLD), release(NEW)]
    const id = await newer.insert(FULL)
    const writes = [
      () => older.insert(FULL),
      () => older.replace(id, FULL),
      () => older.patch(id, { nick: 'b' }),
      () => older.patch(id, { address: { city: 'Bern', zip: '1' } }),
    ]
    for (const write of writes) {
      await expect(write()).rejects.toMatchObject({
        code: 'FUNCTION_FAILED',
        detail: expect.stringContaining('must be no undeclared field'),
      })
    }
    expect(await stored(id)).toEqual(FULL)
  })

  test('indexes over hidden fields follow the writes of an older Release', async () => {
    const older = release({ name: string, rank: optional(string) }, index('byName', ['name']))
    const newer = release(
      { name: string, rank: optional(string), nick: optional(string) },
      index('byNick', ['nick', 'name']),
    )
    const id = await newer.insert({ name: 'Ann', nick: 'a' })
    await newer.insert({ name: 'Bea', nick: 'b' })
    await older.patch(id, { name: 'Cat' })
    const found = await newer.list({ index: 'byNick', equal: ['a'] })
    expect(found).toEqual([{ name: 'Cat', nick: 'a' }])
    expect(await older.list({ index: 'byName', equal: ['Cat'] })).toEqual([{ name: 'Cat' }])
  })

  test('a document that is too large with its hidden fields says so', async () => {
    const [older, newer] = [release(OLD), release(NEW)]
    const half = 'x'.repeat(600_000)
    const id = await newer.insert({ ...FULL, nick: half })
    await expect(older.patch(id, { name: half })).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
      detail: 'document bytes: at most 1048576, with the fields that this Release does not declare',
    })
    await expect(older.patch(id, { name: half + half })).rejects.toMatchObject({
      detail: 'document bytes: at most 1048576',
    })
  })

  test('hidden text counts as read', async () => {
    const [older, newer] = [release(OLD), release(NEW)]
    const id = await newer.insert({ ...FULL, nick: 'x'.repeat(1_000_000) })
    const usage = await older.mutate(['get', id], ['usage'])
    expect(usage.bytesRead.used).toBeGreaterThan(1_000_000)
    expect(usage.documentsRead.used).toBe(1)
  })
}

function defaultTests({ release, stored }: Context): void {
  test('an absent field reads as its default, and counts as read', async () => {
    const text = 'x'.repeat(10_000)
    const [older, newer] = [
      release({ name: string }),
      release({ name: string, nick: withDefault(text) }),
    ]
    const id = await older.insert({ name: 'Ann' })
    expect(await newer.get(id)).toEqual({ name: 'Ann', nick: text })
    expect(await newer.list()).toEqual([{ name: 'Ann', nick: text }])
    expect(await stored(id)).toEqual({ name: 'Ann' })
    const usage = await newer.mutate(['get', id], ['usage'])
    expect(usage.bytesRead.used).toBeGreaterThan(10_000)
  })

  test('a write without a field stores its default, which an older Release reads', async () => {
    const newer = release({ name: string, nick: withDefault('none') })
    const older = release({ name: string, nick: string })
    const id = await newer.insert({ name: 'Ann' })
    expect(await stored(id)).toEqual({ name: 'Ann', nick: 'none' })
    expect(await older.get(id)).toEqual({ name: 'Ann', nick: 'none' })
    await newer.patch(id, { nick: 'a' })
    await newer.patch(id, {}, ['nick'])
    expect(await stored(id)).toEqual({ name: 'Ann', nick: 'none' })
    await newer.replace(id, { name: 'Bea' })
    expect(await stored(id)).toEqual({ name: 'Bea', nick: 'none' })
  })

  test('an index finds documents without a field at its default', async () => {
    const older = release({ name: string })
    const fields = { name: string, team: withDefault('m') }
    const newer = release(fields, index('byTeam', ['team', 'name']))
    await older.insert({ name: 'Ann' })
    const names = async (request: Loose) =>
      (await newer.list({ index: 'byTeam', ...request })).map(({ name }) => name)
    expect(await names({ equal: ['m'] })).toEqual(['Ann'])
    await older.insert({ name: 'Bea' })
    await newer.insert({ name: 'Cat', team: 'a' })
    await newer.insert({ name: 'Dan', team: 'z' })
    expect(await names({})).toEqual(['Cat', 'Ann', 'Bea', 'Dan'])
    const after = { field: 'team', lower: { value: 'm', inclusive: false } }
    expect(await names(after)).toEqual(['Dan'])
    await expect(names({ equal: [{ $u: '' }] })).rejects.toMatchObject({
      detail: expect.stringContaining('"team" is undefined, and has a default'),
    })
  })

  test('an older Release moves a document in an index over its default', async () => {
    const older = release({ name: string, team: optional(string) })
    const newer = release({ name: string, team: withDefault('m') }, index('byTeam', ['team']))
    const id = await older.insert({ name: 'Ann' })
    const found = async (team: string) =>
      (await newer.list({ index: 'byTeam', equal: [team] })).length
    expect([await found('m'), await found('z')]).toEqual([1, 0])
    await older.patch(id, { team: 'z' })
    expect([await found('m'), await found('z')]).toEqual([0, 1])
    await older.patch(id, {}, ['team'])
    expect([await found('m'), await found('z')]).toEqual([1, 0])
    await older.patch(id, { team: 'm' })
    expect([await found('m'), await found('z')]).toEqual([1, 0])
  })

  test('a unique index takes an absent field as its default', async () => {
    const older = release({ name: string })
    const newer = release({ name: string, team: withDefault('m') }, index('byTeam', ['team'], true))
    await older.insert({ name: 'Ann' })
    await expect(newer.insert({ name: 'Bea', team: 'm' })).rejects.toMatchObject({
      code: 'UNIQUE_VIOLATION',
    })
    await newer.insert({ name: 'Bea', team: 'z' })
  })
}

function openUnionTests({ release, stored }: Context): void {
  const OLD_STATES: FieldsJson = { name: string, state: open('on'), past: array(open('on')) }
  const NEW_STATES: FieldsJson = {
    name: string,
    state: open('on', 'off'),
    past: array(open('on', 'off')),
  }
  const UNKNOWN = { unknown: true }
  const sides = () => [release(OLD_STATES), release(NEW_STATES)] as const

  test('an unknown member reads as such, and is kept by what leaves it so', async () => {
    const [older, newer] = sides()
    const document = { name: 'Ann', state: 'off', past: ['on', 'off'] }
    const id = await newer.insert(document)
    expect(await older.get(id)).toEqual({ name: 'Ann', state: UNKNOWN, past: ['on', UNKNOWN] })
    await older.patch(id, { name: 'Bea' })
    expect(await stored(id)).toEqual({ ...document, name: 'Bea' })
    await older.replace(id, { name: 'Cat', state: UNKNOWN, past: ['on', UNKNOWN] })
    expect(await stored(id)).toEqual({ ...document, name: 'Cat' })
    await older.replace(id, { name: 'Cat', state: UNKNOWN, past: ['on'] })
    expect(await stored(id)).toEqual({ name: 'Cat', state: 'off', past: ['on'] })
    await older.patch(id, { state: 'on' })
    expect(await stored(id)).toMatchObject({ state: 'on' })
  })

  test.each([
    ['in a new document', { name: '', state: UNKNOWN, past: [] }, null],
    ['inside another array', { name: '', state: 'on', past: ['on', UNKNOWN] }, 'off'],
    ['in place of a known member', { name: '', state: UNKNOWN, past: [] }, 'on'],
    ['beside other fields', { name: '', state: { ...UNKNOWN, a: 1 }, past: [] }, 'off'],
  ])('an unknown member is rejected %s', async (_, fields, before) => {
    const [older, newer] = sides()
    const document = { name: 'Ann', state: before, past: ['off'] }
    const id = before === null ? null : await newer.insert(document)
    const writing = id === null ? older.insert(fields) : older.replace(id, fields)
    await expect(writing).rejects.toMatchObject({ code: 'FUNCTION_FAILED' })
  })

  test('a unique index accepts a write that keeps an unknown member', async () => {
    const byState = index('byState', ['state'], true)
    const [older, newer] = [release(OLD_STATES, byState), release(NEW_STATES, byState)]
    const id = await newer.insert({ name: 'Ann', state: 'off', past: [] })
    await older.patch(id, { name: 'Bea' })
    expect(await stored(id)).toMatchObject({ name: 'Bea', state: 'off' })
    await expect(older.list({ index: 'byState', equal: [UNKNOWN] })).rejects.toMatchObject({
      detail: expect.stringContaining('must be a member of the union'),
    })
  })
}

function projectionTests(context: Context): void {
  const { release, stored } = context

  test('a Release has no projection while nothing is hidden from it', async () => {
    const older = await release(OLD).table()
    expect(older.projection).toBeNull()
    const same = await release(OLD, index('byName', ['name'])).table()
    const narrower = await release({ name: string }).table()
    expect([older.projection, same.projection]).toEqual([null, null])
    expect(narrower.projection).not.toBeNull()
  })

  test('a Release that runs hides the fields of one that is prepared meanwhile', async () => {
    const [older, newer] = [release(OLD), release(NEW)]
    const first = await older.insert({ name: 'Ann', address: null })
    const table = await older.table()
    expect(table.projection).toBeNull()
    const id = await newer.insert(FULL)
    expect(table.projection).not.toBeNull()
    expect(await older.list()).toEqual([
      { name: 'Ann', address: null },
      { name: 'Ann', address: { city: 'Bern' } },
    ])
    await older.patch(id, { name: 'Bea' })
    expect(await stored(id)).toEqual({ ...FULL, name: 'Bea' })
    expect(await older.get(first)).toEqual({ name: 'Ann', address: null })
  })

  test('a document is the same object again, and the stored one if nothing is hidden', async () => {
    const [older, newer] = [release(OLD), release(NEW)]
    const ids = [await newer.insert(FULL), await newer.insert({ name: 'Ann', address: null })]
    const { projection } = await older.table()
    const { store } = context
    const [full, plain] = await Promise.all(ids.map((id) => store.read(id, store.latestSequence)))
    expect(projection!.read(full!)).toBe(projection!.read(full!))
    expect(projection!.read(full!).text).toBe('{"address":{"city":"Bern"},"name":"Ann"}')
    expect(projection!.read(plain!)).toBe(plain)
  })

  test('fields that were stored before a restart stay hidden after it', async () => {
    const id = await release(NEW).insert(FULL)
    await context.reopen()
    const older = release(OLD)
    expect(await older.get(id)).toEqual({ name: 'Ann', address: { city: 'Bern' } })
    await older.patch(id, { name: 'Bea' })
    expect(await stored(id)).toEqual({ ...FULL, name: 'Bea' })
  })

  test('every Release has a projection over documents of an earlier version', async () => {
    const newer = release(NEW)
    const id = await newer.insert(FULL)
    expect((await newer.table()).projection).toBeNull()
    await context.reopen((store) => store.setFieldShapes(new Map([['users', 'any']])))
    const again = release(NEW)
    expect((await again.table()).projection).not.toBeNull()
    expect(await again.get(id)).toEqual(FULL)
    expect(await release(OLD).get(id)).toEqual({ name: 'Ann', address: { city: 'Bern' } })
  })

  test('a live Query of an older Release follows the writes of a newer one', async () => {
    const [older, newer] = [release(OLD), release(NEW)]
    await older.insert({ name: 'Ann', address: null })
    const range = { table: 'users', index: null, equal: [], order: 'asc', limit: 9, next: 'none' }
    const operations = JSON.stringify([['range', range]])
    const seen: Loose[][] = []
    let changed = Promise.withResolvers<void>()
    const request = {
      release: older.release,
      definition: functionOf('query'),
      arguments: new Map([['operations', operations]]),
      principal: null,
      context: { requestId: 'req_test', invocationId: 'ivc_test' },
      memory: new MemoryBudget(1024 ** 3).shareOf({ credential: null, peer: 'test' }),
    }
    const subscription = context.engine.watch(request, {
      state({ resultText }) {
        const text = encodeStored(decodeTagged(JSON.parse(resultText)))
        seen.push(JSON.parse(text).documents.map(withoutSystem))
        changed.resolve()
      },
      failed: (fault) => changed.reject(fault),
    })
    await changed.promise
    changed = Promise.withResolvers()
    await newer.insert(FULL)
    await changed.promise
    subscription.close()
    expect(seen).toEqual([
      [{ name: 'Ann', address: null }],
      [
        { name: 'Ann', address: null },
        { name: 'Ann', address: { city: 'Bern' } },
      ],
    ])
  })
}

function administrationTests({ release, stored }: Context): void {
  const id = `users_${'0'.repeat(26)}`

  test('an operator reads and changes documents by the schema of the target', async () => {
    const [older, newer] = [release(OLD), release(NEW)]
    const address = new Map([
      ['city', 'Bern'],
      ['zip', '3000'],
    ])
    const inserted = await newer.change(id, 'insert', { name: 'Ann', nick: 'a', address })
    expect(inserted.document.hiddenFields).toBe(0)
    const read = await older.read(id)
    expect(encodeStored(read!.value)).toBe('{"address":{"city":"Bern"},"name":"Ann"}')
    expect(read!.hiddenFields).toBe(2)
    const replaced = await older.change(
      id,
      'replace',
      { name: 'Bea', address: null },
      read!.revision,
    )
    expect(replaced.document).toMatchObject({ hiddenFields: 1 })
    expect(encodeStored(replaced.document.value)).toBe('{"address":null,"name":"Bea"}')
    expect(await stored(id)).toEqual({ name: 'Bea', nick: 'a', address: null })
  })

  test('an operator gets the defaults that a change stored', async () => {
    const newer = release({ name: string, nick: withDefault('none') })
    const { document } = await newer.change(id, 'insert', { name: 'Ann' })
    expect(encodeStored(document.value)).toBe('{"name":"Ann","nick":"none"}')
    expect(await stored(id)).toEqual({ name: 'Ann', nick: 'none' })
  })

  test('an operator who writes an unknown member where none is stored is told where', async () => {
    const side = release({ name: string, state: open('on') })
    const value = { name: 'Ann', state: new Map([['unknown', true]]) }
    const violations = [{ path: 'value.state', rule: expect.stringContaining('{ unknown: true }') }]
    const expected = { code: 'PRODUCT_INVALID', violations }
    await expect(side.change(id, 'insert', value)).rejects.toMatchObject(expected)
    const { document } = await side.change(id, 'insert', { name: 'Ann', state: 'on' })
    const replacing = side.change(id, 'replace', value, document.revision)
    await expect(replacing).rejects.toMatchObject(expected)
  })
}
