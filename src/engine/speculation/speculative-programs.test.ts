/**
 * Goal: a speculative attempt that is not misspeculated returns, writes and reads the same as a
 * synchronous one, in any order of its operations, and it is misspeculated exactly where the server
 * rejects an operation. Method: random programs, interpreted by a Function, once speculatively and
 * once synchronously at the same snapshot with the same seed. For half of the documents, the store
 * has the versions of the newest snapshot in memory, not of the one before. The ranges that the
 * synchronous attempt read, in any place, are the predicted ones of the speculative attempt.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestConfiguration } from '../../../testing/configurations.ts'
import { testCursors } from '../../../testing/cursors.ts'
import { noStorage } from '../../../testing/files/function-storage.ts'
import { fc } from '../../../testing/properties.ts'
import { poolBench } from '../../../testing/runners.ts'
import { SEED } from '../../../testing/seeds.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import type { DocumentStore } from '../../documents/store.ts'
import { assert } from '../../errors/assert.ts'
import { isFault } from '../../errors/fault.ts'
import type { RangeRequest } from '../../runner/protocol/operations.ts'
import { realSystem } from '../../system/system.ts'
import { parseDescription } from '../../wire/files/manifest.ts'
import { OperationError } from '../calls/operation-error.ts'
import type { RunnerHost } from '../calls/outcomes.ts'
import { Committer } from '../commits/committer.ts'
import { type InvocationPort, runAttempt } from '../invocations/attempt.ts'
import type { CompletedRun } from '../invocations/run-outcomes.ts'
import { Preparations } from '../releases/preparations.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import type { RunnerPool } from '../runners/runner-pool.ts'
import { PendingWork } from '../scheduled-work/pending-work.ts'
import { Transaction } from '../transactions/transaction.ts'
import { FunctionUsage } from '../usage/function-usage.ts'
import { ReadPredictions } from './read-predictions.ts'

const PROGRAMS = process.env.SVC_TEST_LONG === '1' ? 1_500 : 300

const SCHEMA = `tables({ notes: {
  fields: {
    n: { type: 'int64' },
    name: { type: 'optional', inner: { type: 'string' } },
    tags: { type: 'optional', inner: { type: 'any' } },
  },
  indexes: [
    { name: 'byN', fields: ['n'], unique: false },
    { name: 'byName', fields: ['name'], unique: true },
  ],
} })`

/**
 * A step names a document by its number among those of the arguments, followed by those that the
 * program inserted.
 */
const CODE = `
  fill: mutation(async (ctx) => {
    const ids = []
    for (let n = 0n; n < 12n; n++) {
      const large = n === 3n ? ['x'.repeat(20_000)] : ['x', { n }]
      ids.push(await ctx.db.insert('notes', { n: n % 4n, name: 'name' + n, tags: large }))
    }
    return ids
  }),
  touch: mutation(async (ctx) => {
    for (const it of await ctx.db.table('notes').scan().take(6)) {
      await ctx.db.patch(it._id, { tags: 'touched' })
    }
  }),
  change: mutation((ctx, input) => work(ctx, input), program),
  look: query((ctx, input) => work(ctx, input), program),`
const WORK = `
const program = {
  arguments: { documents: { type: 'any' }, steps: { type: 'any' } }, errors: { NO: 'conflict' },
}
async function work(ctx, { documents, steps }) {
  const own = []
  const idOf = (number) => {
    const all = [...documents, ...own]
    return all[number % all.length]
  }
  const all = async (steps) => {
    const seen = []
    for (const step of steps) seen.push(await one(step))
    return seen
  }
  const nested = (kind, name, { steps }) =>
    ctx['run' + kind]({ kind: kind.toLowerCase(), name: 'f.' + name }, { documents, steps })
  async function one(step) {
    switch (step.do) {
      case 'get': {
        const found = await ctx.db.get(idOf(step.of))
        if (step.spoils && found !== null) found.tags = 'spoiled'
        return found
      }
      case 'insert': {
        const id = await ctx.db.insert('notes', step.fields)
        own.push(id)
        return id
      }
      case 'patch': return await ctx.db.patch(idOf(step.of), step.fields)
      case 'unset': return await ctx.db.patch(idOf(step.of), { name: undefined })
      case 'replace': return await ctx.db.replace(idOf(step.of), step.fields)
      case 'delete': return await ctx.db.delete(idOf(step.of))
      case 'scan': return await ctx.db.table('notes').scan().order(step.order).take(step.count)
      case 'index': {
        const rows = ctx.db.table('notes').index('byN', (q) => q.gte('n', step.from))
        return await rows.order(step.order).take(step.count)
      }
      case 'usage': return await ctx.usage()
      case 'random': return Math.random()
      case 'query': return await nested('Query', 'look', step)
      case 'mutation': return await nested('Mutation', 'change', step)
      case 'at once': return await Promise.all(step.steps.map(one))
      case 'first': return await Promise.race([...step.steps.map(one), ctx.usage()])
      case 'loose': {
        for (const each of step.steps) one(each).catch(() => {})
        return null
      }
      case 'try':
        try { return await all(step.steps) } catch (error) { return [error.name, error.message] }
      case 'throw': throw new RangeError('own')
      case 'fail': return ctx.fail('NO')
    }
  }
  return await all(steps)
}
`

type Step = { readonly do: string; readonly [name: string]: unknown }

const int64 = (most: number) => fc.nat({ max: most }).map((n) => ({ $i: String(n) }))
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
/** Some of these names are taken. */
const name = fc.nat({ max: 99 }).map((n) => `name${n}`)
const fields = fc.record(
  {
    // One in 31 is not an int64, which the server rejects.
    n: fc.oneof({ arbitrary: int64(5), weight: 30 }, { arbitrary: fc.constant(1.5), weight: 1 }),
    name: optional(name),
    tags: optional(fc.constantFrom([], ['a', { b: 1 }], { $i: '7' }, 'text')),
  },
  { requiredKeys: ['n', 'name', 'tags'] },
)
const partial = fields.map(({ n, name, tags }) => ({
  ...(tags !== undefined && { tags }),
  ...(name !== undefined && { name }),
  ...((tags ?? name) === undefined && { n }),
}))
const number = fc.nat({ max: 15 })
const order = fc.constantFrom('asc', 'desc')
const count = fc.integer({ min: 1, max: 6 })
const step = (name: string, rest: Record<string, fc.Arbitrary<unknown>> = {}) =>
  fc.record({ do: fc.constant(name), ...rest }) as fc.Arbitrary<Step>

const reads = [
  step('get', { of: number, spoils: fc.boolean() }),
  step('get', { of: number }),
  step('get', { of: number }),
  step('scan', { order, count }),
  step('usage'),
  step('random'),
  step('index', { from: int64(4), order, count }),
]
const writes = [
  step('insert', { fields }),
  step('insert', { fields }),
  step('unset', { of: number }),
  step('patch', { of: number, fields: partial }),
  step('replace', { of: number, fields }),
  step('delete', { of: number }),
]
const ends = [step('throw'), step('fail')]

/** Steps that contain other steps nest twice. */
function stepOf(simple: readonly fc.Arbitrary<Step>[], depth: number): fc.Arbitrary<Step> {
  const plain = fc.oneof(...simple)
  const awaited = fc.oneof(...simple.filter((each) => !ends.includes(each)))
  if (depth === 0) return plain
  const within = (of: fc.Arbitrary<Step>) => fc.array(of, { maxLength: 4 })
  const same = stepOf([...simple, ...ends], depth - 1)
  const concurrent = ['at once', 'first', 'loose', 'mutation'] as const
  // In a Query, the order of replies to a called Function and to a read after it is undefined.
  const concurrentSteps = simple.includes(writes[0]!)
    ? concurrent.map((name) => step(name, { steps: within(same) }))
    : [step('at once', { steps: within(awaited) })]
  const nested = [
    step('try', { steps: within(same) }),
    step('query', { steps: within(stepOf([...reads, ...ends], depth - 1)) }),
    ...concurrentSteps,
  ]
  return fc.oneof({ arbitrary: plain, weight: 8 }, ...nested)
}

/** Programs; some of them end with a failure. */
function stepsOf(simple: readonly fc.Arbitrary<Step>[]): fc.Arbitrary<readonly Step[]> {
  const last = fc.oneof({ arbitrary: fc.constant([]), weight: 6 }, fc.tuple(fc.oneof(...ends)))
  const all = fc.tuple(fc.array(stepOf(simple, 2), { maxLength: 8 }), last)
  return all.map(([steps, end]) => [...steps, ...end])
}

const program = fc.record({
  kind: fc.constantFrom('mutation' as const, 'mutation' as const, 'query' as const),
  /** Numbers of documents, and whether their IDs are typed in the arguments, hence prefetched. */
  documents: fc.array(fc.tuple(fc.nat({ max: 12 }), fc.boolean()), { minLength: 1, maxLength: 6 }),
  mutating: stepsOf([...reads, ...writes]),
  looking: stepsOf(reads),
  snapshot: fc.constantFrom(1, 2),
  seedByte: fc.nat({ max: 255 }),
})
type Program = typeof program extends fc.Arbitrary<infer T> ? T : never

const system = realSystem()
const bench = poolBench()
const configuration = new TestConfiguration()
const directory = mkdtempSync(join(tmpdir(), 'svc-ahead-'))
let store: DocumentStore
let committer: Committer
let prepared: PreparedRelease
let port: InvocationPort
let ids: readonly string[]
interface Recorded {
  /** True if the host rejected an operation. */
  wasRejected: boolean
  /** The ranges that were read, by their JSON. */
  readonly ranges: Map<string, RangeRequest>
}
/** The record of calls that begin now: an operation may outlive a call that did not await it. */
let recorded: Recorded = { wasRejected: false, ranges: new Map() }

class Prediction extends ReadPredictions {
  readonly #ranges: readonly RangeRequest[]

  constructor(ranges: readonly RangeRequest[]) {
    super()
    this.#ranges = ranges
  }

  override predict(): readonly RangeRequest[] {
    return this.#ranges
  }
}

/** Wraps the pool to record rejected operations. */
function recordingPool(pool: RunnerPool): RunnerPool {
  const recordingHost = (host: RunnerHost, into: Recorded): RunnerHost => ({
    operation(operation, invokePart) {
      if (operation[0] === 'range') into.ranges.set(JSON.stringify(operation), operation[1])
      const record = (error: unknown): never => {
        into.wasRejected ||= error instanceof OperationError && operation[0] !== 'run'
        throw error
      }
      try {
        const reply = host.operation(operation, invokePart)
        return reply instanceof Promise ? reply.catch(record) : reply
      } catch (error) {
        return record(error)
      }
    },
  })
  const invoke: RunnerPool['invoke'] = (code, call, host) =>
    pool.invoke(code, call, recordingHost(host, recorded))
  return { ...pool, invoke }
}

beforeAll(async () => {
  const { pool, metrics, log } = bench
  await pool.start({ sandbox: 'preferred' })
  store = await openSqliteDocuments(join(directory, 'documents.db'))
  committer = new Committer({ store, system, metrics, onCommit: () => undefined })
  const code = bench.release(CODE, SCHEMA)
  const described = { ...code, source: `${WORK}${code.source}` }
  const { functions, tables } = parseDescription(await pool.describe(described))
  prepared = await new Preparations(store, committer).prepare({
    ...described,
    functions: new Map(functions.map((each) => [each.name, each])),
    tables: new Map(tables.map((each) => [each.name, each])),
  })
  port = {
    pool: recordingPool(pool),
    system,
    log: log.log,
    configuration,
    cursors: testCursors(),
    issueGuest: () => 'guest',
    storage: noStorage(),
    pendingWork: new PendingWork(),
    usage: new FunctionUsage({ system, log: log.log, metrics }),
  }
  ids = await commit('fill')
  await commit('touch')
})
afterAll(async () => {
  await bench.pool.close()
  await store.close()
  rmSync(directory, { recursive: true })
})

interface Attempt {
  readonly snapshot: number
  readonly seedByte: number
  readonly isSpeculative: boolean
  readonly predicted?: readonly RangeRequest[]
}

/** Runs and commits a Mutation. Returns the IDs of the documents that it wrote. */
async function commit(name: string): Promise<readonly string[]> {
  const attempt = { snapshot: committer.durable, seedByte: 1, isSpeculative: false }
  const { transaction } = await runToEnd(name, '{}', attempt)
  const { snapshot, readSet } = transaction
  const atMicros = system.nowMicros()
  const committed = await committer.commit({
    snapshot,
    pending: null,
    readSet,
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
  assert(committed.kind === 'assigned', 'nothing else commits')
  await committed.durable
  return transaction.writes().map(({ id }) => id)
}

/** Returns the Release with these ranges as the prediction for the Function. */
function predicting(name: string, predicted: readonly RangeRequest[]): PreparedRelease {
  const made = { ...prepared.functions.get(name)!, reads: new Prediction(predicted) }
  return { ...prepared, functions: new Map(prepared.functions).set(name, made) }
}

async function runToEnd(name: string, argumentsText: string, attempt: Attempt) {
  const { snapshot, seedByte, isSpeculative, predicted = [] } = attempt
  const prepared = predicting(`f.${name}`, predicted)
  const definition = prepared.release.functions.get(`f.${name}`)!
  const { nowMicros, seed, deadline } = bench.call(name, { seedByte })
  const transaction = new Transaction({
    store,
    release: prepared,
    snapshot,
    pending: null,
    nowMicros,
    seed,
    writable: definition.kind === 'mutation',
  })
  const invocation = {
    prepared,
    nowMicros,
    seed,
    deadline,
    configuration: configuration.current,
    definition,
    argumentsText,
    principal: null,
    isSpeculative,
    placeholders: null,
    context: { requestId: 'req_test', invocationId: 'ivc_test' },
  }
  let run: CompletedRun | string | null
  try {
    run = await runAttempt(port, invocation, transaction)
  } catch (error) {
    assert(isFault(error), String(error))
    run = `${error.code}: ${error.detail}`
  }
  return { transaction, run }
}

/** Returns the outcome, the writes and the reads of an attempt. */
function effectsOf({ transaction, run }: Awaited<ReturnType<typeof runToEnd>>) {
  const { readSet, usage } = transaction
  const writes = transaction.writes().map(({ id, createdAtMicros, document, after }) => {
    return [id, createdAtMicros, after === null ? null : document.text]
  })
  return { run, writes, documents: [...readSet.documents], intervals: readSet.intervals, usage }
}

function argumentsOf({ kind, documents, mutating, looking }: Program): string {
  // The last document does not exist.
  const all = [...ids, `notes_${'7'.repeat(26)}`]
  const named = documents.map(([number, isTyped]) =>
    isTyped ? { $d: all[number]! } : all[number]!,
  )
  return JSON.stringify({ documents: named, steps: kind === 'mutation' ? mutating : looking })
}

test(`${PROGRAMS} programs have equal effects in both modes (SVC_SEED=${SEED})`, async () => {
  const counts = { misspeculated: 0, succeeded: 0, failed: 0, predicted: 0 }
  const property = fc.asyncProperty(program, async (one) => {
    const name = one.kind === 'mutation' ? 'change' : 'look'
    const text = argumentsOf(one)
    recorded = { wasRejected: false, ranges: new Map() }
    const synchronous = await runToEnd(name, text, { ...one, isSpeculative: false })
    const isRejected = recorded.wasRejected
    const predicted = [...recorded.ranges.values()]
    const speculative = await runToEnd(name, text, { ...one, isSpeculative: true, predicted })
    expect(synchronous.run).not.toBeNull()
    if (predicted.length > 0 && !speculative.transaction.hasUnreadRanges) counts.predicted += 1
    if (speculative.run === null) counts.misspeculated += 1
    if (typeof synchronous.run === 'string') {
      // The failure may have come before an operation that is rejected, so both are possible.
      expect(speculative.run ?? synchronous.run).toBe(synchronous.run)
      counts.failed += 1
    } else {
      expect(speculative.run === null).toBe(isRejected)
      if (speculative.run !== null) expect(effectsOf(speculative)).toEqual(effectsOf(synchronous))
      counts.succeeded += 1
    }
  })
  await fc.assert(property, { seed: SEED, numRuns: PROGRAMS })
  // Without enough of each the test would not cover its goal.
  expect(Math.min(...Object.values(counts))).toBeGreaterThan(PROGRAMS / 20)
})
