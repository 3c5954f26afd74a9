/** A Function through which a runner ended runs apart: over real runners. */
import { expect, test } from 'vitest'
import {
  heldHost,
  killRunners,
  oneDocument,
  type PoolBench,
  poolBench,
} from '../../../build/testing/runners.ts'
import type { CancellationToken } from './outcomes.ts'
import type { PoolLimits, RunnerHost, RunnerOutcome } from './runner-pool.ts'

const CODE = `
  one: query(async (ctx) => { await ctx.db.get('x'); return 'done' }),
  loop: query(async (ctx) => { await ctx.db.get('x'); for (;;); }),`

interface Running extends PoolBench {
  invoke(name: string, host?: RunnerHost, signal?: CancellationToken): Promise<RunnerOutcome>
}

async function withPool(
  options: { size: number; limits?: Partial<PoolLimits> },
  use: (bench: Running) => Promise<void>,
): Promise<void> {
  const { size, limits } = options
  const bench = poolBench({ size, limits: { callCpuMillis: 200, ...limits } })
  const code = bench.release(CODE)
  try {
    await bench.pool.start({ sandbox: 'preferred' })
    const invoke = (name: string, host = oneDocument, signal?: CancellationToken) =>
      bench.pool.invoke(code, { ...bench.call(name), signal }, host)
    await use({ ...bench, invoke })
  } finally {
    await bench.pool.close()
  }
}

/** Ends the call that waits for it. */
const refusing = Promise.reject(new Error('stopped'))
refusing.catch(() => {})

const CPU = { kind: 'limit', limit: 'cpu' }
const DONE = { kind: 'returned', result: 'done' }

test('calls of others are not lost with it again, nor held up', () =>
  withPool({ size: 1 }, async ({ invoke }) => {
    expect(await invoke('loop')).toMatchObject(CPU)
    const loops = [invoke('loop'), invoke('loop')]
    let ended = 0
    for (const loop of loops) void loop.then(() => ended++)
    for (let i = 0; i < 10; i++) expect(await invoke('one')).toMatchObject(DONE)
    expect(ended).toBe(0)
    for (const loop of loops) expect(await loop).toMatchObject(CPU)
  }))

test('nor where its caller has left, and the log names it then', () =>
  withPool({ size: 1, limits: { callCpuMillis: 500 } }, async ({ invoke, pool, log }) => {
    const held = heldHost(() => 'null')
    const beside = invoke('one', held.host)
    await held.asked(1)
    const signal = { aborted: false }
    const { cpuMicros } = pool.usage()
    const left = invoke('loop', oneDocument, signal)
    await expect.poll(() => pool.usage().cpuMicros - cpuMicros).toBeGreaterThan(250_000)
    signal.aborted = true
    expect(await left).toMatchObject({ kind: 'cancelled' })
    expect(await beside).toMatchObject({ kind: 'lost' })
    const record = { event: 'runner.stopped', level: 'warn', function: 'f.loop' }
    expect(log.records()).toContainEqual(expect.objectContaining(record))
    let ended = 0
    const again = invoke('loop').finally(() => ended++)
    for (let i = 0; i < 10; i++) expect(await invoke('one')).toMatchObject(DONE)
    expect(ended).toBe(0)
    expect(await again).toMatchObject(CPU)
  }))

test('of its own calls none takes another with it', () =>
  withPool({ size: 4 }, async ({ invoke }) => {
    expect(await invoke('loop')).toMatchObject(CPU)
    const held = heldHost(() => 'null')
    const waiting = invoke('loop', held.host)
    await held.asked(1)
    expect(await invoke('loop')).toMatchObject(CPU)
    held.letGo()
    expect(await waiting).toMatchObject(CPU)
  }))

test('what waits there goes on with all others when that ends, one call for another or not', () =>
  withPool({ size: 1, limits: { isolationMillis: 400 } }, async ({ invoke }) => {
    expect(await invoke('loop')).toMatchObject(CPU)
    // The first one holds the only place, and ends only with those that wait for it.
    const others: Promise<RunnerOutcome>[] = []
    const first = invoke('loop', {
      operation: async () => {
        for (let i = 0; i < 3; i++) others.push(invoke('loop', { operation: () => refusing }))
        await Promise.allSettled(others)
        throw new Error('the first')
      },
    })
    await expect(first).rejects.toThrow('the first')
    for (const other of others) await expect(other).rejects.toThrow('stopped')
  }))

test('where nobody knows which call ended a runner, one that waits for another goes on', () =>
  withPool({ size: 1, limits: { isolationMillis: 400 } }, async ({ invoke }) => {
    const held = heldHost(() => 'null')
    const lost = invoke('one', held.host)
    await held.asked(1)
    killRunners()
    expect(await lost).toMatchObject({ kind: 'lost' })
    const outer = await invoke('one', { operation: () => invoke('one').then(() => 'null') })
    expect(outer).toMatchObject(DONE)
  }))

test('it is among the others again after a while, and what it ran in is gone', () =>
  withPool({ size: 1, limits: { isolationMillis: 400 } }, async ({ invoke, pool }) => {
    expect(await invoke('loop')).toMatchObject(CPU)
    const held = heldHost(() => 'null')
    const apart = invoke('loop', held.host)
    await held.asked(1)
    expect(await invoke('one')).toMatchObject(DONE)
    expect(pool.statistics().runners).toBe(2)
    held.fail(new Error('stopped'))
    await expect(apart).rejects.toThrow('stopped')
    await expect.poll(() => pool.statistics().runners).toBe(1)
    expect(await invoke('loop')).toMatchObject(CPU)
  }))
