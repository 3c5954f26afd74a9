/** Crons: declarations with their activation, enabling and disabling, and runs by hand. */
import { activateCron, listCrons, runCron } from '../../product/crons/crons.ts'
import { CronActivate, CronActivated, CronList, CronsQuery } from '../../wire/crons.ts'
import { ScheduledChanged } from '../../wire/schedules.ts'
import { operationField, operationRoute } from './idempotency-operations.ts'
import type { ProductApp } from './product-app.ts'
import { environmentRoute, type Route } from './route.ts'
import { workField } from './schedules.ts'

export const cronRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '/crons',
    name: 'listCrons',
    summary: 'Lists the Crons of a target, or those in force, with their activation.',
    capability: 'cron:read',
    query: CronsQuery,
    replies: { 200: CronList },
    errors: ['PRODUCT_INVALID', 'PRODUCT_RELEASE_RETIRED', 'PRODUCT_UNAVAILABLE'],
    async handle({ app, query: { target = null } }) {
      const { releaseId, crons } = await listCrons(app.product, target)
      const body: CronList = { version: 1, releaseId, crons: [...crons] }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'PUT',
    path: '/crons/:cron/activation',
    name: 'activateCron',
    summary: 'Enables or disables a Cron in force, also for later Releases.',
    capability: 'cron:activate',
    operationId: 'required',
    body: { schema: CronActivate },
    replies: { 200: CronActivated },
    errors: ['PRODUCT_CAS_CONFLICT', 'PRODUCT_INVALID', 'PRODUCT_UNAVAILABLE'],
    async handle({ app, actor, params, operationId, body: asked, requestId }) {
      const { result, operation } = await activateCron(app.product, actor, {
        operationId,
        name: params.cron,
        activation: asked.activation,
        expectedRevision: BigInt(asked.expectedRevision),
        changedAtMicros: BigInt(asked.changedAtMicros),
        requestId,
      })
      const body: CronActivated = { version: 1, ...result, operation: operationField(operation) }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '/crons/:cron/run',
    name: 'runCron',
    summary: 'Schedules a run of a Cron in force now, whether it is enabled or not.',
    capability: 'cron:activate',
    operationId: 'required',
    replies: { 200: ScheduledChanged },
    errors: ['PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT', 'PRODUCT_UNAVAILABLE'],
    async handle({ app, actor, params, operationId, requestId }) {
      const input = { operationId, name: params.cron, requestId }
      const { result, operation } = await runCron(app.product, actor, input)
      const body = {
        version: 1 as const,
        ...workField(result),
        operation: operationField(operation),
      }
      return { status: 200, body }
    },
  }),

  operationRoute({
    path: '/cron-operations',
    name: 'readCronOperation',
    resource: 'cron',
    capability: 'cron:read',
  }),
]
