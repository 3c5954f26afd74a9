/**
 * Goal: no call exceeds its limits, and none harms another. Method: real runner processes; each
 * hostile call runs beside innocent ones of the same Release, which the test repeats when they are
 * lost, as the engine does.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { oneDocument, poolBench } from '../../../testing/runners.ts'
import type { RunnerCall, RunnerOutcome } from '../calls/outcomes.ts'
import type { ReleaseCode } from '../releases/executable-release.ts'

/** A call of this pool may make fewer operations than it has CPU time for. */
const bench = poolBench({ limits: { operations: 2_000 } })
const { pool, release, call } = bench
/** Calls that overuse the CPU, which a quarter of the usual bound shows as well. */
const brief = poolBench({ limits: { callCpuMillis: 250 } })
/** Calls that overuse memory, which takes more CPU time than a call has on a slow machine. */
const patient = poolBench({ limits: { callCpuMillis: 60_000 } })

beforeAll(async () => {
  await pool.start({ sandbox: 'preferred' })
  await brief.pool.start({ sandbox: 'preferred' })
  await patient.pool.start({ sandbox: 'preferred' })
})
afterAll(async () => {
  await pool.close()
  await brief.pool.close()
  await patient.pool.close()
})

/** Repeats a call while it is lost. */
async function outcomeOf(
  code: ReleaseCode,
  makeCall: () => RunnerCall,
  { pool } = bench,
): Promise<RunnerOutcome> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const outcome = await pool.invoke(code, makeCall(), oneDocument)
    if (outcome.kind !== 'lost') return outcome
  }
  return { kind: 'lost' }
}

describe('an overuse', () => {
  const code = release(`
    one: query(async (ctx) => {
      for (let i = 0; i < 50; i++) await ctx.db.get('x')
      return 'done'
    }),
    loop: query(() => { for (;;); }),
    microtasks: query(async () => { for (;;) await null }),
    nested: query(() => { const again = () => Promise.resolve().then(again); return again() }),
    operations: query(async (ctx) => { for (;;) await ctx.db.get('x') }),
    read: query(async (ctx) => {
      const all = []
      for (let i = 0; i < 16; i++) all.push(await ctx.db.get('x'))
      return all.length
    }),
    regex: query(() => /^(a+)+$/.test('a'.repeat(40) + 'b')),
    sort: query(() => [1, 2].sort(() => { for (;;); })),
    proxy: query(() => new Proxy({}, { ownKeys() { for (;;); } })),
    thenable: query(() => ({ then() { for (;;); } })),
    caught: query(() => { for (;;) try { for (;;); } catch {} finally { for (;;); } }),
    objects: query(() => { const all = []; for (;;) all.push({ all }) }),
    typed: query(() => { const all = []; for (;;) all.push(new Uint8Array(1e6).fill(1)) }),
    strings: query(() => {
      const all = []
      for (let i = 0; ; i++) { all.push('x'.repeat(1e6) + i); all.at(-1).charCodeAt(5) }
    }),
    map: query(() => { const all = new Map(); for (let i = 0; ; i++) all.set(i, [i]) }),
    huge: query(() => new Array(2 ** 31).fill(0)),
    result: query(() => 'x'.repeat(9e6)),
    recursion: query(() => { const down = () => down() + 1; return down() }),`)

  const CASES = [
    ['loop', 'cpu'],
    ['microtasks', 'cpu'],
    ['nested', 'memory'],
    ['sort', 'cpu'],
    ['proxy', 'cpu'],
    ['thenable', 'cpu'],
    ['caught', 'cpu'],
    ['objects', 'memory'],
    ['typed', 'memory'],
    ['strings', 'memory'],
    ['map', 'memory'],
    ['huge', 'memory'],
    ['result', 'result'],
  ] as const

  test.each(CASES)(
    'the overuse of %s ends with the limit %s, and innocent calls beside it succeed',
    { tags: ['slow'] },
    async (name, limit) => {
      const used = limit === 'cpu' ? brief : limit === 'memory' ? patient : bench
      const innocents = Array.from({ length: 5 }, () => outcomeOf(code, () => call('one'), used))
      const guilty = await used.pool.invoke(code, call(name, { millis: 60_000 }), oneDocument)
      expect(guilty).toMatchObject({ kind: 'limit', limit })
      for (const innocent of await Promise.all(innocents)) {
        expect(innocent).toMatchObject({ kind: 'returned', result: 'done' })
      }
      const after = await used.pool.invoke(code, call('one'), oneDocument)
      expect(after).toMatchObject({ result: 'done' })
    },
  )

  test('the runner logs an overuse at level debug only, since its call logs the failure', {
    tags: ['slow'],
  }, () => {
    const records = [bench, brief, patient]
      .flatMap(({ log }) => log.records())
      .filter(({ message }) => message.includes('exceeded its limit'))
    expect(new Set(records.map(({ level }) => level))).toEqual(new Set(['debug']))
  })

  test('the overuse of the stack is an error of the author', async () => {
    const outcome = await pool.invoke(code, call('recursion'), oneDocument)
    expect(outcome).toMatchObject({ kind: 'threw', error: { name: 'RangeError' } })
  })

  test('the overuse of operations ends with the limit operations', async () => {
    const outcome = await outcomeOf(code, () => call('operations', { millis: 60_000 }))
    expect(outcome).toMatchObject({ kind: 'limit', limit: 'operations' })
  })

  test('a call that reads as much as it may is not ended', { tags: ['slow'] }, async () => {
    const document = `{"_id":{"$d":"n_01ARZ3NDEKTSV4RRFFQ69G5FAV"},"text":"${'é'.repeat(1e6)}"}`
    const outcome = await pool.invoke(code, call('read'), { operation: () => document })
    expect(outcome).toMatchObject({ kind: 'returned', result: 16 })
  })
})
