/** Processes without calls: what they return, and when the spare one runs. */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { oneDocument, poolBench } from '../../../testing/runners.ts'

const { pool, release, call } = poolBench()
afterAll(() => pool.close())
/** Only a hang misses it. */
const WAIT = { timeout: 60_000 }

function counting() {
  const code = release('count: query(() => ++count),')
  return { ...code, source: `let count = 0;\n${code.source}` }
}

test('a process that returned memory answers the next call', async () => {
  const bench = poolBench()
  try {
    await bench.pool.start({ sandbox: 'preferred' })
    const code = counting()
    for (let n = 1; n <= 3; n++) {
      const outcome = bench.pool.invoke(code, call('count'), oneDocument)
      // Nothing is trimmed while it runs.
      bench.pool.trim(false)
      expect(await outcome).toMatchObject({ kind: 'returned', result: n })
      bench.pool.trim(false)
      bench.pool.trim(false)
    }
    expect(bench.metrics.collect().counters.runnersStopped).toBe(0)
  } finally {
    await bench.pool.close()
  }
})

test('a process that forgot the documents it caches receives them again', async () => {
  const bench = poolBench()
  try {
    await bench.pool.start({ sandbox: 'preferred' })
    const code = release(`
      one: query(async (ctx) => ctx.db.get('notes_01ARZ3NDEKTSV4RRFFQ69G5FAV')),`)
    const result = { _revision: { $i: '3' } }
    for (let n = 1; n <= 6; n++) {
      const outcome = await bench.pool.invoke(code, call('one'), oneDocument)
      expect(outcome).toMatchObject({ kind: 'returned', result })
      if (n % 3 === 0) bench.pool.trim(true)
    }
    expect(bench.metrics.collect().counters.runnersStopped).toBe(0)
  } finally {
    await bench.pool.close()
  }
})

test('a spare process starts with the first call, and not with what is served', async () => {
  const bench = poolBench()
  try {
    await bench.pool.start({ sandbox: 'preferred' })
    const code = counting()
    await bench.pool.warm(code)
    await delay(100)
    expect(bench.pool.pids()).toHaveLength(1)
    await bench.pool.invoke(code, call('count'), oneDocument)
    await expect.poll(() => bench.pool.pids(), WAIT).toHaveLength(2)
  } finally {
    await bench.pool.close()
  }
})

test('the spare process ends without calls, and the next call starts one', async () => {
  const bench = poolBench({ limits: { spareMillis: 0 } })
  try {
    await bench.pool.start({ sandbox: 'preferred' })
    await expect.poll(() => bench.pool.pids(), WAIT).toEqual([])
    const outcome = await bench.pool.invoke(counting(), call('count'), oneDocument)
    expect(outcome).toMatchObject({ kind: 'returned', result: 1 })
    expect(bench.pool.pids()).toHaveLength(1)
  } finally {
    await bench.pool.close()
  }
})

test('garbage of earlier calls leaves the memory of an idle process', async () => {
  // A spare process would add its own memory.
  const bench = poolBench({ limits: { spareMillis: 0 } })
  try {
    await bench.pool.start({ sandbox: 'preferred' })
    const filling = release(`
      fill: query(() => {
        for (let i = 0; i < 4e5; i++) kept.push({ i, text: 'x' + i })
        return kept.length
      }),
      drop: query(() => { kept = [] }),`)
    const code = { ...filling, source: `let kept = [];\n${filling.source}` }
    await bench.pool.invoke(code, call('fill'), oneDocument)
    await expect.poll(() => bench.pool.pids(), WAIT).toHaveLength(1)
    // Nothing of it is garbage yet, which the runner could return before it is measured.
    const before = bench.pool.usage().residentBytes
    await bench.pool.invoke(code, call('drop'), oneDocument)
    bench.pool.trim(false)
    await expect
      .poll(() => bench.pool.usage().residentBytes, WAIT)
      .toBeLessThan(before - 8 * 1024 * 1024)
  } finally {
    await bench.pool.close()
  }
})
