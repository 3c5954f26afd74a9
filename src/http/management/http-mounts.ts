/** Mounts of the routes of `http.ts`. Only the first response to a change has the secret. */
import { changeMount, readMounts, removeMount } from '../../product/http-mounts/mounts.ts'
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

  readMountOperation: lookUp('http_mount'),
})

function revisionOf(asked: string | number | undefined): bigint | null {
  return asked === undefined ? null : BigInt(asked)
}
