/** Counts of scheduled work, and the bounds that follow from them. */
import { describe, expect, test } from 'vitest'
import type { ReleaseId } from '../../value/ids.ts'
import { PENDING_MAX, SCHEDULES_MAX } from '../../value/scheduling/scheduled-work.ts'
import type { ValueObject } from '../../value/values.ts'
import { DeliverySizes } from './delivery-sizes.ts'
import { checkScheduleLimits } from './function-scheduler.ts'
import { PendingWork } from './pending-work.ts'

const RELEASE = 'rel_1' as ReleaseId
const fields = (state: string): ValueObject =>
  new Map<string, string>([
    ['state', state],
    ['releaseId', RELEASE],
  ])
const change = (before: string | null, after: string | null) => ({
  scheduledId: 'sch_1',
  before: before === null ? null : fields(before),
  after: after === null ? null : fields(after),
})

describe('the counts', () => {
  test('follow the states of the work', () => {
    const pending = new PendingWork()
    const counts = () => [pending.count, pending.countOf(RELEASE), pending.finished]
    const store = (each: ReturnType<typeof change>) => {
      pending.assign(each)
      pending.commit(each)
    }
    store(change(null, 'pending'))
    store(change('pending', 'running'))
    store(change('running', 'pending'))
    expect(counts()).toEqual([1, 1, 0])
    store(change('pending', 'succeeded'))
    expect(counts()).toEqual([0, 0, 1])
    store(change('succeeded', null))
    expect(counts()).toEqual([0, 0, 0])
  })

  test('the counts have a piece from its assignment until its end is durable', () => {
    const pending = new PendingWork()
    const [scheduled, ended] = [change(null, 'pending'), change('pending', 'succeeded')]
    pending.assign(scheduled)
    expect(pending.countOf(RELEASE)).toBe(1)
    pending.assign(ended)
    expect(pending.countOf(RELEASE)).toBe(1)
    pending.commit(scheduled)
    expect(pending.countOf(RELEASE)).toBe(1)
    pending.commit(ended)
    expect(pending.countOf(RELEASE)).toBe(0)
  })

  test('after a commit that was rolled back the counts are those from before it', () => {
    const pending = new PendingWork()
    pending.assign(change(null, 'pending'))
    for (const each of [change('pending', 'succeeded'), change(null, 'pending')]) {
      pending.assign(each)
      pending.revert(each)
    }
    expect([pending.count, pending.countOf(RELEASE), pending.finished]).toEqual([1, 1, 0])
  })
})

describe('LIMIT_EXCEEDED', () => {
  const limit = expect.objectContaining({ code: 'LIMIT_EXCEEDED' })
  const withPending = (count: number): PendingWork => {
    const pending = new PendingWork()
    pending.add({
      byRelease: new Map([[RELEASE, count]]),
      finished: 0,
      deliveries: new DeliverySizes(),
    })
    return pending
  }

  test(`piece ${SCHEDULES_MAX + 1} of one call fails with LIMIT_EXCEEDED`, () => {
    expect(() => checkScheduleLimits(SCHEDULES_MAX, withPending(0))).not.toThrow()
    expect(() => checkScheduleLimits(SCHEDULES_MAX + 1, withPending(0))).toThrow(limit)
  })

  test(`more than ${PENDING_MAX} pending pieces of an Environment fail with LIMIT_EXCEEDED`, () => {
    expect(() => checkScheduleLimits(1, withPending(PENDING_MAX - 1))).not.toThrow()
    expect(() => checkScheduleLimits(1, withPending(PENDING_MAX))).toThrow(limit)
    expect(() => checkScheduleLimits(2, withPending(PENDING_MAX - 1))).toThrow(limit)
  })
})
