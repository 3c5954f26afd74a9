/** Requests of `svc scheduled` and `svc crons` to the linked Environment. */
import type { OperationId } from '../value/ids.ts'
import type { Activation } from '../value/scheduling/crons.ts'
import { CronActivated, CronList } from '../wire/crons.ts'
import { OPERATION_ID_HEADER } from '../wire/idempotency-records.ts'
import { ScheduledChanged, ScheduledPage } from '../wire/schedules.ts'
import type { Remote } from './remotes.ts'

/** Bytes of a page with the most entries and the longest names. */
const PAGE_BYTES_MAX = 2 * 1024 * 1024

export function listScheduled(
  { session, base }: Remote,
  { limit, after }: { readonly limit: number; readonly after: string | undefined },
) {
  const query = after === undefined ? `limit=${limit}` : `limit=${limit}&after=${after}`
  return session.management({
    method: 'GET',
    path: `${base}/scheduled?${query}`,
    reply: ScheduledPage,
    replay: 'safe',
    responseBytesMax: PAGE_BYTES_MAX,
  })
}

export function cancelScheduled(
  { session, base }: Remote,
  { scheduledId, operationId }: { readonly scheduledId: string; readonly operationId: OperationId },
) {
  return session.management({
    method: 'POST',
    path: `${base}/scheduled/${scheduledId}/cancel`,
    headers: { [OPERATION_ID_HEADER]: operationId },
    reply: ScheduledChanged,
    replay: 'safe',
  })
}

/** Lists the Crons of a target; undefined for those in force. */
export function listCrons({ session, base }: Remote, target: string | undefined) {
  const query = target === undefined ? '' : `?target=${encodeURIComponent(target)}`
  return session.management({
    method: 'GET',
    path: `${base}/crons${query}`,
    ...(target !== undefined && { subjects: { target } }),
    reply: CronList,
    replay: 'safe',
    responseBytesMax: PAGE_BYTES_MAX,
  })
}

export interface CronActivationChange {
  readonly name: string
  readonly operationId: OperationId
  readonly expectedRevision: string
  readonly activation: Activation
  readonly changedAtMicros: string
}

export function activateCron(
  { session, base }: Remote,
  { name, operationId, ...body }: CronActivationChange,
) {
  return session.management({
    method: 'PUT',
    path: `${base}/crons/${name}/activation`,
    headers: { [OPERATION_ID_HEADER]: operationId },
    body,
    subjects: { cron: name },
    reply: CronActivated,
    replay: 'safe',
  })
}

export function runCron(
  { session, base }: Remote,
  { name, operationId }: { readonly name: string; readonly operationId: OperationId },
) {
  return session.management({
    method: 'POST',
    path: `${base}/crons/${name}/run`,
    headers: { [OPERATION_ID_HEADER]: operationId },
    subjects: { cron: name },
    reply: ScheduledChanged,
    replay: 'safe',
  })
}
