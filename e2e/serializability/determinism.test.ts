/**
 * A Mutation at one snapshot gives the same bytes in a thousand runs and several runner
 * processes, while newer commits change everything that it reads. The time and the seed of the
 * invocation are part of its input, as they are when the engine retries it.
 *
 * @module-tag slow
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSqliteDocuments } from '../../src/documents/sqlite/stores.ts'
import type { DocumentStore } from '../../src/documents/store.ts'
import { Committer } from '../../src/engine/commits/committer.ts'
import { runAttempt } from '../../src/engine/invocations/attempt.ts'
import type { Release } from '../../src/engine/releases/executable-release.ts'
import { Preparations } from '../../src/engine/releases/preparations.ts'
import type { PreparedRelease } from '../../src/engine/releases/prepared-release.ts'
import { PendingWork } from '../../src/engine/scheduled-work/pending-work.ts'
import { Transaction } from '../../src/engine/transactions/transaction.ts'
import { FunctionUsage } from '../../src/engine/usage/function-usage.ts'
import { assert } from '../../src/errors/assert.ts'
import { realSystem } from '../../src/system/system.ts'
import type { FunctionManifest, TableManifest } from '../../src/value/manifest.ts'
import { TestConfiguration } from '../../testing/configurations.ts'
import { testCursors } from '../../testing/cursors.ts'
import { noStorage } from '../../testing/files/function-storage.ts'
import { poolBench } from '../../testing/runners.ts'

const RUNS = 1_000
/** Number of runs after which every process is replaced. */
const RUNS_PER_PROCESS = 100
const AT_ONCE = 25

const NOTES: TableManifest = {
  name: 'notes',
  fields: { owner: { type: 'string' }, weight: { type: 'float64' }, tags: { type: 'any' } },
  indexes: [
    { name: 'byOwner', fields: ['owner'], unique: false },
    { name: 'byWeight', fields: ['weight'], unique: false },
  ],
}
const SCHEMA = `tables({ notes: { fields: {
  owner: { type: 'string' }, weight: { type: 'float64' }, tags: { type: 'any' } },
  indexes: [
    { name: 'byOwner', fields: ['owner'], unique: false },
    { name: 'byWeight', fields: ['weight'], unique: false },
  ] } })`

/** Code with everything that could differ: order, time, randomness, floats, IDs and errors. */
const CODE = `
  seed: mutation(async (ctx) => {
    for (let i = 0; i < 40; i++) {
      await ctx.db.insert('notes', { owner: 'o' + (i % 5), weight: i / 3, tags: { i } })
    }
  }),
  disturb: mutation(async (ctx) => {
    const [oldest, ...others] = await ctx.db.table('notes').scan().collect()
    await ctx.db.delete(oldest._id)
    for (const note of others) await ctx.db.patch(note._id, { tags: Math.random() })
    await ctx.db.insert('notes', { owner: 'o1', weight: Math.random(), tags: [] })
  }),
  work: mutation(async (ctx, { step }) => {
    const seen = []
    for await (const note of ctx.db.table('notes').index('byOwner', (q) => q.eq('owner', 'o1'))) {
      seen.push([note._id, note._revision, note.weight])
    }
    const light = await ctx.db.table('notes')
      .index('byWeight', (q) => q.gte('weight', 2.5).lt('weight', 9)).order('desc').take(7)
    const made = await Promise.all([0, 1, 2].map((i) => ctx.db.insert('notes', {
      owner: 'o1', weight: Math.sin(i + step) * Math.random(), tags: { at: Date.now(), i },
    })))
    await ctx.db.patch(light[0]._id, { weight: Math.exp(step / 7), tags: new Date().toISOString() })
    await ctx.db.delete(light[1]._id)
    await ctx.db.replace(light[2]._id, { owner: 'o1', weight: -1, tags: crypto.randomUUID() })
    const after = await ctx.db.table('notes').index('byOwner', (q) => q.eq('owner', 'o1')).collect()
    const page = await ctx.db.table('notes').scan().paginate({ cursor: null, limit: 3 })
    const random = [...crypto.getRandomValues(new Uint8Array(24))]
    const shuffled = [...seen].sort(() => Math.random() - 0.5)
    return { seen, made, after, page, random, shuffled, now: ctx.now(),
      sum: 0.1 + step * 0.2,
      text: [1.1, 1e21, -0.5].map(String).join() + (0.1).toFixed(20), words: new Set(made).size }
  }, { arguments: { step: { type: 'float64' } } }),
  rejected: mutation(async (ctx) => {
    const made = await ctx.db.insert('notes', { owner: 'o9', weight: Math.random(), tags: null })
    try { await ctx.db.patch(made, { weight: 'heavy' }) } catch (error) {
      return [made, error.name, error.message, (await ctx.db.get(made)).weight, Math.random()]
    }
  }),`

function named(name: string): FunctionManifest {
  return {
    name: `f.${name}`,
    kind: 'mutation',
    visibility: 'public',
    clients: [],
    auth: 'none',
    arguments: { step: { type: 'float64' } },
    returns: { type: 'any' },
    errors: {},
  }
}

const NAMES = ['seed', 'disturb', 'work', 'rejected']
const bench = poolBench({ size: 2 })
const { metrics } = bench
const system = realSystem()
const configuration = new TestConfiguration()
const directory = mkdtempSync(join(tmpdir(), 'svc-determinism-'))
let store: DocumentStore
let committer: Committer
let prepared: PreparedRelease

beforeAll(async () => {
  await bench.pool.start({ sandbox: 'preferred' })
  store = await openSqliteDocuments(join(directory, 'documents.db'))
  committer = new Committer({ store, system, metrics, onCommit: () => undefined })
  const tables = new Map([['notes', NOTES]])
  const functions = new Map(NAMES.map((name) => [`f.${name}`, named(name)]))
  const release: Release = { ...bench.release(CODE, SCHEMA), functions, tables }
  prepared = await new Preparations(store, committer).prepare(release)
  await commit('seed')
})
afterAll(async () => {
  await bench.pool.close()
  await store.close()
  rmSync(directory, { recursive: true })
})

let runs = 0

interface Finished {
  readonly transaction: Transaction
  readonly resultText: string
}

interface Attempt {
  readonly snapshot: number
  readonly seedByte: number
  readonly isSpeculative?: boolean
}

/** Alternates between speculative and synchronous runs by default: both must give equal bytes. */
async function finish(name: string, attempt: Attempt): Promise<Finished> {
  runs += 1
  const { snapshot, seedByte, isSpeculative = runs % 2 === 0 } = attempt
  const { nowMicros, seed, deadline } = bench.call(name, { seedByte })
  const transaction = new Transaction({
    store,
    release: prepared,
    snapshot,
    pending: null,
    nowMicros,
    seed,
    writable: true,
  })
  const invocation = {
    prepared,
    nowMicros,
    seed,
    deadline,
    configuration: configuration.current,
    definition: prepared.release.functions.get(`f.${name}`)!,
    argumentsText: '{"step":5}',
    principal: null,
    context: { requestId: 'req_test', invocationId: 'ivc_test' },
    isSpeculative,
    placeholders: null,
  }
  const issueGuest = () => 'guest'
  const log = bench.log.log
  const usage = new FunctionUsage({ system, log, metrics })
  const cursors = testCursors()
  const port = {
    pool: bench.pool,
    system,
    log,
    usage,
    issueGuest,
    storage: noStorage(),
    pendingWork: new PendingWork(),
    cursors,
    configuration,
  }
  const ran = await runAttempt(port, invocation, transaction)
  if (ran === null) return finish(name, { snapshot, seedByte, isSpeculative: false })
  return { transaction, resultText: ran.resultText }
}

async function commit(name: string): Promise<void> {
  const seedByte = committer.durable + 100
  const { transaction } = await finish(name, { snapshot: committer.durable, seedByte })
  const atMicros = system.nowMicros()
  const committed = await committer.commit({
    snapshot: transaction.snapshot,
    pending: null,
    readSet: transaction.readSet,
    atMicros,
    lock: null,
    writes: transaction.writes(),
    operation: {
      operationId: system.ids.make('opn'),
      fingerprint: new Uint8Array(32),
      releaseId: prepared.release.releaseId,
      function: name,
      result: 'null',
      attempts: 1,
      createdAtMicros: atMicros,
    },
  })
  assert(committed.kind === 'assigned', 'no other transaction commits')
  await committed.durable
}

/** Returns the result, the writes and the read set of a run as text. */
function bytesOf({ transaction, resultText }: Finished): string {
  const { readSet } = transaction
  const writes = transaction.writes().map(({ id, createdAtMicros, document, after }) => {
    return [id, String(createdAtMicros), after === null ? null : document.text]
  })
  return JSON.stringify([resultText, writes, [...readSet.documents], [...readSet.intervals]])
}

test(`${RUNS} runs in several processes give the same bytes`, async () => {
  const snapshot = committer.durable
  const different = new Set<string>()
  let runs = 0
  for (; runs < RUNS; runs += AT_ONCE) {
    if (runs % RUNS_PER_PROCESS === 0) {
      bench.pool.forget(prepared.release.releaseId)
      await commit('disturb')
    }
    const batch = Array.from({ length: AT_ONCE }, () => finish('work', { snapshot, seedByte: 1 }))
    for (const each of await Promise.all(batch)) different.add(bytesOf(each))
  }
  expect(runs).toBe(RUNS)
  expect(committer.durable).toBeGreaterThan(snapshot)
  expect([...different]).toHaveLength(1)
})

test('another seed and another snapshot give other bytes', async () => {
  const before = committer.durable
  await commit('disturb')
  const same = bytesOf(await finish('work', { snapshot: before, seedByte: 1 }))
  expect(bytesOf(await finish('work', { snapshot: before, seedByte: 2 }))).not.toBe(same)
  expect(bytesOf(await finish('work', { snapshot: committer.durable, seedByte: 1 }))).not.toBe(same)
  expect(bytesOf(await finish('work', { snapshot: before, seedByte: 1 }))).toBe(same)
})

test('a caught failure is the same in speculative and synchronous runs', async () => {
  const snapshot = committer.durable
  const speculative = await finish('rejected', { snapshot, seedByte: 3, isSpeculative: true })
  const synchronous = await finish('rejected', { snapshot, seedByte: 3, isSpeculative: false })
  expect(speculative.resultText).toContain('weight')
  expect(bytesOf(speculative)).toBe(bytesOf(synchronous))
})
