/**
 * Quarantine of Functions that crashed a runner, with real runners.
 *
 * @module-tag slow
 */
import { expect, test } from 'vitest'
import {
  heldHost,
  killRunners,
  oneDocument,
  type PoolBench,
  poolBench,
} from '../../../testing/runners.ts'
import type { CancellationToken, RunnerHost, RunnerOutcome } from '../calls/outcomes.ts'
import type { PoolLimits } from './runner-pool.ts'

const CODE = `
  one: query(async (ctx) => { await ctx.db.get('x'); return 'done' }),
  loop: query(async (ctx) => { await ctx.db.get('x'); for (;;); }),`

interface RunningPool extends PoolBench {
  invoke(name: string, host?: RunnerHost, signal?: CancellationToken): Promise<RunnerOutcome>
}

async function withPool(
  options: { size: number; limits?: Partial<PoolLimits> },
  use: (bench: RunningPool) => Promise<void>,
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

/** Ends the call whose operation it is the reply of. */
const rejected = Promise.reject(new Error('stopped'))
rejected.catch(() => {})

const CPU = { kind: 'limit', limit: 'cpu' }
const DONE = { kind: 'returned', result: 'done' }
/** Longer than a test. */
const QUARANTINED = { isolationMillis: 600_000 }

test('calls of other Functions are neither lost with it again nor delayed', () =>
  withPool({ size: 1, limits: QUARANTINED }, async ({ invoke }) => {
    expect(await invoke('loop')).toMatchObject(CPU)
    const held = heldHost(() => 'null')
    const loops = [invoke('loop', held.host), invoke('loop')]
    await held.received(1)
    for (let i = 0; i < 10; i++) expect(await invoke('one')).toMatchObject(DONE)
    const beside = heldHost(() => 'null')
    const other = invoke('one', beside.host)
    await beside.received(1)
    held.letGo()
    for (const loop of loops) expect(await loop).toMatchObject(CPU)
    beside.letGo()
    expect(await other).toMatchObject(DONE)
  }))

test('a Function whose caller has disconnected is quarantined too, and logged', () =>
  withPool({ size: 1, limits: { ...QUARANTINED, callCpuMillis: 2_000 } }, async (bench) => {
    const { invoke, pool, log } = bench
    const held = heldHost(() => 'null')
    const beside = invoke('one', held.host)
    await held.received(1)
    const signal = { aborted: false }
    const { cpuMicros } = pool.usage()
    const cancelled = invoke('loop', oneDocument, signal)
    const used = () => pool.usage().cpuMicros - cpuMicros
    await expect.poll(used, { interval: 5 }).toBeGreaterThan(250_000)
    signal.aborted = true
    expect(await cancelled).toMatchObject({ kind: 'cancelled' })
    expect(await beside).toMatchObject({ kind: 'lost' })
    const record = { event: 'runner.stopped', level: 'warn', function: 'f.loop' }
    expect(log.records()).toContainEqual(expect.objectContaining(record))
    const again = heldHost(() => 'null')
    const quarantined = invoke('loop', again.host)
    await again.received(1)
    for (let i = 0; i < 10; i++) expect(await invoke('one')).toMatchObject(DONE)
    expect(pool.statistics().runners).toBe(2)
    again.fail(new Error('stopped'))
    await expect(quarantined).rejects.toThrow('stopped')
  }))

test('quarantined calls of one Function do not crash each other', () =>
  withPool({ size: 4 }, async ({ invoke }) => {
    expect(await invoke('loop')).toMatchObject(CPU)
    const held = heldHost(() => 'null')
    const waiting = invoke('loop', held.host)
    await held.received(1)
    expect(await invoke('loop')).toMatchObject(CPU)
    held.letGo()
    expect(await waiting).toMatchObject(CPU)
  }))

test('calls that wait in quarantine continue when it ends, even if one waits for others', () =>
  withPool({ size: 1, limits: { isolationMillis: 400 } }, async ({ invoke }) => {
    expect(await invoke('loop')).toMatchObject(CPU)
    // The first call holds the only runner, and ends only after the calls that wait for it.
    const others: Promise<RunnerOutcome>[] = []
    const first = invoke('loop', {
      operation: async () => {
        for (let i = 0; i < 3; i++) others.push(invoke('loop', { operation: () => rejected }))
        await Promise.allSettled(others)
        throw new Error('the first')
      },
    })
    await expect(first).rejects.toThrow('the first')
    for (const other of others) await expect(other).rejects.toThrow('stopped')
  }))

test('during the isolation after a crash of unknown cause, a call may wait for another', () =>
  withPool({ size: 1, limits: { isolationMillis: 400 } }, async ({ invoke }) => {
    const held = heldHost(() => 'null')
    const lost = invoke('one', held.host)
    await held.received(1)
    killRunners()
    expect(await lost).toMatchObject({ kind: 'lost' })
    const outer = await invoke('one', { operation: () => invoke('one').then(() => 'null') })
    expect(outer).toMatchObject(DONE)
  }))

test('quarantine ends after its time, and its runners stop', () =>
  withPool({ size: 1, limits: { isolationMillis: 400 } }, async ({ invoke, pool }) => {
    expect(await invoke('loop')).toMatchObject(CPU)
    const held = heldHost(() => 'null')
    const quarantined = invoke('loop', held.host)
    await held.received(1)
    expect(await invoke('one')).toMatchObject(DONE)
    expect(pool.statistics().runners).toBe(2)
    held.fail(new Error('stopped'))
    await expect(quarantined).rejects.toThrow('stopped')
    await expect.poll(() => pool.statistics().runners).toBe(1)
    expect(await invoke('loop')).toMatchObject(CPU)
  }))
