/** Functions that call Functions in one transaction, in real runners. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'
import type { RunnerOutcome } from '../calls/outcomes.ts'
import type { Invocation } from './invocation.ts'
import { conclude } from './run-outcomes.ts'

const SCHEMA = `tables({ notes: { fields: { n: { type: 'int64' } }, indexes: [] } })`
const NUMBER = `{ arguments: { n: { type: 'int64' } } }`

let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(
    `
    add: mutation((ctx, { n }) => ctx.db.insert('notes', { n }), ${NUMBER}),
    all: query(async (ctx) => (await ctx.db.table('notes').scan().collect()).map((it) => it.n)),
    clear: mutation(async (ctx) => {
      for await (const it of ctx.db.table('notes').scan()) await ctx.db.delete(it._id)
    }),
    fail: mutation(async (ctx, { n }) => {
      await ctx.db.insert('notes', { n })
      return ctx.fail('FULL')
    }, { ...${NUMBER}, errors: { FULL: 'conflict' } }),
    both: mutation(async (ctx) => {
      await ctx.db.insert('notes', { n: 1n })
      await ctx.runMutation(ref('mutation', 'add'), { n: 2n })
      return [await ctx.runQuery(ref('query', 'all')), ctx.now() === ctx.now()]
    }),
    undone: mutation(async (ctx) => {
      const id = await ctx.db.insert('notes', { n: 1n })
      let caught = null
      try {
        await ctx.runMutation(ref('mutation', 'change'), { id })
      } catch (error) {
        caught = [error.name, error.code, error.message]
      }
      await ctx.runMutation(ref('mutation', 'add'), { n: 4n })
      return [caught, await ctx.runQuery(ref('query', 'all'))]
    }),
    change: mutation(async (ctx, { id }) => {
      await ctx.db.patch(id, { n: 2n })
      await ctx.runMutation(ref('mutation', 'add'), { n: 3n })
      await ctx.runMutation(ref('mutation', 'fail'), { n: 5n })
    }, { arguments: { id: { type: 'id', table: 'notes' } } }),
    bubbles: mutation((ctx) => ctx.runMutation(ref('mutation', 'fail'), { n: 9n })),
    invented: mutation(() => {
      throw Object.assign(new Error('FULL'), { name: 'FunctionError', code: 'FULL' })
    }),
    swapped: query(async (ctx) => await ctx.runQuery(ref('query', 'add'))),
    unknown: query(async (ctx) => await ctx.runQuery(ref('query', 'nothing'))),
    wrong: query(async (ctx) => await ctx.runQuery(ref('query', 'typed'), { n: 'x' })),
    typed: query((ctx, { n }) => n, { ...${NUMBER}, returns: { type: 'string' } }),
    wrongResult: query(async (ctx) => await ctx.runQuery(ref('query', 'typed'), { n: 1n })),
    writes: query(async (ctx) => await ctx.runMutation(ref('mutation', 'add'), { n: 1n })),
    acts: mutation(async (ctx) => await ctx.runAction(ref('action', 'idle'))),
    idle: action(() => null),
    itself: query(async (ctx) => await ctx.runQuery({ [Symbol.for('svc.function')]: {} })),
    forgets: mutation(async (ctx) => { ctx.runMutation(ref('mutation', 'add'), { n: 7n }) }),
    leaves: mutation(async (ctx) => {
      try { await ctx.runMutation(ref('mutation', 'forgets')) } catch {}
      return await ctx.runQuery(ref('query', 'all'))
    }),
    reads: query(async (ctx) => {
      for (let i = 0; i < 1000; i++) await ctx.db.table('notes').scan().first()
    }),
    one: query((ctx) => ctx.db.table('notes').scan().first()),
    forgetsReads: query(async (ctx) => {
      ctx.runQuery(ref('query', 'reads'))
      await ctx.runQuery(ref('query', 'one'))
    }),
    cut: query(async (ctx) => {
      try { await ctx.runQuery(ref('query', 'forgetsReads')) } catch {}
      for (let i = 0; i < 100; i++) await ctx.db.table('notes').scan().first()
      return (await ctx.usage()).documentsRead.used
    }),
    deeper: query((ctx, { n }) => n === 0n ? 'bottom'
      : ctx.runQuery(ref('query', 'deeper'), { n: n - 1n }), ${NUMBER}),
    spins: query(() => { for (;;); }),
    burnsOften: query(async (ctx) => {
      for (let i = 0; i < 200; i++) await ctx.runQuery(ref('query', 'burns'))
    }),
    burns: query(() => { for (const end = 4e7, at = { i: 0 }; at.i < end; at.i++); return 0 }),
    asksSpin: query(async (ctx) => {
      try { return await ctx.runQuery(ref('query', 'spins')) } catch { return 'caught' }
    }),
    random: query(() => Math.random()),
    draws: query((ctx) => ctx.runQuery(ref('query', 'random'))),
    usage: mutation(async (ctx) => {
      await ctx.runMutation(ref('mutation', 'add'), { n: 1n })
      await ctx.runQuery(ref('query', 'all'))
      const { documentsRead, documentsWritten, calls } = await ctx.usage()
      return [documentsRead, documentsWritten, calls].map(({ used, limit }) => [used, limit])
    }),`,
    { schema: SCHEMA },
  )
})
afterAll(() => bench.close())

async function failureOf(name: string): Promise<{ code: string; detail: string }> {
  try {
    await bench.call(name)
  } catch (error) {
    return error as { code: string; detail: string }
  }
  throw new Error(`${name} did not fail`)
}

describe('a Function that calls another', () => {
  test('shares its transaction with it, in the order of the calls', async () => {
    await bench.call('clear')
    expect(await bench.call('both')).toEqual([[1n, 2n], true])
    expect(await bench.call('all')).toEqual([1n, 2n])
  })

  test('catches the declared code of a failed one, whose writes are undone', async () => {
    await bench.call('clear')
    const result = await bench.call('undone')
    expect(result).toEqual([
      ['FunctionError', 'FULL', 'f.change failed with FULL'],
      [1n, 4n],
    ])
    expect(await bench.call('all')).toEqual([1n, 4n])
  })

  test('fails with the declared code of a called Function that it does not catch', async () => {
    await bench.call('clear')
    await expect(bench.call('bubbles')).rejects.toMatchObject({ code: 'APP_FULL', status: 409 })
    expect(await bench.call('all')).toEqual([])
  })

  test('a Function cannot fail with the code of a Function that it did not call', async () => {
    expect(await failureOf('invented')).toMatchObject({ code: 'FUNCTION_FAILED' })
    // A compromised runner may report the code.
    const definition = bench.release.functions.get('f.bubbles')!
    const usage = {
      usedClock: false,
      usedRandom: false,
      usedIdentity: false,
      cpuMicros: 0,
      logs: [],
    }
    const outcome = { kind: 'failed', code: 'FULL', ...usage } as RunnerOutcome
    const concludeWith = (failures: Map<string, 'conflict'>) => () =>
      conclude({ definition } as Invocation, outcome, failures, null)
    expect(concludeWith(new Map())).toThrow(expect.objectContaining({ code: 'FUNCTION_FAILED' }))
    const full = expect.objectContaining({ code: 'APP_FULL' })
    expect(concludeWith(new Map([['FULL', 'conflict']]))).toThrow(full)
  })

  const mistakes = [
    ['swapped', 'ctx.runQuery: "f.add" is no query; call it with ctx.runMutation'],
    ['unknown', 'there is no Function "f.nothing" in this Release'],
    ['wrong', 'arguments of f.typed: arguments.n must be an int64'],
    ['wrongResult', 'result of f.typed: result must be'],
    ['writes', 'ctx.runMutation in a Query: make the Function a mutation'],
    ['acts', 'ctx.runAction: only an Action calls an Action'],
    ['itself', 'ctx.runQuery is given the Function itself: pass its reference'],
    ['forgets', 'ctx.runMutation was not awaited: write "await" in front of it'],
  ]
  test.each(mistakes)('fails with the mistake and its location: %s', async (name, message) => {
    const failure = await failureOf(name!)
    expect(failure.code).toBe('FUNCTION_FAILED')
    expect(failure.detail).toContain(message)
    const record = bench.log.records().findLast(({ event }) => event === 'function.failed')
    expect(String(record?.trace)).toMatch(/release\.js:\d+:\d+/)
  })

  test('undoes the writes of a called Function that did not await its own call', async () => {
    await bench.call('clear')
    expect(await bench.call('leaves')).toEqual([])
    expect(await bench.call('all')).toEqual([])
  })

  test('ends the operations that a called Function did not await', async () => {
    await bench.call('add', { n: 1n })
    expect(await bench.call('cut')).toBeLessThan(150)
    await bench.call('clear')
  })

  test('nests up to the bound', async () => {
    expect(await bench.call('deeper', { n: 8n })).toBe('bottom')
    await expect(bench.call('deeper', { n: 9n })).rejects.toMatchObject({
      detail: expect.stringContaining('nest over 8 levels'),
    })
  })

  test('a Function is charged for the CPU time of the Functions that it calls', {
    tags: ['slow'],
  }, async () => {
    await expect(bench.call('asksSpin')).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
    await expect(bench.call('burnsOften')).rejects.toMatchObject({ detail: 'cpu: at most 1000 ms' })
    expect(await bench.call('all')).toEqual([])
  })

  test('a Function has no cached result if a called Function drew a random number', async () => {
    const results = new Set<unknown>()
    for (let i = 0; i < 4; i++) results.add(await bench.call('draws'))
    expect(results.size).toBe(4)
  })

  test('reads the usage of the bounds of its transaction', async () => {
    await bench.call('clear')
    const expected = [
      [1, 32_768],
      [1, 8_192],
      [2, 4_096],
    ]
    expect(await bench.call('usage')).toEqual(expected)
  })
})
