import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { TestConfiguration } from '../../testing/configurations.ts'
import { testCursors } from '../../testing/cursors.ts'
import {
  DeclaredFailure,
  inProcessPool,
  type TestHandler,
} from '../../testing/engine/in-process-pool.ts'
import { noStorage } from '../../testing/files/function-storage.ts'
import { openSqliteDocuments } from '../documents/sqlite/stores.ts'
import { realSystem } from '../system/system.ts'
import { memoryLog } from '../telemetry/log.ts'
import { Metrics } from '../telemetry/metrics/metrics.ts'
import type { FunctionManifest, TableManifest } from '../value/manifest.ts'
import { decodeTagged } from '../value/tagged.ts'
import type { Value, ValueObject } from '../value/values.ts'
import { createEngine } from './create-engine.ts'
import type { Engine } from './engine.ts'
import type { Release } from './releases/executable-release.ts'

const ACCOUNTS: TableManifest = {
  name: 'accounts',
  fields: {
    name: { type: 'string' },
    balance: { type: 'int64' },
    note: { type: 'optional', inner: { type: 'string' } },
  },
  indexes: [
    { name: 'byBalance', fields: ['balance'], unique: false },
    { name: 'byName', fields: ['name'], unique: true },
  ],
}

const system = realSystem()
const context = { requestId: 'req_test', invocationId: 'ivc_test' }
const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

interface Bench {
  readonly engine: Engine
  readonly pool: ReturnType<typeof inProcessPool>
  query(
    name: string,
    input?: Record<string, Value>,
  ): Promise<{ value: unknown; sequence: number | null }>
  mutation(
    name: string,
    input?: Record<string, Value>,
    operationId?: string,
  ): ReturnType<Engine['mutation']>
}

async function engineWith(
  handlers: Readonly<Record<string, TestHandler>>,
  kinds: Readonly<Record<string, 'query' | 'mutation'>>,
  directory = mkdtempSync(join(tmpdir(), 'svc-engine-')),
): Promise<Bench> {
  const store = await openSqliteDocuments(join(directory, 'documents.db'))
  const pool = inProcessPool(handlers)
  Object.assign(pool, { close: async () => undefined, warm: async () => undefined })
  const engine = createEngine({
    store,
    pool,
    system,
    log: memoryLog().log,
    metrics: new Metrics(system),
    storage: noStorage(),
    issueGuest: ({ entropy }) => `guest ${Buffer.from(entropy).toString('hex')}`,
    configuration: new TestConfiguration(),
    cursors: testCursors(),
  })
  open.push(async () => {
    await engine.close()
    rmSync(directory, { recursive: true, force: true })
  })
  const release = releaseOf(kinds)
  const request = (name: string, input: Record<string, Value>) => ({
    release,
    definition: release.functions.get(name)!,
    arguments: new Map(Object.entries(input)) as ValueObject,
    principal: null,
    context,
  })
  return {
    engine,
    pool,
    query: async (name, input = {}) => {
      const outcome = await engine.query(request(name, input))
      const value = decodeTagged(JSON.parse(outcome.resultText))
      return { value, sequence: outcome.snapshotSequence }
    },
    mutation: (name, input = {}, operationId = system.ids.make('opn')) =>
      engine.mutation({
        ...request(name, input),
        operationId,
        target: 'channel:test',
        caller: 'app/crd',
      }),
  }
}

function releaseOf(kinds: Readonly<Record<string, 'query' | 'mutation'>>): Release {
  const functions = Object.entries(kinds).map(([name, kind]): [string, FunctionManifest] => [
    name,
    {
      name,
      kind,
      visibility: 'public',
      clients: ['public'],
      auth: 'none',
      arguments: { input: { type: 'optional', inner: { type: 'any' } } },
      returns: { type: 'any' },
      errors: { NO_FUNDS: 'conflict' },
    },
  ])
  return {
    releaseId: system.ids.make('rel'),
    source: '',
    sourceMap: null,
    functions: new Map(functions),
    tables: new Map([['accounts', ACCOUNTS]]),
  }
}

const balance = (amount: number) => ({ $i: String(amount) })

const bank: Record<string, TestHandler> = {
  open: (db, { input }) => db.insert('accounts', { name: input, balance: balance(1000) }),
  total: async (db) => {
    let sum = 0n
    const { documents } = await db.range({ table: 'accounts', limit: 1000 })
    for (const account of documents) sum += BigInt(account.balance.$i)
    return { $i: String(sum) }
  },
  names: async (db) => {
    const { documents } = await db.range({ table: 'accounts', index: 'byName', limit: 1000 })
    return documents.map((account: { name: string }) => account.name)
  },
  transfer: async (db, { input }) => {
    const [from, to, amount] = input
    const source = await db.get(from)
    const target = await db.get(to)
    if (Number(source.balance.$i) < amount) throw new DeclaredFailure('NO_FUNDS')
    await db.patch(from, { balance: balance(Number(source.balance.$i) - amount) })
    await db.patch(to, { balance: balance(Number(target.balance.$i) + amount) })
    return null
  },
  rename: (db, { input }) => db.patch(input[0], { name: input[1] }),
  remove: (db, { input }) => db.delete(input),
}
const bankKinds = {
  open: 'mutation',
  total: 'query',
  names: 'query',
  transfer: 'mutation',
  rename: 'mutation',
  remove: 'mutation',
} as const

async function accounts(bench: Bench, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let i = 0; i < count; i++) {
    const { resultText } = await bench.mutation('open', { input: `account ${i}` })
    ids.push(decodeTagged(JSON.parse(resultText)) as string)
  }
  return ids
}

describe('the engine', () => {
  const TRANSFERS = process.env.SVC_TEST_LONG === '1' ? 10_000 : 2_000
  test(`16 writers that transfer ${TRANSFERS} times keep the sum of 50 documents`, async () => {
    const bench = await engineWith(bank, bankKinds)
    const ids = await accounts(bench, 50)
    const seed = 42
    let state = seed
    const random = (below: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      return (state >>> 8) % below
    }
    let left = TRANSFERS
    const attempts = { most: 0, reruns: 0 }
    let sums = 0
    const writer = async () => {
      while (left-- > 0) {
        const from = random(50)
        const to = (from + 1 + random(49)) % 50
        try {
          const outcome = await bench.mutation('transfer', {
            input: [ids[from]!, ids[to]!, random(200)],
          })
          attempts.most = Math.max(attempts.most, outcome.attempts)
          attempts.reruns += outcome.attempts - 1
        } catch (error) {
          expect(error).toMatchObject({ code: 'APP_NO_FUNDS', status: 409 })
        }
        if (left % 100 === 0) {
          expect((await bench.query('total')).value, `seed ${seed}`).toBe(50_000n)
          sums += 1
        }
      }
    }
    await Promise.all(Array.from({ length: 16 }, writer))
    expect((await bench.query('total')).value).toBe(50_000n)
    expect(sums).toBeGreaterThan(10)
    // Without reruns the test would not cover its goal.
    expect(attempts.reruns).toBeGreaterThan(0)
    expect(attempts.most).toBeLessThanOrEqual(8)
  })

  test('a repeat returns the original result, and a changed request is rejected', async () => {
    const bench = await engineWith(bank, bankKinds)
    const operationId = system.ids.make('opn')
    const first = await bench.mutation('open', { input: 'a' }, operationId)
    const repeat = await bench.mutation('open', { input: 'a' }, operationId)
    expect(repeat).toEqual({ ...first, replayed: true })
    expect(first.commitSequence).toBe(1)
    await expect(bench.mutation('open', { input: 'b' }, operationId)).rejects.toMatchObject({
      code: 'OPERATION_REUSED',
    })
    expect((await bench.query('names')).value).toEqual(['a'])
  })

  test('concurrent Mutations with one operation ID run once', async () => {
    const bench = await engineWith(bank, bankKinds)
    const operationId = system.ids.make('opn')
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, () => bench.mutation('open', { input: 'a' }, operationId)),
    )
    expect(new Set(outcomes.map(({ resultText }) => resultText)).size).toBe(1)
    expect(outcomes.filter(({ replayed }) => !replayed)).toHaveLength(1)
    expect(bench.pool.calls).toBe(1)
  })

  test('a repeat after a restart returns the original result', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'svc-engine-'))
    const before = await engineWith(bank, bankKinds, directory)
    const operationId = system.ids.make('opn')
    const first = await before.mutation('open', { input: 'a' }, operationId)
    await before.engine.close()
    open.pop()
    const after = await engineWith(bank, bankKinds, directory)
    // The fingerprint does not contain the Release: the same target may serve a newer one.
    const repeat = await after.mutation('open', { input: 'a' }, operationId)
    expect(repeat).toEqual({ ...first, replayed: true })
  })

  test('a Query returns the cached result until a commit overlaps its read set', async () => {
    const bench = await engineWith(bank, bankKinds)
    const [first] = await accounts(bench, 2)
    // A result is cached from the second request on.
    await bench.query('total')
    expect((await bench.query('total')).value).toBe(2000n)
    const calls = bench.pool.calls
    expect((await bench.query('total')).sequence).toBe(2)
    expect(bench.pool.calls).toBe(calls)
    await bench.mutation('rename', { input: [first!, 'renamed'] })
    expect(await bench.query('names')).toEqual({ value: ['account 1', 'renamed'], sequence: 3 })
    await bench.mutation('remove', { input: first! })
    expect(await bench.query('total')).toEqual({ value: 1000n, sequence: 4 })
    expect(await bench.query('names')).toEqual({ value: ['account 1'], sequence: 4 })
  })

  test('a cached result has the newest sequence: sequences never decrease', async () => {
    const bench = await engineWith(
      { ...bank, constant: () => 1, one: async (db, { input }) => (await db.get(input)) !== null },
      { ...bankKinds, constant: 'query', one: 'query' },
    )
    const [first] = await accounts(bench, 1)
    expect((await bench.query('one', { input: first! })).sequence).toBe(1)
    await accounts(bench, 1).catch(() => undefined)
    await bench.mutation('open', { input: 'other' })
    expect((await bench.query('one', { input: first! })).sequence).toBe(2)
    expect((await bench.query('constant')).sequence).toBeNull()
  })

  test('a unique index rejects the second document, also of a concurrent Mutation', async () => {
    const bench = await engineWith(bank, bankKinds)
    const outcomes = await Promise.allSettled(
      Array.from({ length: 8 }, () => bench.mutation('open', { input: 'same' })),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected')
        expect(outcome.reason).toMatchObject({ code: 'UNIQUE_VIOLATION' })
    }
    expect((await bench.query('names')).value).toEqual(['same'])
  })

  test('a Mutation reads its own writes and leaves nothing behind when it fails', async () => {
    const bench = await engineWith(
      {
        ...bank,
        own: async (db) => {
          const id = await db.insert('accounts', { name: 'own', balance: balance(5) })
          await db.patch(id, { note: 'x' })
          await db.patch(id, { balance: balance(6) }, ['note'])
          const one = await db.get(id)
          const { documents } = await db.range({
            table: 'accounts',
            index: 'byBalance',
            equal: [{ $i: '6' }],
          })
          const gone = await db.range({
            table: 'accounts',
            index: 'byBalance',
            equal: [{ $i: '5' }],
          })
          return [one.balance.$i, 'note' in one, documents.length, gone.documents.length]
        },
        fails: async (db) => {
          await db.insert('accounts', { name: 'lost', balance: balance(1) })
          throw new TypeError('author')
        },
        wrong: (db) => db.insert('accounts', { name: 'x', balance: 7 }),
      },
      { ...bankKinds, own: 'mutation', fails: 'mutation', wrong: 'mutation' },
    )
    const own = await bench.mutation('own')
    expect(decodeTagged(JSON.parse(own.resultText))).toEqual(['6', false, 1, 0])
    await expect(bench.mutation('fails')).rejects.toMatchObject({ code: 'FUNCTION_FAILED' })
    await expect(bench.mutation('wrong')).rejects.toMatchObject({
      code: 'FUNCTION_FAILED',
      detail: expect.stringContaining('accounts.balance must be an int64'),
    })
    expect((await bench.query('names')).value).toEqual(['own'])
  })

  test('two patches of one document in a Promise.all both take effect', async () => {
    const bench = await engineWith(
      {
        ...bank,
        both: (db, { input }) =>
          Promise.all([db.patch(input, { note: 'n' }), db.patch(input, { name: 'm' })]).then(
            () => null,
          ),
        one: (db, { input }) => db.get(input),
      },
      { ...bankKinds, both: 'mutation', one: 'query' },
    )
    const [id] = await accounts(bench, 1)
    await bench.mutation('both', { input: id! })
    const { value } = await bench.query('one', { input: id! })
    expect((value as Map<string, unknown>).get('note')).toBe('n')
    expect((value as Map<string, unknown>).get('name')).toBe('m')
  })

  test('pages neither skip nor repeat while documents are written', async () => {
    const bench = await engineWith(
      {
        ...bank,
        page: (db, { input }) =>
          db.range({
            table: 'accounts',
            limit: 7,
            next: 'sealed',
            ...(input && { cursor: input }),
          }),
      },
      { ...bankKinds, page: 'query' },
    )
    const ids = await accounts(bench, 30)
    const seen: unknown[] = []
    let cursor: string | undefined
    for (let i = 0; ; i++) {
      const { value } = await bench.query('page', cursor === undefined ? {} : { input: cursor })
      const page = value as Map<string, unknown>
      for (const document of page.get('documents') as Map<string, { id: string }>[]) {
        seen.push(document.get('_id')!.id)
      }
      if (page.get('done') === true) break
      cursor = page.get('cursor') as string
      await bench.mutation('remove', { input: ids[i]! })
      await bench.mutation('open', { input: `late ${i}` })
    }
    expect(new Set(seen).size).toBe(seen.length)
    expect(ids.every((id) => seen.includes(id))).toBe(true)
  })

  test('a call whose runner was lost runs again and takes effect once', async () => {
    const bench = await engineWith(bank, bankKinds)
    bench.pool.loseNext = 2
    const outcome = await bench.mutation('open', { input: 'a' })
    expect(outcome.attempts).toBe(1)
    expect(bench.pool.calls).toBe(3)
    expect((await bench.query('names')).value).toEqual(['a'])
  })

  test('a Mutation that writes nothing has no sequence and is replayed too', async () => {
    const bench = await engineWith({ ...bank, idle: () => 'x' }, { ...bankKinds, idle: 'mutation' })
    const operationId = system.ids.make('opn')
    const first = await bench.mutation('idle', {}, operationId)
    expect(first).toMatchObject({ commitSequence: null, replayed: false, attempts: 1 })
    expect(await bench.mutation('idle', {}, operationId)).toEqual({ ...first, replayed: true })
  })
})
