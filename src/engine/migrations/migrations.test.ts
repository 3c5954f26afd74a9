/**
 * Migrations in real runners on both stores: states, progress, and what stops them.
 *
 * @module-tag slow
 */
import { afterEach, describe, expect, test } from 'vitest'
import {
  type MigrationBench,
  migrationBench,
  STORES,
  type StoredDocuments,
  storedDocuments,
} from '../../../testing/migrations/migration-bench.ts'
import { Fault } from '../../errors/fault.ts'
import type { ReleaseId } from '../../value/ids.ts'

const SCHEMA = `tables({
  tasks: { fields: {
    n: { type: 'int64' },
    title: { type: 'string' },
    level: { type: 'optional', inner: { type: 'string', maximumLength: 10 } },
    passes: { type: 'optional', inner: { type: 'int64' } },
  }, indexes: [
    { name: 'byNumber', fields: ['n'], unique: false },
    { name: 'byLevel', fields: ['level'], unique: true },
  ] },
  marks: { fields: { n: { type: 'int64' } }, indexes: [] },
})`
const FUNCTIONS = `
fill: mutation(async (ctx, { from, count, title }) => {
  for (let i = from; i < from + count; i++) await ctx.db.insert('tasks', { n: i, title })
}, { arguments: {
  from: { type: 'int64' }, count: { type: 'int64' }, title: { type: 'string' },
} }),
tasks: query(async (ctx) => {
  const found = await ctx.db.table('tasks').index('byNumber').collect()
  return found.map(({ n, level = null, passes = 0n }) => [n, level, passes])
}),
touch: mutation(async (ctx, { n }) => {
  const [task] = await ctx.db.table('tasks').index('byNumber', (q) => q.eq('n', n)).collect()
  await ctx.db.patch(task._id, { title: 'touched' })
}, { arguments: { n: { type: 'int64' } } }),
level: mutation(async (ctx, { n, level }) => {
  const [task] = await ctx.db.table('tasks').index('byNumber', (q) => q.eq('n', n)).collect()
  await ctx.db.patch(task._id, { level })
}, { arguments: { n: { type: 'int64' }, level: { type: 'string' } } }),
`
const COUNT = `each: (ctx, task) => ({ passes: (task.passes ?? 0n) + 1n })`
const MIGRATIONS = `{
  count: { table: 'tasks', batch: 7, ${COUNT} },
  odd: { table: 'tasks', each: async (ctx, task) => {
    const other = await ctx.db.get(task._id)
    return other.n % 2n === 1n ? { passes: 1n } : null
  } },
  back: { table: 'tasks', index: 'byNumber', batch: 3, ${COUNT} },
  throws: { table: 'tasks', batch: 8, each: (ctx, task) => {
    if (task.n === 12n && task.title !== 'touched') throw new Error('no level for 12')
    return { passes: (task.passes ?? 0n) + 1n }
  } },
  invalid: { table: 'tasks', batch: 8, each: (ctx, task) =>
    ({ level: task.n === 5n ? 'far too long a text' : 'l' + task.n }) },
  unique: { table: 'tasks', each: (ctx, task) => ({ level: 'l' + (task.n % 6n) }) },
  unknown: { table: 'tasks', each: () => ({ other: 1n }) },
  nothing: { table: 'tasks', each: () => {} },
  moves: { table: 'tasks', index: 'byNumber', each: (ctx, task) => ({ n: task.n + 1n }) },
  writes: { table: 'tasks', each: async (ctx, task) => ctx.db.delete(task._id) },
  removes: { table: 'tasks', each: () => ({ passes: undefined }) },
  large: { table: 'tasks', each: (ctx, task) => ({ title: 'x'.repeat(700_000) }) },
  slow: { table: 'tasks', batch: 2, each: (ctx, task) => {
    for (const until = Date.now; task.n === 3n;);
    return { passes: 1n }
  } },
  dangling: { table: 'tasks', each: (ctx, task) => {
    if (task.n === 4n) ctx.db.get(task._id)
    return { passes: 1n }
  } },
}`

/** A migration that fails if the code sees a field that its schema does not declare. */
const HIDING = `{ hides: { table: 'tasks', batch: 5, each: (ctx, task) => {
  if ('level' in task) throw new Error('it is not hidden')
  return { passes: 1n }
} } }`

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function openBench(
  stored: StoredDocuments,
  releaseId?: ReleaseId,
  migrations = MIGRATIONS,
  schema = SCHEMA,
): Promise<MigrationBench> {
  const code = { functions: FUNCTIONS, schema, migrations }
  const bench = await migrationBench(await stored.open(), code, releaseId)
  closers.push(() => bench.close())
  return bench
}

async function openStored(kind: (typeof STORES)[number]): Promise<StoredDocuments> {
  const stored = await storedDocuments(kind)
  closers.push(() => stored.close())
  return stored
}

/** Opens a bench with tasks whose numbers begin at 0. */
async function filled(kind: (typeof STORES)[number], count: number): Promise<MigrationBench> {
  const bench = await openBench(await openStored(kind))
  await bench.call('fill', { from: 0n, count: BigInt(count), title: 'a' })
  bench.start()
  return bench
}

type Task = readonly [n: bigint, level: string | null, passes: bigint]
async function tasks(bench: MigrationBench): Promise<Task[]> {
  return (await bench.call('tasks')) as unknown as Task[]
}

/** Returns the numbers of the tasks that were passed `times` times. */
async function passed(bench: MigrationBench, times = 1n): Promise<number[]> {
  return (await tasks(bench)).filter(([, , passes]) => passes === times).map(([n]) => Number(n))
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i)

function act(bench: MigrationBench, action: 'run' | 'pause' | 'resume' | 'cancel', name: string) {
  return bench.engine.migrations.act(action, bench.release, bench.migration(name))
}

describe.each(STORES)('on %s', (kind) => {
  test('a migration passes each document once and counts those it changes', async () => {
    const bench = await filled(kind, 100)
    const { isAllowed } = await act(bench, 'run', 'count')
    expect(isAllowed).toBe(true)
    expect(await bench.until('count', 'complete', 'blocked')).toMatchObject({
      state: 'complete',
      processed: 100n,
      changed: 100n,
      failed: 0n,
      lastErrorCode: null,
    })
    expect(await passed(bench)).toEqual(upTo(100))
    await act(bench, 'run', 'odd')
    expect(await bench.until('odd', 'complete')).toMatchObject({ processed: 100n, changed: 50n })
    await act(bench, 'run', 'back')
    await bench.until('back', 'complete')
    expect(await passed(bench, 2n)).toEqual(upTo(100))
    expect(bench.metrics.collect().counters.migrationDocumentsChanged).toBe(250)
  })

  test('a document that the code fails for stops the migration after those before it', async () => {
    const bench = await filled(kind, 30)
    await act(bench, 'run', 'throws')
    const record = await bench.until('throws', 'blocked', 'complete')
    expect(record).toMatchObject({
      state: 'blocked',
      processed: 12n,
      changed: 12n,
      failed: 1n,
      lastErrorCode: 'FUNCTION_FAILED',
      lastDocumentId: expect.stringMatching(/^tasks_/),
    })
    expect(await passed(bench)).toEqual(upTo(12))
    const [entry] = bench.log.records().filter(({ event }) => event === 'migration.blocked')
    expect(entry).toMatchObject({ documentId: record.lastDocumentId, errorCode: 'FUNCTION_FAILED' })
    expect(JSON.stringify(entry)).toContain('no level for 12')
    await bench.call('touch', { n: 12n })
    expect(await act(bench, 'resume', 'throws')).toMatchObject({ isAllowed: true })
    expect(await bench.until('throws', 'complete')).toMatchObject({
      processed: 30n,
      lastErrorCode: null,
      lastDocumentId: null,
    })
    expect(await passed(bench)).toEqual(upTo(30))
  })

  test('what was running continues after a restart, where it was', async () => {
    const stored = await openStored(kind)
    const first = await openBench(stored)
    await first.call('fill', { from: 0n, count: 60n, title: 'a' })
    let admitted = 3
    first.start({ admits: () => admitted-- > 0 })
    await act(first, 'run', 'count')
    await first.engine.migrations.whenIdle()
    const { processed } = (await first.record('count'))!
    expect(processed).toBeGreaterThan(0n)
    expect(processed).toBeLessThan(60n)
    await first.close()
    closers.pop()
    const second = await openBench(stored, first.release.releaseId)
    expect(second.engine.migrations.unfinishedOf(second.release.releaseId)).toBeNull()
    second.start()
    expect(await second.until('count', 'complete')).toMatchObject({ processed: 60n })
    expect(await passed(second)).toEqual(upTo(60))
    expect(second.engine.migrations.unfinishedOf(second.release.releaseId)).toBe(0)
  })

  test('a migration keeps the fields that its Release does not declare', async () => {
    const stored = await openStored(kind)
    const first = await openBench(stored)
    await first.call('fill', { from: 0n, count: 12n, title: 'a' })
    for (const n of [3n, 7n]) await first.call('level', { n, level: `l${n}` })
    await first.close()
    closers.pop()
    const level = /^ *(?:level: .*|\{ name: 'byLevel'.*)\n/gm
    const second = await openBench(stored, undefined, HIDING, SCHEMA.replaceAll(level, ''))
    second.start()
    const previews = await second.engine.migrations.dryRun(
      second.release,
      second.migration('hides'),
    )
    expect(previews[3]!.before).toBe('{"n":{"$i":"3"},"title":"a"}')
    await act(second, 'run', 'hides')
    expect(await second.until('hides', 'complete', 'blocked')).toMatchObject({ changed: 12n })
    await second.close()
    closers.pop()
    const third = await openBench(stored)
    const kept = (await tasks(third)).filter(([, found]) => found !== null)
    expect(kept).toEqual([
      [3n, 'l3', 1n],
      [7n, 'l7', 1n],
    ])
  })

  test('a dry run shows documents before and after, and stores nothing', async () => {
    const bench = await filled(kind, 20)
    const previews = await bench.engine.migrations.dryRun(bench.release, bench.migration('count'))
    expect(previews).toHaveLength(10)
    expect(previews[0]).toMatchObject({
      before: '{"n":{"$i":"0"},"title":"a"}',
      after: '{"n":{"$i":"0"},"passes":{"$i":"1"},"title":"a"}',
      error: null,
    })
    const failing = await bench.engine.migrations.dryRun(bench.release, bench.migration('invalid'))
    expect(failing).toHaveLength(6)
    expect(failing[5]).toMatchObject({ after: null, error: { code: 'FUNCTION_FAILED' } })
    expect(await bench.record('count')).toBeNull()
    expect(await passed(bench, 0n)).toEqual(upTo(20))
  })
})

test('a migration that several requests start at one time passes each document once', async () => {
  const bench = await filled(STORES[0], 30)
  const started = await Promise.all(Array.from({ length: 5 }, () => act(bench, 'run', 'count')))
  expect(new Set(started.map(({ record }) => record!.id)).size).toBe(1)
  expect(started.map(({ isAllowed }) => isAllowed)).toEqual(Array(5).fill(true))
  await bench.until('count', 'complete')
  await bench.engine.migrations.whenIdle()
  expect(await passed(bench)).toEqual(upTo(30))
})

test('a paused migration continues where it was, a canceled one begins anew', async () => {
  const bench = await filled('sqlite', 50)
  let isOpen = false
  bench.start({ admits: () => isOpen })
  await act(bench, 'run', 'count')
  expect(await act(bench, 'pause', 'count')).toMatchObject({ isAllowed: true })
  expect(await act(bench, 'pause', 'count')).toMatchObject({ isAllowed: true })
  isOpen = true
  bench.engine.migrations.wake()
  await bench.engine.migrations.whenIdle()
  expect(await bench.record('count')).toMatchObject({ state: 'paused', processed: 0n })
  expect(await act(bench, 'run', 'count')).toMatchObject({ isAllowed: false })
  await act(bench, 'cancel', 'count')
  for (const action of ['pause', 'resume'] as const) {
    expect(await act(bench, action, 'count')).toMatchObject({
      isAllowed: false,
      record: { state: 'canceled' },
    })
  }
  expect(await act(bench, 'run', 'count')).toMatchObject({ isAllowed: true })
  await bench.until('count', 'complete')
  expect(await act(bench, 'cancel', 'count')).toMatchObject({ isAllowed: false })
  expect(await act(bench, 'run', 'count')).toMatchObject({ record: { state: 'complete' } })
  expect(await passed(bench)).toEqual(upTo(50))
  expect(await act(bench, 'pause', 'odd')).toEqual({ record: null, isAllowed: false })
})

test.each([
  ['invalid', 5n, 'FUNCTION_FAILED'],
  ['unique', 6n, 'UNIQUE_VIOLATION'],
  ['unknown', 0n, 'FUNCTION_FAILED'],
  ['nothing', 0n, 'FUNCTION_FAILED'],
  ['moves', 0n, 'FUNCTION_FAILED'],
  ['writes', 0n, 'FUNCTION_FAILED'],
  ['slow', 3n, 'LIMIT_EXCEEDED'],
  ['dangling', 4n, 'FUNCTION_FAILED'],
])('%s stops at its document, after those before it are stored', async (name, before, code) => {
  const bench = await filled('sqlite', 10)
  await act(bench, 'run', name)
  const record = await bench.until(name, 'blocked', 'complete')
  expect(record).toMatchObject({ state: 'blocked', processed: before, lastErrorCode: code })
  expect(await tasks(bench)).toHaveLength(10)
})

test('a batch that exceeds a bound of a call is repeated with half of its size', async () => {
  const bench = await filled('sqlite', 20)
  await act(bench, 'run', 'large')
  expect(await bench.until('large', 'complete', 'blocked')).toMatchObject({
    state: 'complete',
    processed: 20n,
  })
})

test('a patch removes the fields that are undefined in it', async () => {
  const bench = await filled('sqlite', 4)
  await act(bench, 'run', 'count')
  await bench.until('count', 'complete')
  await act(bench, 'run', 'removes')
  await bench.until('removes', 'complete')
  expect(await passed(bench, 0n)).toEqual(upTo(4))
})

test('calls of the Functions go on meanwhile, and no change is lost', async () => {
  const bench = await filled('sqlite', 300)
  await act(bench, 'run', 'count')
  const calls = upTo(100).map((n) => bench.call('touch', { n: BigInt(n * 3) }))
  await Promise.all(calls)
  await bench.until('count', 'complete')
  expect(await passed(bench)).toEqual(upTo(300))
})

test('a migration that has not ended uses the Release that it runs in', async () => {
  const stored = await openStored('sqlite')
  const bench = await openBench(stored)
  bench.start({ admits: () => false })
  const { migrations } = bench.engine
  const { releaseId } = bench.release
  const running = act(bench, 'run', 'count')
  await migrations.find(bench.migration('count'))
  expect(migrations.unfinishedOf(releaseId)).toBe(1)
  await running
  expect(migrations.unfinishedOf(releaseId)).toBe(1)
  const other = { releaseId: 'rel_01JZ0000000000000000000000' as ReleaseId }
  expect(await migrations.act('run', other, bench.migration('count'))).toMatchObject({
    isAllowed: false,
    record: { releaseId },
  })
  await act(bench, 'cancel', 'count')
  expect(migrations.unfinishedOf(releaseId)).toBe(0)
})

test('a migration cannot start in a retired Release, and is blocked without it', async () => {
  const stored = await openStored('sqlite')
  const bench = await openBench(stored)
  bench.start({ isRetired: () => true })
  await expect(act(bench, 'run', 'count')).rejects.toMatchObject({ code: 'RELEASE_RETIRED' })
  await bench.close()
  closers.pop()
  const next = await openBench(stored)
  const load = () => Promise.reject(new Fault('PRODUCT_RELEASE_RETIRED'))
  next.start({ load })
  await act(next, 'run', 'count')
  expect(await next.until('count', 'blocked')).toMatchObject({
    lastErrorCode: 'PRODUCT_RELEASE_RETIRED',
    lastDocumentId: null,
  })
})

test('a failure of the server is retried, and shown in its health', async () => {
  const bench = await openBench(await openStored('sqlite'))
  await bench.call('fill', { from: 0n, count: 5n, title: 'a' })
  let failures = 2
  const seen: string[] = []
  bench.start({
    load: async () => {
      if (failures > 0) {
        failures -= 1
        seen.push(bench.engine.migrations.health)
        throw new Fault('PRODUCT_UNAVAILABLE')
      }
      return bench.release
    },
  })
  await act(bench, 'run', 'count')
  expect(await bench.until('count', 'complete')).toMatchObject({ processed: 5n })
  expect(seen).toEqual(['healthy', 'degraded'])
  expect(bench.engine.migrations.health).toBe('healthy')
  const retries = bench.log.records().filter(({ event }) => event === 'migration.batch_failed')
  expect(retries).toHaveLength(1)
})

test('the same migration is complete in a later Release, and a changed one is not', async () => {
  const stored = await openStored('sqlite')
  const bench = await openBench(stored)
  bench.start()
  await act(bench, 'run', 'count')
  await bench.until('count', 'complete')
  await bench.close()
  closers.pop()
  const same = `{ count: { table: 'tasks', batch: 9, ${COUNT} } }`
  const changed = same.replace('+ 1n', '+ 2n')
  for (const [migrations, isComplete] of [
    [same, true],
    [changed, false],
  ] as const) {
    const next = await openBench(stored, undefined, migrations)
    const { digest } = next.migration('count')
    expect(await next.engine.migrations.isComplete('count', digest)).toBe(isComplete)
    expect(await next.engine.migrations.isComplete('count', null)).toBe(true)
    expect(await next.engine.migrations.isComplete('odd', null)).toBe(false)
    await next.close()
    closers.pop()
  }
})
