/**
 * Mounts of the routes of `http.ts`, and what other services delivered to them. Only the first
 * response to a change of a mount has its secret.
 */
import { holds } from '../../identity/actor.ts'
import {
  listDeliveries,
  readDelivery,
  replayDelivery,
} from '../../product/http-mounts/deliveries.ts'
import { changeMount, readMounts, removeMount } from '../../product/http-mounts/mounts.ts'
import type { Id } from '../../value/ids.ts'
import { environmentScope } from '../../value/scope.ts'
import { PAGE_DEFAULT } from '../../wire/fields.ts'
import type { DeliveryPage, DeliveryRead, DeliveryReplayed } from '../../wire/http/deliveries.ts'
import type { MountChanged, MountDeleted } from '../../wire/http/mounts.ts'
import { httpMountOperations } from '../../wire/operations/http-mounts.ts'
import { lookUp, operationField } from './idempotency-operations.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type Route } from './route.ts'

export const httpMountRoutes: readonly Route<ProductApp>[] = bind(httpMountOperations, {
  listMounts({ app }) {
    return { status: 200, body: { version: 1 as const, mounts: [...readMounts(app.product)] } }
  },

  putMount({ app, actor, params, operationId, body: asked, requestId }) {
    const { result, operation, token } = changeMount(app.product, actor, {
      operationId,
      name: params.mount,
      configuration: asked.configuration,
      expectedRevision: revisionOf(asked.expectedRevision),
      changedAtMicros: BigInt(asked.changedAtMicros),
      requestId,
    })
    const field = operationField(operation)
    const shown = token === null ? null : token.reveal()
    const body: MountChanged = { version: 1, ...result, token: shown, operation: field }
    return { status: result.revision === '1' && !operation.replayed ? 201 : 200, body }
  },

  deleteMount({ app, actor, params, operationId, body: asked, requestId }) {
    const { result, operation } = removeMount(app.product, actor, {
      operationId,
      name: params.mount,
      expectedRevision: revisionOf(asked.expectedRevision),
      changedAtMicros: BigInt(asked.changedAtMicros),
      requestId,
    })
    const body: MountDeleted = { version: 1, ...result, operation: operationField(operation) }
    return { status: 200, body }
  },

  async listDeliveries({ app, params: { mount }, query }) {
    const { state = null, route = null, after = null, limit = PAGE_DEFAULT } = query
    const page = await listDeliveries(app.product, { mount, state, route, after, limit })
    const next = page.nextId as Id<'sch'> | null
    const body: DeliveryPage = { version: 1, items: [...page.items], next }
    return { status: 200, body }
  },

  async readDelivery({ app, actor, params: { mount, scheduledId, ...environment } }) {
    const scope = environmentScope(environment.projectId, environment.environmentId)
    const mayReadContent = holds(actor, 'data:read', scope)
    const named = { mount, deliveryId: scheduledId, mayReadContent }
    const body: DeliveryRead = { version: 1, ...(await readDelivery(app.product, named)) }
    return { status: 200, body }
  },

  async replayDelivery({ app, actor, params, operationId, requestId }) {
    const { mount, scheduledId: deliveryId } = params
    const input = { mount, deliveryId, operationId, requestId }
    const { result, operation } = await replayDelivery(app.product, actor, input)
    const field = operationField(operation)
    const body: DeliveryReplayed = { version: 1, ...result, operation: field }
    return { status: 200, body }
  },

  readMountOperation: lookUp('http_mount'),
})

function revisionOf(asked: string | number | undefined): bigint | null {
  return asked === undefined ? null : BigInt(asked)
}
