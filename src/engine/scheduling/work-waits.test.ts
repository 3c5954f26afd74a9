import { expect, test } from 'vitest'
import { TestSystem } from '../../system/system.ts'
import type { EndedWork } from '../scheduled-work/scheduled-documents.ts'
import { ManualTimers } from './timers.ts'
import { WORK_WAIT_MILLIS_MAX, WORK_WAITS_MAX, WorkWaits } from './work-waits.ts'

const ENDED: EndedWork = {
  state: 'succeeded',
  function: 'f',
  releaseId: 'rel_1',
  resultText: null,
}

test('a wait beyond the bound ends at once, and one that ends makes room', async () => {
  const clock = new TestSystem()
  const timers = new ManualTimers({ monotonicMillis: () => clock.nowMillis() })
  let ended: EndedWork | null = null
  const waits = new WorkWaits({ timers, read: async () => ended })
  const waiting = Array.from({ length: WORK_WAITS_MAX }, (_, i) => waits.whenEnded(`sch_${i}`))
  expect(await waits.whenEnded('sch_more')).toBeNull()
  expect(waits.count).toBe(WORK_WAITS_MAX)
  ended = ENDED
  const after = new Map([['state', 'succeeded']])
  waits.onCommit([{ scheduledId: 'sch_0', before: null, after }])
  expect(await waiting[0]).toBe(ENDED)
  expect(await waits.whenEnded('sch_more')).toBe(ENDED)
  waits.stop()
  await Promise.all(waiting)
  expect([waits.count, waits.expired, timers.nextMillis]).toEqual([0, 0, null])
})

test('a wait whose time ends is counted, and one of a service that is gone is not', async () => {
  const clock = new TestSystem()
  const timers = new ManualTimers({ monotonicMillis: () => clock.nowMillis() }, Infinity)
  const waits = new WorkWaits({ timers, read: async () => null })
  const leave = new AbortController()
  const gone = waits.whenEnded('sch_1', leave.signal)
  const late = waits.whenEnded('sch_1')
  leave.abort()
  expect(await gone).toBeNull()
  expect([waits.count, waits.expired]).toEqual([1, 0])
  clock.advance(WORK_WAIT_MILLIS_MAX)
  timers.run()
  expect(await late).toBeNull()
  expect([waits.count, waits.expired, timers.nextMillis]).toEqual([0, 1, null])
})
