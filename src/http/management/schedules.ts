/** Scheduled work: the queue with its history, and the cancellation of a piece. */
import { cancelScheduled, listScheduled } from '../../product/schedules/scheduled-work.ts'
import type { Id } from '../../value/ids.ts'
import { PAGE_DEFAULT } from '../../wire/fields.ts'
import { scheduleOperations } from '../../wire/operations/schedules.ts'
import { operationField } from './idempotency-operations.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type Route } from './route.ts'

export const scheduleRoutes: readonly Route<ProductApp>[] = bind(scheduleOperations, {
  async listScheduled({ app, query: { after = null, limit = PAGE_DEFAULT } }) {
    const { items, nextId } = await listScheduled(app.product, { after, limit })
    const next = nextId as Id<'sch'> | null
    return { status: 200, body: { version: 1 as const, items: [...items], next } }
  },

  async cancelScheduled({ app, actor, params, operationId, requestId }) {
    const { scheduledId } = params
    const input = { scheduledId, operationId, requestId }
    const { result, operation } = await cancelScheduled(app.product, actor, input)
    const body = {
      version: 1 as const,
      ...result,
      operation: operationField(operation),
    }
    return { status: 200, body }
  },
})
