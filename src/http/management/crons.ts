/** Crons: declarations with their activation, enabling and disabling, and runs by hand. */
import { activateCron, listCrons, runCron } from '../../product/crons/crons.ts'
import type { CronActivated, CronList } from '../../wire/crons.ts'
import { cronOperations } from '../../wire/operations/crons.ts'
import { lookUp, operationField } from './idempotency-operations.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type Route } from './route.ts'

export const cronRoutes: readonly Route<ProductApp>[] = bind(cronOperations, {
  async listCrons({ app, query: { target = null } }) {
    const { releaseId, crons } = await listCrons(app.product, target)
    const body: CronList = { version: 1, releaseId, crons: [...crons] }
    return { status: 200, body }
  },

  async activateCron({ app, actor, params, operationId, body: asked, requestId }) {
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

  async runCron({ app, actor, params, operationId, requestId }) {
    const input = { operationId, name: params.cron, requestId }
    const { result, operation } = await runCron(app.product, actor, input)
    const body = {
      version: 1 as const,
      ...result,
      operation: operationField(operation),
    }
    return { status: 200, body }
  },

  readCronOperation: lookUp('cron'),
})
