/** Deliveries of other services: their answer, and how operators read and replay them. */
import { ROUTE_NAME } from '../../value/http/routes.ts'
import { SCHEDULED_STATES } from '../../value/scheduling/scheduled-work.ts'
import {
  idField,
  integer,
  listUpTo,
  Micros,
  PAGE_MAX,
  PageLimit,
  text,
  textUpTo,
} from '../fields.ts'
import { OperationField } from '../idempotency-records.ts'
import { type Infer, schema } from '../schema.ts'
import { MountName } from './mounts.ts'

/** The answer to a delivery that is stored, also to a repeat. */
export const HookAccepted = schema({
  version: '1',
  status: "'accepted'",
  requestId: idField('req'),
  /** The scheduled work of the first delivery of the event. */
  deliveryId: idField('sch'),
})
export type HookAccepted = Infer<typeof HookAccepted>

const RouteName = text(ROUTE_NAME, 'the name of a route')
const StateField = schema(['===', ...SCHEDULED_STATES])

export const DeliveriesQuery = schema({
  'state?': StateField,
  'route?': RouteName,
  'limit?': PageLimit,
  /** `next` of the page before. */
  'after?': idField('sch'),
})

const DELIVERY = {
  /** The ID of the scheduled work. */
  deliveryId: idField('sch'),
  mount: MountName,
  route: RouteName,
  /** The ID of the event, as the service or `once` names it. */
  event: textUpTo(256),
  method: textUpTo(16),
  /** The path below the mount. */
  path: textUpTo(32 * 1024),
  bodyBytes: integer(0),
  receivedAtMicros: Micros,
  state: StateField,
  function: textUpTo(512),
  /** The Release that executes it. */
  releaseId: idField('rel'),
  /** Runs that were started. */
  attempts: integer(0),
  /** Code of the newest failure; null without one. */
  lastErrorCode: [textUpTo(128), '|', 'null'],
  /** The newest failure as the log has it; null without one, and once the delivery succeeded. */
  lastErrorMessage: [textUpTo(1_024), '|', 'null'],
  /** Null until it has succeeded, failed or was canceled. */
  finishedAtMicros: [Micros, '|', 'null'],
  /** False once the headers and the body are dropped: long ones, after the delivery succeeded. */
  hasContent: 'boolean',
} as const

const DeliveryField = schema(DELIVERY)
export type DeliveryField = Infer<typeof DeliveryField>

export const DeliveryPage = schema({
  version: '1',
  /** The newest first. A page may have few items, or none, although more follow. */
  items: listUpTo(DeliveryField, PAGE_MAX),
  /** `after` of the next page; null at the end. */
  next: [idField('sch'), '|', 'null'],
})
export type DeliveryPage = Infer<typeof DeliveryPage>

const DeliveryContent = schema({
  /** The headers that the hook names. */
  headers: { '[string]': 'string' },
  query: { '[string]': 'string' },
  /** The body in base64url. */
  body: 'string',
})
export type DeliveryContent = Infer<typeof DeliveryContent>

export const DeliveryRead = schema({
  version: '1',
  ...DELIVERY,
  /** Only for callers with `data:read`; null if it is no longer stored. */
  'content?': [DeliveryContent, '|', 'null'],
})
export type DeliveryRead = Infer<typeof DeliveryRead>

/** The delivery after it was made to run again. */
export const DeliveryReplayed = schema({ version: '1', ...DELIVERY, operation: OperationField })
export type DeliveryReplayed = Infer<typeof DeliveryReplayed>
