/** Scheduled work: its list and its cancellation (contract/wire.md, Scheduled work). */
import { ROUTE_NAME } from '../value/http/routes.ts'
import { SCHEDULED_STATES } from '../value/scheduling/scheduled-work.ts'
import {
  idField,
  integer,
  listUpTo,
  Micros,
  PAGE_MAX,
  PageLimit,
  text,
  textUpTo,
} from './fields.ts'
import { MountName } from './http/mounts.ts'
import { OperationField } from './idempotency-records.ts'
import { type Infer, schema } from './schema.ts'

export const ScheduledQuery = schema({
  'limit?': PageLimit,
  /** The last piece of the page before. */
  'after?': idField('sch'),
})

const WORK = {
  scheduledId: idField('sch'),
  function: textUpTo(512),
  releaseId: idField('rel'),
  state: ['===', ...SCHEDULED_STATES],
  dueAtMicros: Micros,
  /** Runs that were started. */
  attempts: integer(0),
  /** Code of the newest failure; null without one. */
  lastErrorCode: [textUpTo(128), '|', 'null'],
  /** Work of `http` is listed as `function`, with its mount: older clients know two sources. */
  source: "'function' | 'cron'",
  /** The mount and the route of a delivery of another service. */
  'http?': { mount: MountName, route: text(ROUTE_NAME, 'the name of a route') },
} as const

export const ScheduledPage = schema({
  version: '1',
  items: listUpTo(schema(WORK), PAGE_MAX),
  /** `after` of the next page; null at the end. */
  next: [idField('sch'), '|', 'null'],
})
export type ScheduledPage = Infer<typeof ScheduledPage>

/** The work after its cancellation, or after a Cron was run by hand. */
export const ScheduledChanged = schema({ version: '1', ...WORK, operation: OperationField })
export type ScheduledChanged = Infer<typeof ScheduledChanged>
