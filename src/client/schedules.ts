/** Requests of `svc scheduled` to the linked Environment. */
import type { OperationId } from '../value/ids.ts'
import { OPERATION_ID_HEADER } from '../wire/operations.ts'
import { ScheduledCanceled, ScheduledPage } from '../wire/schedules.ts'
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
    reply: ScheduledCanceled,
    replay: 'safe',
  })
}
