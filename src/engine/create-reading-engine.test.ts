/** Queries and subscriptions of an engine that follows the commits of another one. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { TestConfiguration } from '../../testing/configurations.ts'
import { testCursors } from '../../testing/cursors.ts'
import { inProcessPool, type TestHandler } from '../../testing/engine/in-process-pool.ts'
import { noStorage } from '../../testing/files/function-storage.ts'
import { followSqliteDocuments } from '../documents/sqlite/followed-store.ts'
import { openSqliteDocuments } from '../documents/sqlite/stores.ts'
import { MemoryBudget } from '../system/memory/memory-budget.ts'
import { realSystem } from '../system/system.ts'
import { memoryLog } from '../telemetry/log.ts'
import { Metrics } from '../telemetry/metrics/metrics.ts'
import type { FunctionManifest, TableManifest } from '../value/manifest.ts'
import { decodeTagged } from '../value/tagged.ts'
import type { CommitWrites } from './commits/read-set.ts'
import { createEngine } from './create-engine.ts'
import { createReadingEngine, type ReadingEngine } from './create-reading-engine.ts'
import type { Engine } from './engine.ts'
import type { Release } from './releases/executable-release.ts'

const COUNTERS: TableManifest = {
  name: 'counters',
  fields: { name: { type: 'string' }, value: { type: 'int64' } },
  indexes: [{ name: 'byName', fields: ['name'], unique: true }],
}
/** The ID of the counter; null before the first Mutation. */
let counter: string | null
const HANDLERS: Record<string, TestHandler> = {
  async add(db) {
    const before = counter === null ? 0 : Number((await db.get(counter)).value.$i)
    const value = { $i: String(before + 1) }
    if (counter === null) counter = await db.insert('counters', { name: 'one', value })
    else await db.patch(counter, { value })
    return value
  },
  async read({ range }) {
    const { documents } = await range({ table: 'counters', index: 'byName', equal: ['one'] })
    return documents[0]?.value ?? null
  },
}

const system = realSystem()
const memory = new MemoryBudget(1024 ** 3).shareOf({ credential: null, peer: 'test' })
const common = {
  system,
  log: memoryLog().log,
  metrics: new Metrics(system),
  storage: noStorage(),
  issueGuest: () => 'guest',
  configuration: new TestConfiguration(),
  cursors: testCursors(),
}
const release: Release = {
  releaseId: system.ids.make('rel'),
  source: '',
  sourceMap: null,
  functions: new Map(
    (['add', 'read'] as const).map((name): [string, FunctionManifest] => [
      name,
      {
        name,
        kind: name === 'add' ? 'mutation' : 'query',
        visibility: 'public',
        clients: ['public'],
        auth: 'none',
        arguments: {},
        returns: { type: 'any' },
        errors: {},
      },
    ]),
  ),
  tables: new Map([['counters', COUNTERS]]),
}
const request = (name: string) => ({
  release,
  definition: release.functions.get(name)!,
  arguments: new Map(),
  principal: null,
  context: { requestId: 'req_test', invocationId: 'ivc_test' },
})

let directory: string
let committing: Engine
let reading: ReadingEngine
/** Commits of the committing engine, which the reading one was not told of yet. */
let told: [sequence: number, writes: CommitWrites][]
let runs: ReturnType<typeof poolOf>

function poolOf() {
  const pool = inProcessPool(HANDLERS)
  return Object.assign(pool, { close: async () => undefined, warm: async () => undefined })
}

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'reading-engine-'))
  const path = join(directory, 'documents.db')
  const store = await openSqliteDocuments(path, { mayBeNew: true, isShared: true })
  told = []
  counter = null
  committing = createEngine({
    ...common,
    store,
    pool: poolOf(),
    onDurable: (sequence, writes) => told.push([sequence, writes]),
  })
  await committing.prepare(release)
  runs = poolOf()
  const { latestSequence } = store
  const followed = followSqliteDocuments(path, { latestSequence, schema: store.schema() })
  store.onSchemaChange(() => followed.followSchema(store.schema()))
  reading = createReadingEngine({
    ...common,
    store: followed,
    pool: runs,
    remote: committing,
    prepareRemotely: async (prepared) => void (await committing.prepare(prepared)),
  })
})
afterEach(async () => {
  await reading.close()
  await committing.close()
  rmSync(directory, { recursive: true })
})

async function read() {
  const { resultText, snapshotSequence } = await reading.query(request('read'))
  return [decodeTagged(JSON.parse(resultText)), snapshotSequence]
}

/** The other process executes the Mutation. Returns its sequence. */
async function add(): Promise<number> {
  const operation = { operationId: system.ids.make('opn'), target: 'test', caller: 'test' }
  return (await reading.mutation({ ...request('add'), ...operation })).commitSequence!
}

function follow(): void {
  for (const [sequence, { documents, keys }] of told.splice(0)) {
    reading.followCommit(sequence, { documents, keys })
  }
}

test('a cached result is dropped by the commit that follows, and not before', async () => {
  const first = await add()
  follow()
  for (let i = 0; i < 4; i++) expect(await read()).toEqual([1n, first])
  const cached = runs.calls
  expect(await read()).toEqual([1n, first])
  expect(runs.calls).toBe(cached)
  const second = await add()
  // Durable and not announced: the snapshot is still the first one.
  expect(await read()).toEqual([1n, first])
  expect(runs.calls).toBe(cached)
  follow()
  expect(await read()).toEqual([2n, second])
  expect(runs.calls).toBe(cached + 1)
})

test('a subscription gets a state for each commit that follows', async () => {
  await add()
  follow()
  const states: unknown[] = []
  const subscription = reading.watch(
    { ...request('read'), memory },
    {
      state: ({ resultText }) => void states.push(decodeTagged(JSON.parse(resultText))),
      progressed: () => undefined,
      failed: (fault) => void states.push(fault),
    },
  )
  await expect.poll(() => states).toEqual([1n])
  await add()
  follow()
  await expect.poll(() => states).toEqual([1n, 2n])
  subscription.close()
})

test('a Mutation is executed by the other process alone', async () => {
  const before = runs.calls
  await add()
  expect([runs.calls, told.length]).toEqual([before, 1])
})
