/** Desired and observed state of the Environment, and what changes it. */
import {
  changeEnvironment,
  type EnvironmentChange,
  readEnvironment,
} from '../../product/environments.ts'
import {
  ENVIRONMENT_BODY_BYTES_MAX,
  type EnvironmentChanged,
  EnvironmentCreate,
  EnvironmentLifecycleChange,
  type EnvironmentState,
  EnvironmentUpdate,
} from '../../wire/environment.ts'
import { type Call, environmentRoute, type Reply, type Route } from '../route.ts'
import { operationField, operationRoute } from './operations.ts'
import type { ProductApp } from './product-app.ts'

const MANAGE = { capability: 'environments:manage', operationId: 'required' } as const

export const environmentRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '',
    capability: 'environments:read',
    handle({ app }) {
      const body: EnvironmentState = { version: 1, ...readEnvironment(app.product) }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '',
    ...MANAGE,
    body: { schema: EnvironmentCreate, bytesMax: ENVIRONMENT_BODY_BYTES_MAX },
    handle(call) {
      const { configuration } = call.body
      return change(call, { verb: 'create', configuration }, 201)
    },
  }),

  environmentRoute({
    method: 'PUT',
    path: '',
    ...MANAGE,
    body: { schema: EnvironmentUpdate, bytesMax: ENVIRONMENT_BODY_BYTES_MAX },
    handle(call) {
      const { configuration } = call.body
      const expectedRevision = BigInt(call.body.expectedRevision)
      return change(call, { verb: 'update', configuration, expectedRevision })
    },
  }),

  lifecycleRoute('archive'),
  lifecycleRoute('restore'),

  operationRoute({
    path: '/environment-operations',
    resource: 'environment',
    capability: 'environments:read',
  }),
]

function lifecycleRoute(verb: 'archive' | 'restore'): Route<ProductApp> {
  return environmentRoute({
    method: 'POST',
    path: `/${verb}`,
    ...MANAGE,
    body: { schema: EnvironmentLifecycleChange },
    handle(call) {
      return change(call, { verb, expectedRevision: BigInt(call.body.expectedRevision) })
    },
  })
}

function change(
  {
    app,
    actor,
    operationId,
    body: { changedAtMicros },
    requestId,
  }: Call<ProductApp, string, { readonly changedAtMicros: string }, 'required'>,
  asked: EnvironmentChange,
  status: 200 | 201 = 200,
): Reply {
  const { result, operation } = changeEnvironment(app.product, actor, {
    operationId,
    change: asked,
    changedAtMicros: BigInt(changedAtMicros),
    requestId,
  })
  const body: EnvironmentChanged = {
    version: 1,
    ...result,
    operation: operationField(operation),
  }
  return { status: operation.replayed ? 200 : status, body }
}
