/** Crons with the mistakes that the compiler must find, and no others. */
export const CRON_MISTAKES = `
import { cronJobs } from 'svc'
import type { FunctionReference } from 'svc'

declare const send: FunctionReference<'mutation', { since: bigint; most?: number }, null>
declare const sweep: FunctionReference<'action', Record<string, never>, null>
declare const read: FunctionReference<'query', Record<string, never>, null>

export const crons = cronJobs({
  digest: { schedule: '0 7 * * *', timeZone: 'UTC', function: send, arguments: { since: 1n } },
  sweep: { every: { minutes: 10 }, function: sweep, overlap: 'queue' },
  again: { every: { minutes: 10 }, function: sweep, arguments: {} },
})
cronJobs({
  // @ts-expect-error arguments of another type
  wrong: { schedule: '0 7 * * *', function: send, arguments: { since: 1 } },
})
cronJobs({
  // @ts-expect-error no arguments
  missing: { schedule: '0 7 * * *', function: send },
})
cronJobs({
  // @ts-expect-error a Query
  query: { schedule: '0 7 * * *', function: read },
})
cronJobs({
  // @ts-expect-error a schedule and an interval
  both: { schedule: '0 7 * * *', every: { hours: 1 }, function: sweep },
})
cronJobs({
  // @ts-expect-error an interval of nothing
  nothing: { every: {}, function: sweep },
})
declare const scheduler: import('svc').Scheduler
scheduler.runAfter({ hours: 1, minutes: 30 }, sweep)
// @ts-expect-error a delay of nothing
scheduler.runAfter({}, sweep)
// @ts-expect-error a delay of nothing
scheduler.runAfter({ seconds: undefined }, sweep)
// @ts-expect-error a delay without a unit
scheduler.runAfter(5, sweep)
cronJobs({
  // @ts-expect-error another overlap
  overlap: { every: { hours: 1 }, function: sweep, overlap: 'wait' },
})
`
