/** Scheduled work: the queue with its history, and the cancellation of a piece. */
import {
  cancelScheduled,
  listScheduled,
  type WorkState,
} from '../../product/schedules/scheduled-work.ts'
import type { Id, ReleaseId } from '../../value/ids.ts'
import { PAGE_DEFAULT } from '../../wire/fields.ts'
import { ScheduledChanged, ScheduledPage, ScheduledQuery } from '../../wire/schedules.ts'
import { operationField } from './idempotency-operations.ts'
import type { ProductApp } from './product-app.ts'
import { environmentRoute, type Route } from './route.ts'

export const scheduleRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '/scheduled',
    name: 'listScheduled',
    summary: 'Scheduled work that is pending or has ended within 7 days, in the order of the IDs.',
    capability: 'schedules:read',
    query: ScheduledQuery,
    replies: { 200: ScheduledPage },
    errors: ['PRODUCT_UNAVAILABLE'],
    async handle({ app, query: { after = null, limit = PAGE_DEFAULT } }) {
      const { items, nextId } = await listScheduled(app.product, { after, limit })
      const next = nextId as Id<'sch'> | null
      return { status: 200, body: { version: 1 as const, items: items.map(workField), next } }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '/scheduled/:scheduledId/cancel',
    name: 'cancelScheduled',
    summary: 'Cancels scheduled work that has not started.',
    capability: 'cron:activate',
    operationId: 'required',
    replies: { 200: ScheduledChanged },
    errors: ['PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT', 'PRODUCT_UNAVAILABLE'],
    async handle({ app, actor, params, operationId, requestId }) {
      const { scheduledId } = params
      const input = { scheduledId, operationId, requestId }
      const { result, operation } = await cancelScheduled(app.product, actor, input)
      const body = {
        version: 1 as const,
        ...workField(result),
        operation: operationField(operation),
      }
      return { status: 200, body }
    },
  }),
]

export function workField(work: WorkState): ScheduledPage['items'][number] {
  const { scheduledId, releaseId, ...fields } = work
  return {
    ...fields,
    scheduledId: scheduledId as Id<'sch'>,
    releaseId: releaseId as ReleaseId,
  }
}
