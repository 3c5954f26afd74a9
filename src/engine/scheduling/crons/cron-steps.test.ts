/** The states of a Cron as a table: what each one becomes as time passes. */
import { describe, expect, test } from 'vitest'
import { QUEUED_MAX } from '../../../value/scheduling/crons.ts'
import type { CronState } from './cron-states.ts'
import { type CronStepInput, cronStep } from './cron-steps.ts'
import { cronTimes } from './cron-times.ts'

const HOUR = 3_600_000_000n
const times = cronTimes({ schedule: '0 * * * *', timeZone: 'UTC', everyMillis: null })
const daily = cronTimes({ schedule: '0 7 * * *', timeZone: 'UTC', everyMillis: null })
const state = (more: Partial<CronState> = {}): CronState => ({
  basis: 'b',
  nextAtMicros: 10n * HOUR,
  lastDueAtMicros: 9n * HOUR,
  lastRunAtMicros: 9n * HOUR,
  scheduledId: 'sch_x',
  queued: 0,
  ...more,
})
const step = (stored: CronState | null, input: Partial<CronStepInput>) =>
  cronStep(stored, {
    times,
    basis: 'b',
    overlap: 'skip',
    nowMicros: 10n * HOUR,
    isBusy: false,
    ...input,
  })

describe('a Cron', () => {
  test('a Cron that comes into force waits for its next time', () => {
    const { state: next, runsAtMicros } = step(null, { nowMicros: 10n * HOUR })
    expect([next.nextAtMicros, runsAtMicros]).toEqual([11n * HOUR, null])
  })

  test('a changed Cron waits for its next time and keeps its last run', () => {
    const { state: next, runsAtMicros } = step(state(), { basis: 'other', nowMicros: 15n * HOUR })
    expect(next).toEqual({
      ...state({ basis: 'other', nextAtMicros: 16n * HOUR, lastDueAtMicros: null }),
    })
    expect(runsAtMicros).toBeNull()
  })

  test('a Cron does not run before its time', () => {
    const { state: next, runsAtMicros } = step(state(), { nowMicros: 10n * HOUR - 1n })
    expect([next, runsAtMicros]).toEqual([state(), null])
  })

  test('runs at its time', () => {
    const { state: next, runsAtMicros, isSkipped } = step(state(), {})
    expect([runsAtMicros, isSkipped]).toEqual([10n * HOUR, false])
    expect(next).toMatchObject({ nextAtMicros: 11n * HOUR, lastDueAtMicros: 10n * HOUR })
  })

  test('runs once for all times that passed during a stop', () => {
    const { state: next, runsAtMicros } = step(state(), { nowMicros: 50n * HOUR + 5n })
    expect([next.nextAtMicros, runsAtMicros]).toEqual([51n * HOUR, 10n * HOUR])
  })
})

describe('a time that comes while the run before has not ended', () => {
  test('the time is left out with overlap skip', () => {
    const { state: next, runsAtMicros, isSkipped } = step(state(), { isBusy: true })
    expect([next.nextAtMicros, next.queued]).toEqual([11n * HOUR, 0])
    expect([runsAtMicros, isSkipped]).toEqual([null, true])
  })

  test('waits with overlap queue, and runs when that run has ended', () => {
    const waiting = step(state(), { isBusy: true, overlap: 'queue' })
    expect([waiting.state.queued, waiting.runsAtMicros, waiting.isSkipped]).toEqual([
      1,
      null,
      false,
    ])
    const nowMicros = 10n * HOUR + 5n
    const still = step(waiting.state, { isBusy: true, overlap: 'queue', nowMicros })
    expect([still.state.queued, still.runsAtMicros]).toEqual([1, null])
    const ended = step(waiting.state, { overlap: 'queue', nowMicros })
    expect([ended.state.queued, ended.runsAtMicros]).toEqual([0, nowMicros])
  })

  test('a time is left out beyond the bound of the queue', () => {
    const full = state({ queued: QUEUED_MAX })
    const { state: next, isSkipped } = step(full, { isBusy: true, overlap: 'queue' })
    expect([next.queued, isSkipped]).toEqual([QUEUED_MAX, true])
  })
})

describe('a clock that was set back', () => {
  test('a clock that is set back by less than an hour repeats no time', () => {
    const ran = state({ lastDueAtMicros: 31n * HOUR, nextAtMicros: 55n * HOUR })
    const nowMicros = 31n * HOUR - 60_000_000n
    expect(step(ran, { times: daily, nowMicros }).state.nextAtMicros).toBe(55n * HOUR)
  })

  test('a Cron starts over from its time if the clock is set back from far ahead', () => {
    const ahead = state({ lastDueAtMicros: 10_000n * HOUR, nextAtMicros: 10_001n * HOUR })
    expect(step(ahead, { nowMicros: 20n * HOUR }).state.nextAtMicros).toBe(21n * HOUR)
  })

  test('a clock that is set back from far ahead leaves no next time that is too late', () => {
    const late = state({ lastDueAtMicros: 10n * HOUR, nextAtMicros: 10_001n * HOUR })
    expect(step(late, { nowMicros: 10n * HOUR - 1n }).state.nextAtMicros).toBe(11n * HOUR)
  })
})
