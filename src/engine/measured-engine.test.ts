/**
 * Goal: the metrics count what happened. Method: the whole engine over real documents and real
 * runners; every metric is compared before and after calls with known effects.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../testing/engines.ts'
import type { CounterName } from '../telemetry/metrics/definitions.ts'
import { openMetricsText } from '../telemetry/metrics/open-metrics.ts'

const SCHEMA = `tables({ notes: {
  fields: { text: { type: 'string' } },
  indexes: [{ name: 'byText', fields: ['text'], unique: true }],
} })`
const CODE = `
  list: query(async (ctx) => (await ctx.db.table('notes').scan().collect()).length),
  draw: query(() => Math.random()),
  add: mutation(async (ctx, { text }) => { await ctx.db.insert('notes', { text }); return null },
    { arguments: { text: { type: 'string' } } }),
  bump: mutation(async (ctx) => {
    const note = await ctx.db.table('notes').scan().first()
    await ctx.db.patch(note._id, { text: note.text + '!' })
    return null
  }),
  fails: mutation((ctx) => ctx.fail('NO'), { errors: { NO: 'conflict' } }),
  throws: query(() => { throw new Error('x') }),
  work: query(() => {
    let sum = 0
    for (let i = 0; i < 4e7; i++) sum += i % 7
    return sum
  }),
  outer: query(async (ctx) => await ctx.runQuery(ref('query', 'work'), {})),
  loop: query(() => { for (;;); }),
  hold: query(() => {
    const all = []
    for (let i = 0; i < 30; i++) {
      all.push(new Uint8Array(1e6).fill(1))
      for (let spin = 0; spin < 2e6; spin++) Math.sqrt(spin)
    }
    return all.length
  }),
  reach: action(async (ctx) => await ctx.runQuery(ref('query', 'list'), {})),`

let bench: EngineBench

beforeAll(async () => {
  // More than the Functions use on any machine, unless they loop.
  bench = await engineBench(CODE, { schema: SCHEMA, limits: { callCpuMillis: 60_000 } })
})
afterAll(() => bench.close())

const call = (...input: Parameters<EngineBench['call']>) => bench.call(...input)
const counters = ({ metrics } = bench) => metrics.collect().counters

/** Returns the increase of each counter during `action`. */
async function counted<N extends CounterName>(
  names: readonly N[],
  action: () => Promise<unknown>,
  measured = bench,
): Promise<{ [name in N]: number }> {
  const before = counters(measured)
  await action()
  const after = counters(measured)
  const grown = names.map((name) => [name, after[name] - before[name]])
  return Object.fromEntries(grown) as { [name in N]: number }
}

describe('the query cache', () => {
  const NAMES = ['queryCacheHits', 'queryCacheMisses', 'queriesSucceeded', 'functionRuns'] as const

  test('hits while a cached result is valid and misses after its invalidation', async () => {
    await call('add', { text: 'first' })
    // A result is cached from the second request on, so two lookups miss and run the Function.
    const first = await counted(NAMES, async () => {
      for (let i = 0; i < 5; i++) expect(await call('list')).toBe(1)
    })
    expect(first).toEqual({
      queryCacheHits: 3,
      queryCacheMisses: 2,
      queriesSucceeded: 5,
      functionRuns: 2,
    })
    await call('add', { text: 'second' })
    const again = await counted(NAMES, () => call('list'))
    expect(again).toMatchObject({ queryCacheHits: 0, queryCacheMisses: 1, functionRuns: 1 })
  })

  test('reports the hit rate since the start', async () => {
    const { counters, gauges } = bench.metrics.collect()
    const { queryCacheHits: hits, queryCacheMisses: misses } = counters
    expect(hits).toBeGreaterThan(0)
    expect(gauges.queryCacheHitPercent).toBe(Math.floor((100 * hits) / (hits + misses)))
    expect(gauges.queryCacheEntries).toBeGreaterThan(0)
  })

  test('caches no result that depends on a random number', async () => {
    const random = await counted(NAMES, async () => {
      for (let i = 0; i < 3; i++) await call('draw')
    })
    expect(random).toMatchObject({ queryCacheHits: 0, queryCacheMisses: 3, functionRuns: 3 })
  })
})

describe('the figures of Functions', () => {
  test('a call counts for its Function by its end, cached or executed', async () => {
    const { releaseId } = bench.release
    const figures = async () => {
      const { functions } = await bench.metrics.collectFunctions(releaseId)
      return new Map(functions.map((each) => [each.function, each]))
    }
    const before = await figures()
    await call('add', { text: 'third' })
    const { queryCacheHits } = await counted(['queryCacheHits'], async () => {
      for (let i = 0; i < 5; i++) await call('list')
    })
    expect(queryCacheHits).toBeGreaterThan(0)
    await expect(call('list', { more: 1n })).rejects.toMatchObject({ code: 'ARGUMENTS_INVALID' })
    await expect(call('add', { more: 1n })).rejects.toMatchObject({ code: 'ARGUMENTS_INVALID' })
    await expect(call('throws')).rejects.toMatchObject({ code: 'FUNCTION_FAILED' })
    await expect(call('fails')).rejects.toMatchObject({ code: 'APP_NO' })
    await call('reach')
    const after = await figures()
    const grown = (name: string) => {
      const [was, is] = [before.get(`f.${name}`), after.get(`f.${name}`)!]
      return [
        is.calls - (was?.calls ?? 0),
        is.cached - (was?.cached ?? 0),
        is.rejected - (was?.rejected ?? 0),
        is.failed - (was?.failed ?? 0),
      ]
    }
    expect(grown('add')).toEqual([2, 0, 1, 0])
    expect(grown('list')).toEqual([6, queryCacheHits, 1, 0])
    expect(grown('throws')).toEqual([1, 0, 0, 1])
    expect(grown('fails')).toEqual([1, 0, 1, 0])
    expect(grown('reach')).toEqual([1, 0, 0, 0])
    expect(after.get('f.reach')!.p50Micros).toBeGreaterThan(0)
    expect([...after.keys()].filter((name) => !bench.release.functions.has(name))).toEqual([])
  })
})

describe('calls', () => {
  test('calls are counted once each, by outcome', async () => {
    const names = [
      ...(['queriesFailed', 'queriesRefused', 'mutationsSucceeded', 'mutationsRefused'] as const),
      ...(['mutationsReplayed', 'actionsSucceeded', 'writeConflicts'] as const),
    ]
    const ended = await counted(names, async () => {
      await expect(call('throws')).rejects.toMatchObject({ code: 'FUNCTION_FAILED' })
      await expect(call('list', { more: 1n })).rejects.toMatchObject({ code: 'ARGUMENTS_INVALID' })
      await expect(call('fails')).rejects.toMatchObject({ code: 'APP_NO' })
      const operationId = 'opn_00000000000000000000000009'
      for (let i = 0; i < 2; i++) await call('add', { text: 'once' }, { operationId })
      await call('reach')
    })
    expect(ended).toEqual({
      queriesFailed: 1,
      queriesRefused: 1,
      mutationsSucceeded: 2,
      mutationsRefused: 1,
      mutationsReplayed: 1,
      actionsSucceeded: 1,
      writeConflicts: 0,
    })
  })

  test('calls are timed if a Function ran', async () => {
    const before = bench.metrics.collect().histograms
    await call('list')
    await call('list')
    await call('list')
    await call('work')
    const after = bench.metrics.collect().histograms
    const { queryDurationMicros: earlier } = before
    const { queryDurationMicros: later } = after
    // One or two of the lists ran, the others were cached.
    expect(later.count - earlier.count).toBeLessThan(4)
    expect(later.sumMicros - earlier.sumMicros).toBeGreaterThan(5_000)
  })
})

describe('commits', () => {
  const NAMES = ['commits', 'commitBatches', 'commitConflicts'] as const

  test('commits are counted with the durable transactions that they share', async () => {
    const many = await counted(NAMES, () =>
      Promise.all(Array.from({ length: 40 }, (_, i) => call('add', { text: `together ${i}` }))),
    )
    expect(many.commits).toBe(40)
    expect(many.commitBatches).toBeGreaterThan(0)
    expect(many.commitBatches).toBeLessThanOrEqual(40)
    expect(bench.metrics.collect().gauges.durableSequence).toBe(
      bench.engine.statistics().durableSequence,
    )
  })

  test('commits that conflict are counted, and become durable in the end', async () => {
    const { metrics } = bench
    const { count } = metrics.collect().histograms.commitDurationMicros
    const { commitConflicts: conflictsBefore } = counters()
    let calls = 0
    // How many of them conflict depends on the machine.
    const concurrent = await counted([...NAMES, 'functionRuns', 'mutationsSucceeded'], async () => {
      while (counters().commitConflicts === conflictsBefore) {
        calls += 10
        await Promise.all(Array.from({ length: 10 }, () => call('bump')))
      }
    })
    expect(concurrent).toMatchObject({ commits: calls, mutationsSucceeded: calls })
    // Each attempt with a conflict ran again.
    expect(concurrent.functionRuns).toBe(calls + concurrent.commitConflicts)
    const after = metrics.collect().histograms.commitDurationMicros
    expect(after.count - count).toBe(concurrent.commitBatches)
  })
})

describe('a Function', () => {
  test('a Function is charged for its CPU time and that of the Functions it called', async () => {
    const names = ['functionCpuMicros', 'functionRuns', 'runnerCpuMicros'] as const
    const used = await counted(names, () => call('outer'))
    expect(used.functionRuns).toBe(1)
    expect(used.functionCpuMicros).toBeGreaterThan(10_000)
    // The kernel measures the process independently.
    expect(used.runnerCpuMicros).toBeGreaterThan(used.functionCpuMicros * 0.5)
    expect(used.functionCpuMicros).toBeLessThan(used.runnerCpuMicros * 1.5)
  })

  test('a Function that exceeds its CPU limit is charged, and its runner counted', {
    tags: ['slow'],
  }, async () => {
    const limited = await engineBench(CODE, { schema: SCHEMA, limits: { callCpuMillis: 400 } })
    const started = () => counters(limited).runnersStarted!
    const startedBefore = started()
    const names = ['functionCpuMicros', 'runnersKilledForCpu'] as const
    const used = await counted(
      names,
      async () => {
        await expect(limited.call('loop')).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
        await limited.call('draw')
      },
      limited,
    )
    expect(used.runnersKilledForCpu).toBe(1)
    expect(used.functionCpuMicros).toBeGreaterThan(350_000)
    // The spare runner takes the place of the one that was killed, and another one is started.
    await expect.poll(started).toBeGreaterThan(startedBefore)
    await limited.close()
  })

  test('reports the growth of its runner', async () => {
    const grown = () => bench.metrics.collect().gauges.largestFunctionGrowthBytes!
    // On a busy machine the only sample of a call may be an early one.
    const growth = expect.poll(async () => {
      await call('hold')
      return grown()
    })
    await growth.toBeGreaterThan(5e6)
    expect(grown()).toBeLessThan(128e6)
  })

  test('a Function has a usage record of its own when the engine closes', {
    tags: ['slow'],
  }, async () => {
    const other = await engineBench(CODE, { schema: SCHEMA })
    await other.call('work')
    await other.call('work')
    await other.call('list')
    await other.close()
    const records = other.log.records().filter(({ event }) => event === 'function.usage')
    expect(records.map((record) => [record.function, record.runs])).toEqual([
      ['f.work', 2],
      ['f.list', 1],
    ])
    const [work] = records
    expect(work).toMatchObject({ level: 'info', releaseId: other.release.releaseId })
    expect(work!.cpuMicros).toBeGreaterThan(10_000)
    expect(work!.durationMicros).toBeGreaterThanOrEqual(work!.cpuMicros as number)
  })
})

test('no metric contains an argument, a result or a stored value', async () => {
  const canary = 'canary-7f3a9c51'
  await call('add', { text: canary })
  await call('list')
  expect(openMetricsText(bench.metrics.collect())).not.toContain(canary)
  expect(bench.log.text()).not.toContain(canary)
})
