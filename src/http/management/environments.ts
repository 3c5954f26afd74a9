/** Desired and observed state of the Environment, and its changes. */
import {
  changeEnvironment,
  type EnvironmentChange,
  readEnvironment,
} from '../../product/environments/environments.ts'
import type { EnvironmentChanged, EnvironmentState } from '../../wire/environment.ts'
import { environmentOperations } from '../../wire/operations/environments.ts'
import { lookUp, operationField } from './idempotency-operations.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type Call, type Route } from './route.ts'

export const environmentRoutes: readonly Route<ProductApp>[] = bind(environmentOperations, {
  readEnvironment({ app }) {
    const body: EnvironmentState = { version: 1, ...readEnvironment(app.product) }
    return { status: 200, body }
  },

  createEnvironment(call) {
    const { configuration } = call.body
    const reply = change(call, { verb: 'create', configuration })
    return { ...reply, status: reply.body.operation.replayed ? 200 : 201 }
  },

  updateEnvironment(call) {
    const { configuration } = call.body
    const expectedRevision = BigInt(call.body.expectedRevision)
    return change(call, { verb: 'update', configuration, expectedRevision })
  },

  archiveEnvironment(call) {
    return change(call, { verb: 'archive', expectedRevision: BigInt(call.body.expectedRevision) })
  },

  restoreEnvironment(call) {
    return change(call, { verb: 'restore', expectedRevision: BigInt(call.body.expectedRevision) })
  },

  readEnvironmentOperation: lookUp('environment'),
})

function change(
  {
    app,
    actor,
    operationId,
    body: { changedAtMicros },
    requestId,
  }: Call<ProductApp, string, { readonly changedAtMicros: string }, 'required'>,
  requested: EnvironmentChange,
) {
  const { result, operation } = changeEnvironment(app.product, actor, {
    operationId,
    change: requested,
    changedAtMicros: BigInt(changedAtMicros),
    requestId,
  })
  const body: EnvironmentChanged = {
    version: 1,
    ...result,
    operation: operationField(operation),
  }
  return { status: 200 as const, body }
}
