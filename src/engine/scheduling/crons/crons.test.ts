/** Crons in an engine under simulated time: what runs, when, and how often. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type SimulatedEngine,
  simulatedEngine,
} from '../../../../testing/engine/simulated-engine.ts'
import { functionManifest } from '../../../../testing/products.ts'
import { OperationError } from '../../calls/operation-error.ts'
import type { PlannedCron } from './crons.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const mutation = functionManifest('a.tick', { kind: 'mutation' })
const action = functionManifest('a.slow', {
  kind: 'action',
  uses: { network: [], secrets: [] },
})

/** Names of the Functions that ran, with the wall time of the run. */
let ran: string[] = []
/** Runs of a.slow that have not been let go. */
let held: (() => void)[] = []
let isServing = true
let isThrowing = false
let isEnding = false
let bench: SimulatedEngine

const handlers = {
  'a.tick': () => {
    if (isThrowing) throw new OperationError('Error', 'no')
    ran.push(`a.tick ${new Date(bench.system.nowMillis()).toISOString()}`)
    return null
  },
  'a.slow': () => {
    ran.push(`a.slow ${new Date(bench.system.nowMillis()).toISOString()}`)
    if (isEnding) return null
    return new Promise((resolve) => held.push(() => resolve(null)))
  },
}

beforeEach(async () => {
  ran = []
  held = []
  isServing = true
  isThrowing = false
  isEnding = false
  const functions = [mutation, action]
  // 2027-01-15T08:00:00Z
  bench = await simulatedEngine({ functions, handlers, admits: () => isServing })
})
afterEach(async () => {
  isEnding = true
  for (const release of held) release()
  await bench.close()
})

const cron = (more: Partial<PlannedCron> = {}): PlannedCron => ({
  name: 'tick',
  schedule: '0 * * * *',
  timeZone: 'UTC',
  everyMillis: null,
  function: 'a.tick',
  kind: 'mutation',
  argumentsText: '{}',
  overlap: 'skip',
  ...more,
})
const slow = (overlap: 'skip' | 'queue'): PlannedCron =>
  cron({ name: 'slow', function: 'a.slow', kind: 'action', overlap })

/** Advances without waiting for what is held. */
async function advanceHeld(millis: number): Promise<void> {
  bench.system.advance(millis)
  bench.timers.run()
  await bench.engine.scheduler.crons.whenIdle()
}

const state = async (name: string) => (await bench.engine.scheduler.crons.states()).get(name)
const works = async () => (await bench.engine.scheduler.list(null, 1_000)).items

describe('a Cron', () => {
  test('runs at each of its times, once, as scheduled work of its name', {
    tags: ['slow'],
  }, async () => {
    await bench.follow([cron()])
    await bench.advance(3 * 60 * MINUTE)
    expect(ran).toEqual([
      'a.tick 2027-01-15T09:00:00.000Z',
      'a.tick 2027-01-15T10:00:00.000Z',
      'a.tick 2027-01-15T11:00:00.000Z',
    ])
    expect((await works()).map(({ source, cron, state }) => [source, cron, state])).toEqual(
      Array.from({ length: 3 }, () => ['cron', 'tick', 'succeeded']),
    )
    const stored = await state('tick')
    expect(stored!.lastRunAtMicros).toBe(BigInt(Date.parse('2027-01-15T11:00Z')) * 1_000n)
    expect(stored!.nextAtMicros).toBe(BigInt(Date.parse('2027-01-15T12:00Z')) * 1_000n)
  })

  test('a Cron with an interval first runs one interval after it comes into force', async () => {
    await bench.follow([cron({ schedule: null, timeZone: null, everyMillis: 25 * MINUTE })])
    await bench.advance(60 * MINUTE)
    expect(ran).toEqual(['a.tick 2027-01-15T08:25:00.000Z', 'a.tick 2027-01-15T08:50:00.000Z'])
  })

  test('runs once after a stop, for all times that passed', async () => {
    await bench.follow([cron()])
    await bench.advance(60 * MINUTE)
    const { system } = bench
    bench = await bench.reopen()
    system.advance(2 * DAY + MINUTE)
    await bench.follow([cron()])
    expect(ran).toEqual(['a.tick 2027-01-15T09:00:00.000Z', 'a.tick 2027-01-17T09:01:00.000Z'])
    await bench.advance(60 * MINUTE)
    expect(ran.at(-1)).toBe('a.tick 2027-01-17T10:00:00.000Z')
  })

  test('a Cron that leaves force loses its state and later waits for its next time', async () => {
    await bench.follow([cron()])
    await bench.follow([])
    expect(await state('tick')).toBeUndefined()
    await bench.advance(2 * 60 * MINUTE)
    await bench.follow([cron()])
    expect(ran).toEqual([])
    await bench.advance(60 * MINUTE)
    expect(ran).toEqual(['a.tick 2027-01-15T11:00:00.000Z'])
  })

  test('keeps its next time where another Release declares the same times', async () => {
    await bench.follow([cron()])
    const before = await state('tick')
    await bench.advance(30 * MINUTE)
    await bench.follow([cron({ argumentsText: '{"a":1}' })])
    expect(await state('tick')).toEqual(before)
    await bench.follow([cron({ timeZone: 'Asia/Kolkata' })])
    expect((await state('tick'))!.nextAtMicros).toBe(
      BigInt(Date.parse('2027-01-15T09:30Z')) * 1_000n,
    )
  })

  test('a Cron does not run until the Environment serves', async () => {
    await bench.follow([cron()])
    isServing = false
    await bench.advance(5 * 60 * MINUTE)
    expect(ran).toEqual([])
    isServing = true
    bench.engine.scheduler.wake()
    await bench.engine.scheduler.whenSettled()
    expect(ran).toEqual(['a.tick 2027-01-15T13:00:00.000Z'])
  })

  test('a Cron whose call throws has failed work and runs again at its next time', async () => {
    isThrowing = true
    await bench.follow([cron()])
    await bench.advance(2 * 60 * MINUTE)
    expect((await works()).map((work) => work.state)).toEqual(['failed', 'failed'])
  })
})

describe('an activation', () => {
  test('disabling stops the runs, and enabling waits for the next time', async () => {
    let activation = { revision: 1n, isEnabled: false }
    await bench.follow([cron()], () => activation)
    await bench.advance(2 * 60 * MINUTE + MINUTE)
    expect(ran).toEqual([])
    activation = { revision: 2n, isEnabled: true }
    bench.engine.scheduler.crons.wake()
    await bench.engine.scheduler.whenSettled()
    expect(ran).toEqual([])
    await bench.advance(60 * MINUTE)
    expect(ran).toEqual(['a.tick 2027-01-15T11:00:00.000Z'])
  })

  test('disabling in the moment of a due time leaves no run for after its end', async () => {
    let activation = { revision: 0n, isEnabled: true }
    await bench.follow([cron()], () => activation)
    const { crons } = bench.engine.scheduler
    for (let i = 1; i <= 20; i++) {
      bench.system.advance(60 * MINUTE)
      bench.timers.run()
      if (i % 2 === 0) await Promise.resolve()
      activation = { revision: BigInt(2 * i - 1), isEnabled: false }
      crons.wake()
      await crons.whenIdle()
      const before = (await works()).length
      bench.system.advance(60 * MINUTE)
      bench.timers.run()
      await bench.engine.scheduler.whenSettled()
      expect((await works()).length, `round ${i}`).toBe(before)
      activation = { revision: BigInt(2 * i), isEnabled: true }
      crons.wake()
      await bench.engine.scheduler.whenSettled()
    }
  })
})

describe('a time that comes while the run before has not ended', () => {
  test('the time is left out with overlap skip, with a record of the log', async () => {
    await bench.follow([slow('skip')])
    await advanceHeld(60 * MINUTE)
    await expect.poll(() => held.length).toBe(1)
    await advanceHeld(60 * MINUTE)
    expect(bench.log.records().filter(({ event }) => event === 'cron.skipped')).toHaveLength(1)
    expect((await works()).length).toBe(1)
    held.pop()!()
    await bench.engine.scheduler.whenSettled()
    expect(ran).toEqual(['a.slow 2027-01-15T09:00:00.000Z'])
  })

  test('runs with overlap queue when that run has ended, one after the other', async () => {
    await bench.follow([slow('queue')])
    for (let i = 0; i < 3; i++) {
      await advanceHeld(60 * MINUTE)
      await expect.poll(() => held.length).toBe(1)
    }
    expect((await state('slow'))!.queued).toBe(2)
    for (let left = 2; left >= 0; left--) {
      held.pop()!()
      if (left > 0) await expect.poll(() => held.length).toBe(1)
    }
    await bench.engine.scheduler.whenSettled()
    expect(ran).toHaveLength(3)
    expect((await state('slow'))!.queued).toBe(0)
  })
})

describe('a run by hand', () => {
  const ID = 'sch_01MCC5RM00440WAKYHT0DB49BM'
  test('runs now beside the times, once for its ID', async () => {
    await bench.follow([cron()])
    const { crons } = bench.engine.scheduler
    const next = (await state('tick'))!.nextAtMicros
    expect(await crons.run('tick', ID)).toMatchObject({
      kind: 'scheduled',
      work: { scheduledId: ID, cron: 'tick', source: 'cron' },
    })
    await bench.engine.scheduler.whenSettled()
    expect(await crons.run('tick', ID)).toMatchObject({ work: { state: 'succeeded' } })
    expect(ran).toHaveLength(1)
    expect((await state('tick'))!.nextAtMicros).toBe(next)
  })

  test('needs a Cron in force, an ID of its own and the end of the run before', async () => {
    await bench.follow([cron(), slow('skip')])
    const { crons } = bench.engine.scheduler
    expect(await crons.run('absent', ID)).toEqual({ kind: 'unknown' })
    await crons.run('slow', ID)
    await expect.poll(() => held.length).toBe(1)
    expect(await crons.run('tick', ID)).toEqual({ kind: 'taken' })
    const other = 'sch_01MCC5RM00440WAKYHT0DB49BN'
    expect(await crons.run('slow', other)).toEqual({ kind: 'busy' })
    held.pop()!()
  })

  test('a disabled Cron runs by hand', async () => {
    await bench.follow([cron()], () => ({ revision: 1n, isEnabled: false }))
    await bench.engine.scheduler.crons.run('tick', ID)
    await bench.engine.scheduler.whenSettled()
    expect(ran).toHaveLength(1)
  })
})

describe('a step of the clock', () => {
  test('forward runs what it passed once', async () => {
    await bench.follow([cron()])
    bench.system.step(5 * 60 * MINUTE)
    await bench.advance(MINUTE)
    expect(ran).toEqual(['a.tick 2027-01-15T13:01:00.000Z'])
  })

  test('back by some minutes repeats nothing', async () => {
    await bench.follow([cron()])
    await bench.advance(60 * MINUTE)
    bench.system.step(-10 * MINUTE)
    await bench.advance(20 * MINUTE)
    expect(ran).toEqual(['a.tick 2027-01-15T09:00:00.000Z'])
  })

  test('back from far ahead starts over from the clock', async () => {
    bench.system.step(400 * DAY)
    await bench.follow([cron()])
    await bench.advance(60 * MINUTE)
    bench.system.step(-400 * DAY)
    await bench.advance(61 * MINUTE)
    expect(ran.slice(1)).toEqual(['a.tick 2027-01-15T10:00:00.000Z'])
  })
})

test('a scheduler whose store fails is degraded, and unavailable after 10 seconds', async () => {
  await bench.follow([cron()])
  const { scheduler, documents } = bench.engine
  expect(scheduler.health).toBe('healthy')
  const { change } = documents
  documents.change = () => Promise.reject(new Error('the disk is full'))
  await bench.advance(60 * MINUTE)
  expect(scheduler.health).toBe('degraded')
  await bench.advance(11_000)
  expect(scheduler.health).toBe('unavailable')
  documents.change = change
  await bench.advance(2_000)
  expect(scheduler.health).toBe('healthy')
  expect(ran).toHaveLength(1)
})

test('lateness, due work and failures of each Function are measured', async () => {
  await bench.follow([cron()])
  await bench.advance(60 * MINUTE)
  isServing = false
  await bench.advance(60 * MINUTE)
  bench.system.advance(30 * MINUTE)
  isServing = true
  bench.engine.scheduler.wake()
  await bench.engine.scheduler.whenSettled()
  const { histograms, gauges } = bench.metrics.collect()
  const { count, sumMicros } = histograms.scheduledLatenessMicros
  expect([count, sumMicros]).toEqual([2, 30 * MINUTE * 1_000])
  expect(gauges.scheduledDue).toBe(0)
})
