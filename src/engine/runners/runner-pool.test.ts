/** Calls in real runner processes: what they return, how they end, and where they run. */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DOCUMENT, heldHost, oneDocument, poolBench } from '../../../testing/runners.ts'
import { type Fault, isFault } from '../../errors/fault.ts'
import { realSystem } from '../../system/system.ts'
import { parseDescription } from '../../wire/files/manifest.ts'
import { OperationError } from '../calls/operation-error.ts'
import type { RunnerHost } from '../calls/outcomes.ts'
import type { ReleaseCode } from '../releases/executable-release.ts'

// Code that eats memory reaches its bound in a tenth of the CPU time that loading may take.
const bench = poolBench({ limits: { loadCpuMillis: 1_000, runnerGrowthBytes: 64 * 1024 * 1024 } })
const { pool, release, call } = bench

beforeAll(async () => {
  await pool.start({ sandbox: 'preferred' })
})
afterAll(() => pool.close())

describe('a call', () => {
  const code = release(`
    one: query(async (ctx) => ctx.db.get('notes_01ARZ3NDEKTSV4RRFFQ69G5FAV')),
    add: mutation(async (ctx, input) => ctx.db.insert('notes', input)),
    declared: query((ctx) => ctx.fail('GONE'), { errors: { GONE: 'not_found' } }),
    said: query((ctx) => {
      ctx.log.warn('low', { left: 2n })
      console.log('a', 1)
      return ctx.now()
    }),
    caught: mutation(async (ctx) => {
      try { await ctx.db.insert('notes', {}) } catch (error) { return [error.name, error.message] }
    }),
    uncaught: mutation(async (ctx) => {
      await ctx.db.insert('notes', {})
    }),`)

  test('returns its result and what it used', async () => {
    const outcome = await pool.invoke(code, call('one'), oneDocument)
    expect(outcome).toMatchObject({ kind: 'returned', usedClock: false, usedRandom: false })
    expect(outcome).toMatchObject({ result: { _revision: { $i: '3' } } })
  })

  test('sends what it writes as stored JSON', async () => {
    const seen: unknown[] = []
    const operation: RunnerHost['operation'] = (op) => {
      seen.push(op)
      return '"notes_01ARZ3NDEKTSV4RRFFQ69G5FAV"'
    }
    const argumentsText = '{"n":{"$i":"7"},"b":{"$b":"AQI"},"t":{"$t":"5"},"$$x":[1.5,null]}'
    await pool.invoke(code, call('add', { kind: 'mutation', argumentsText }), { operation })
    const fields = { n: { $i: '7' }, b: { $b: 'AQI' }, t: { $i: '5' }, $$x: [1.5, null] }
    expect(seen).toEqual([['insert', 'notes', fields]])
  })

  test('a call may end with an error that it declares', async () => {
    const outcome = await pool.invoke(code, call('declared'), oneDocument)
    expect(outcome).toMatchObject({ kind: 'failed', code: 'GONE' })
  })

  test('carries its log lines', async () => {
    expect(await pool.invoke(code, call('said'), oneDocument)).toMatchObject({
      result: { $i: '1800000000000000' },
      usedClock: true,
      logs: [
        { level: 'warn', message: 'low', data: '{"left":"2n"}' },
        { level: 'info', message: 'a', data: '1' },
      ],
    })
  })

  test('sees a rejection where it asked, with that place in the stack', async () => {
    const host: RunnerHost = {
      operation: async () => {
        throw new OperationError('UniqueViolation', 'taken')
      },
    }
    const caught = await pool.invoke(code, call('caught', { kind: 'mutation' }), host)
    expect(caught).toMatchObject({ kind: 'returned', result: ['UniqueViolation', 'taken'] })
    const uncaught = await pool.invoke(code, call('uncaught', { kind: 'mutation' }), host)
    expect(uncaught).toMatchObject({ kind: 'threw', error: { name: 'UniqueViolation' } })
    const lines = code.source.split('\n')
    const row = lines.indexOf("      await ctx.db.insert('notes', {})") + 1
    expect(uncaught).toMatchObject({ error: { stack: expect.stringContaining(`.js:${row}:`) } })
  })

  test('a call is over when its host fails otherwise, and the runner continues', async () => {
    const host: RunnerHost = {
      operation: async () => {
        throw new RangeError('of the host')
      },
    }
    await expect(pool.invoke(code, call('one'), host)).rejects.toThrow('of the host')
    expect(await pool.invoke(code, call('one'), oneDocument)).toMatchObject({ kind: 'returned' })
  })

  test('ends at its deadline while it waits', async () => {
    const host: RunnerHost = { operation: () => new Promise(() => {}) }
    const started = performance.now()
    const outcome = await pool.invoke(code, call('one', { millis: 300 }), host)
    expect(outcome).toEqual({ kind: 'deadline' })
    expect(performance.now() - started).toBeLessThan(60_000)
    expect(await pool.invoke(code, call('one'), oneDocument)).toMatchObject({ kind: 'returned' })
  })
})

describe('determinism', () => {
  const code = release(`
    draw: query(async (ctx) => {
      const before = [Math.random(), Date.now(), new Date().toISOString(), ctx.now()]
      await ctx.db.get('x')
      const bytes = crypto.getRandomValues(new Uint8Array(16))
      return [...before, Math.random(), bytes, crypto.randomUUID(), Date.now(), String(new Date())]
    }),`)

  test('the same call draws the same in another process, and another seed does not', async () => {
    const run = async (seedByte: number) => {
      const outcome = await pool.invoke(code, call('draw', { seedByte }), oneDocument)
      return outcome.kind === 'returned' ? JSON.stringify(outcome.result) : outcome.kind
    }
    const first = await run(1)
    expect(await run(1)).toBe(first)
    pool.forget(code.releaseId)
    expect(await run(1)).toBe(first)
    expect(await run(2)).not.toBe(first)
    expect(first).toContain('"2027-01-15T08:00:00.000Z"')
  })

  test('calls in flight together do not draw from each other', async () => {
    const draws = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        pool.invoke(code, call('draw', { seedByte: i % 4 }), oneDocument),
      ),
    )
    const texts = draws.map((it) => it.kind === 'returned' && JSON.stringify(it.result))
    expect(new Set(texts).size).toBe(4)
  })
})

describe('a description', () => {
  test('lists Functions and tables by name', { tags: ['slow'] }, async () => {
    const schema = `tables({
      b: { fields: { x: { type: 'any' } }, indexes: [
        { name: 'z', fields: ['x'], unique: true }, { name: 'a', fields: ['x'], unique: false },
      ] },
      a: { fields: {}, indexes: [] },
    })`
    const code = release('two: mutation(() => 1), one: query(() => 1), other: 5,', schema)
    const { functions, tables } = parseDescription(await pool.describe(code))
    expect(functions.map((it) => [it.name, it.kind])).toEqual([
      ['f.one', 'query'],
      ['f.two', 'mutation'],
    ])
    expect(tables.map((it) => [it.name, it.indexes.map((index) => index.name)])).toEqual([
      ['a', []],
      ['b', ['a', 'z']],
    ])
  })

  test.each([
    ['throws', "throw new Error('at load')", 'FUNCTION_FAILED', 'Error: at load'],
    ['is no JavaScript', 'this is not', 'FUNCTION_FAILED', 'SyntaxError'],
    ['defines nothing', 'const a = 1', 'FUNCTION_FAILED', 'defines no Workspace'],
    ['loops', 'for (;;);', 'LIMIT_EXCEEDED', 'cpu'],
    [
      'eats memory',
      'const a = []; for (;;) a.push(new Uint8Array(8e6).fill(1))',
      'LIMIT_EXCEEDED',
      'memory',
    ],
  ] as const)(
    'fails with its reason where the code %s',
    { tags: ['slow'] },
    async (_, source, faultCode, detail) => {
      const code = { releaseId: realSystem().ids.make('rel'), source, sourceMap: null }
      const error = await pool.describe(code).catch((reason: unknown) => reason)
      expect(isFault(error, faultCode)).toBe(true)
      expect((error as Fault).detail).toContain(detail)
    },
  )

  test('a call of code that does not load says why', async () => {
    const code = release('one: query(() => { }), two: (() => { throw new Error("no") })(),')
    const outcome = await pool.invoke(code, call('one'), oneDocument)
    expect(outcome).toMatchObject({ kind: 'threw', error: { message: 'no' } })
  })
})

/** Only a hang misses it. */
const WAIT = { timeout: 60_000 }

describe('processes', () => {
  const counting = () => {
    const code = release('count: query(() => ++count),')
    return { ...code, source: `let count = 0;\n${code.source}` }
  }

  test('two Releases share no process', async () => {
    const [a, b] = [counting(), counting()]
    for (const code of [a, b]) {
      expect(await pool.invoke(code, call('count'), oneDocument)).toMatchObject({ result: 1 })
    }
    expect(await pool.invoke(a, call('count'), oneDocument)).toMatchObject({ result: 2 })
  })

  test('two Releases that start at once share no process either', async () => {
    const releases = ['a', 'b', 'c'].map((name) => release(`name: query(() => '${name}'),`))
    const outcomes = await Promise.all(
      releases.map((code) => pool.invoke(code, call('name'), oneDocument)),
    )
    expect(outcomes).toMatchObject(['a', 'b', 'c'].map((result) => ({ result })))
    for (const { releaseId } of releases) pool.forget(releaseId)
  })

  test('a forgotten Release starts afresh', async () => {
    const code = counting()
    await pool.invoke(code, call('count'), oneDocument)
    pool.forget(code.releaseId)
    expect(await pool.invoke(code, call('count'), oneDocument)).toMatchObject({ result: 1 })
  })

  test('one that a call spoilt for good ends, and the next call has another', async () => {
    const { source, ...rest } = counting()
    const spoils = `spoils: query(() => { Object.freeze(Array.prototype); return 1 }),`
    const code = { ...rest, source: source.replace('count: query', `${spoils} count: query`) }
    expect(await pool.invoke(code, call('count'), oneDocument)).toMatchObject({ result: 1 })
    const spoilt = await pool.invoke(code, call('spoils'), oneDocument)
    expect(spoilt).toMatchObject({ kind: 'broken' })
    expect(bench.log.text()).toContain('of Array or its prototype was changed irreversibly')
    expect(await pool.invoke(code, call('count'), oneDocument)).toMatchObject({ result: 1 })
    pool.forget(code.releaseId)
  })

  test('the processes of unused Releases end, except those of the last used ones', {
    tags: ['slow'],
  }, async () => {
    const idle = poolBench({ limits: { idleMillis: 200 } })
    try {
      await idle.pool.start({ sandbox: 'preferred' })
      const releases = [counting(), counting(), counting()] as const
      const count = (code: ReleaseCode) => idle.pool.invoke(code, call('count'), oneDocument)
      for (const code of releases) expect(await count(code)).toMatchObject({ result: 1 })
      await expect.poll(() => idle.pool.statistics().releases).toBe(2)
      const counts = [await count(releases[1]), await count(releases[2]), await count(releases[0])]
      expect(counts).toMatchObject([{ result: 2 }, { result: 2 }, { result: 1 }])
    } finally {
      await idle.pool.close()
    }
  })

  test('the processes of a Release end once it is neither served nor called', {
    tags: ['slow'],
  }, async () => {
    const short = { uncalledMillis: 100, replacedMillis: 100, calledMillis: 600_000 }
    const bench = poolBench({ limits: short })
    try {
      await bench.pool.start({ sandbox: 'preferred' })
      const [served, replaced, called] = [counting(), counting(), counting()]
      const count = (code: ReleaseCode) => bench.pool.invoke(code, call('count'), oneDocument)
      bench.pool.markServed(new Set([served.releaseId, replaced.releaseId]))
      for (const code of [served, replaced, called]) await count(code)
      await bench.pool.describe(counting())
      bench.pool.markServed(new Set([served.releaseId]))
      await expect.poll(() => bench.pool.statistics().releases, WAIT).toBe(2)
      expect(await count(served)).toMatchObject({ result: 2 })
      expect(await count(called)).toMatchObject({ result: 2 })
      expect(await count(replaced)).toMatchObject({ result: 1 })
    } finally {
      await bench.pool.close()
    }
  })

  test('a Release that is replaced keeps its process until its calls have ended', {
    tags: ['slow'],
  }, async () => {
    const bench = poolBench({ limits: { replacedMillis: 0 } })
    try {
      await bench.pool.start({ sandbox: 'preferred' })
      const read = release("one: query(async (ctx) => { await ctx.db.get('x'); return 1 }),")
      const [served, replaced] = [counting(), read]
      const { host, received, letGo } = heldHost(() => DOCUMENT)
      bench.pool.markServed(new Set([replaced.releaseId]))
      const outcome = bench.pool.invoke(replaced, call('one'), host)
      await received(1)
      bench.pool.markServed(new Set([served.releaseId]))
      await bench.pool.describe(served)
      letGo()
      expect(await outcome).toMatchObject({ kind: 'returned' })
      const isWarm = () => bench.pool.isWarm(replaced.releaseId, ['transactions'])
      await expect.poll(isWarm, WAIT).toBe(false)
    } finally {
      await bench.pool.close()
    }
  })

  test('one more starts where a call holds up others, and idle Releases make room', {
    tags: ['slow'],
  }, async () => {
    // How much CPU time the calls need depends on the machine.
    const limits = { runnersOfAll: 3, callCpuMillis: 60_000 }
    const small = poolBench({ size: 2, limits })
    try {
      await small.pool.start({ sandbox: 'preferred' })
      const code = release('spin: query(() => { let n = 0; while (n < 3e8) n++; return n }),')
      const spin = () => small.pool.invoke(code, call('spin'), oneDocument)
      const spun = Promise.all([spin(), spin(), spin(), spin()])
      await expect.poll(() => small.pool.statistics().runners, { interval: 5 }).toBe(2)
      for (const outcome of await spun) expect(outcome).toMatchObject({ kind: 'returned' })
      for (let i = 0; i < 3; i++) await small.pool.warm(counting())
      expect(small.pool.statistics()).toMatchObject({ runners: 3, inFlight: 0 })
    } finally {
      await small.pool.close()
    }
  })

  test('a runner that drains delays no other call, however long its last call takes', {
    tags: ['slow'],
  }, async () => {
    const limits = { keptGrowthBytes: 20 * 1024 * 1024, callsPerRunner: 4 }
    const grows = poolBench({ size: 2, limits })
    try {
      await grows.pool.start({ sandbox: 'preferred' })
      const code = release(`
        ...(() => {
          const kept = []
          return {
            grow: query(() => kept.push(new Uint8Array(40e6).fill(1))),
            first: query(async (ctx) => { kept.push(null); await ctx.db.get('x') }),
            one: query(async (ctx) => { await ctx.db.get('x'); return kept.length }),
          }
        })(),
        loop: query(() => { for (;;); }),`)
      const invoke = (name: string, host = oneDocument) => grows.pool.invoke(code, call(name), host)
      // One more than a runner takes, so that every ready one has to take some.
      const several = (name: string) =>
        Promise.all(Array.from({ length: 5 }, () => invoke(name))).then((outcomes) =>
          outcomes.map((outcome) => outcome.kind === 'returned' && outcome.result),
        )
      const held = [heldHost(() => DOCUMENT), heldHost(() => DOCUMENT)] as const
      const first = invoke('first', held[0].host)
      await held[0].received(1)
      expect(await invoke('grow')).toMatchObject({ kind: 'returned' })
      while ((await several('one')).some((kept) => kept !== 0));
      const second = invoke('one', held[1].host)
      await held[1].received(1)
      expect(await several('one')).toEqual([0, 0, 0, 0, 0])
      expect(await invoke('loop')).toMatchObject({ kind: 'limit', limit: 'cpu' })
      expect(await second).toEqual({ kind: 'lost' })
      expect(await invoke('one')).toMatchObject({ kind: 'returned' })
      held[0].letGo()
      expect(await first).toMatchObject({ kind: 'returned' })
    } finally {
      await grows.pool.close()
    }
  })

  test('one that grew leaves once, also when its last call leaves parts in flight', {
    tags: ['slow'],
  }, async () => {
    const limits = { keptGrowthBytes: 20 * 1024 * 1024, callsPerRunner: 1 }
    const grows = poolBench({ size: 4, limits })
    try {
      await grows.pool.start({ sandbox: 'preferred' })
      const code = release(`
        one: query(async (ctx) => ctx.db.get('x')),
        grow: query(async (ctx) => {
          const kept = new Uint8Array(45e6).fill(1)
          await ctx.db.get('x')
          await ctx.runQuery(ref('query', 'one'))
          return kept.length
        }),`)
      const runners = () => grows.pool.statistics().runners
      const three = Array.from({ length: 3 }, () => heldHost(() => DOCUMENT))
      const calls = three.map(({ host }) => grows.pool.invoke(code, call('one'), host))
      await expect.poll(runners).toBe(3)
      for (const { received } of three) await received(1)
      for (const { letGo } of three) letGo()
      await Promise.all(calls)
      const never = new Promise<never>(() => {})
      const signal = { aborted: false }
      // Its caller leaves while the part waits for the reply to an operation.
      const part: RunnerHost = {
        operation: () => {
          signal.aborted = true
          return never
        },
      }
      const host: RunnerHost = {
        operation: ([type], invokePart) => {
          if (type !== 'run') return delay(200).then(() => DOCUMENT)
          void invokePart(call('one'), part)
          return never
        },
      }
      const cut = await grows.pool.invoke(code, { ...call('grow'), signal }, host)
      expect(cut).toEqual({ kind: 'cancelled' })
      // The other two take what comes: nothing has to be started, and nothing was left behind.
      await expect.poll(runners).toBe(2)
      const two = Array.from({ length: 2 }, () => heldHost(() => DOCUMENT))
      const held = two.map((one) => grows.pool.invoke(code, call('one'), one.host))
      for (const { received } of two) await received(1)
      expect(runners()).toBe(2)
      for (const { letGo } of two) letGo()
      await Promise.all(held)
    } finally {
      await grows.pool.close()
    }
  })

  test('calls beyond what one process takes wait, and all are answered', async () => {
    const code = release("one: query(async (ctx) => { await ctx.db.get('x'); return 1 }),")
    const outcomes = await Promise.all(
      Array.from({ length: 500 }, () => pool.invoke(code, call('one'), oneDocument)),
    )
    expect(outcomes.every((outcome) => outcome.kind === 'returned')).toBe(true)
  })

  test('a process that cannot start fails the call instead of holding it', async () => {
    const broken = poolBench({ command: ['/bin/false'] })
    const outcome = broken.pool.invoke(release(''), call('one'), oneDocument)
    await expect(outcome).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await broken.pool.close()
  })

  test('code that does not load is tried again after a pause that grows', {
    tags: ['slow'],
  }, async () => {
    const lean = poolBench({ limits: { restartMillis: 300, restartMillisMax: 600 } })
    try {
      await lean.pool.start({ sandbox: 'preferred' })
      const code = { ...release(''), source: 'throw new Error("it does not load")' }
      const ended = () => lean.metrics.collect().counters.runnersStopped
      /** The times of the calls that caused a start; other calls fail at once. */
      const tries: number[] = []
      while (tries.length < 3) {
        const [before, at] = [ended(), performance.now()]
        const outcome = await lean.pool.invoke(code, call('one'), oneDocument)
        expect(outcome).toMatchObject({ kind: 'threw', error: { message: 'it does not load' } })
        if (ended() > before) tries.push(at)
        await delay(20)
      }
      expect(tries[1]! - tries[0]!).toBeGreaterThan(300)
      expect(tries[2]! - tries[1]!).toBeGreaterThan(600)
    } finally {
      await lean.pool.close()
    }
  })

  test('Actions have processes of their own', async () => {
    const code = release(`
      act: action(() => typeof setTimeout),
      ask: query(() => typeof setTimeout),`)
    const before = pool.statistics().runners
    expect(await pool.invoke(code, call('ask'), oneDocument)).toMatchObject({ result: 'undefined' })
    const act = await pool.invoke(code, call('act', { kind: 'action' }), oneDocument)
    expect(act).toMatchObject({ result: 'function' })
    expect(pool.statistics().runners).toBe(before + 2)
    expect(pool.isWarm(code.releaseId, ['transactions', 'actions'])).toBe(true)
    pool.forget(code.releaseId)
    expect(pool.statistics().runners).toBe(before)
  })
})
