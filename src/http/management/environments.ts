/** Desired and observed state of the Environment, and its changes. */
import {
  changeEnvironment,
  type EnvironmentChange,
  readEnvironment,
} from '../../product/environments/environments.ts'
import {
  ENVIRONMENT_BODY_BYTES_MAX,
  EnvironmentChanged,
  EnvironmentCreate,
  EnvironmentLifecycleChange,
  EnvironmentState,
  EnvironmentUpdate,
} from '../../wire/environment.ts'
import { operationField, operationRoute } from './idempotency-operations.ts'
import type { ProductApp } from './product-app.ts'
import { type Call, environmentRoute, type Route } from './route.ts'

const MANAGE = {
  capability: 'environments:manage',
  operationId: 'required',
  errors: ['PRODUCT_CAS_CONFLICT', 'PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT'],
} as const

export const environmentRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '',
    name: 'readEnvironment',
    summary: 'Returns the desired and observed state of the Environment.',
    capability: 'environments:read',
    replies: { 200: EnvironmentState },
    handle({ app }) {
      const body: EnvironmentState = { version: 1, ...readEnvironment(app.product) }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '',
    name: 'createEnvironment',
    summary: 'Creates the Environment with its first configuration.',
    ...MANAGE,
    replies: { 200: EnvironmentChanged, 201: EnvironmentChanged },
    body: { schema: EnvironmentCreate, bytesMax: ENVIRONMENT_BODY_BYTES_MAX },
    handle(call) {
      const { configuration } = call.body
      const reply = change(call, { verb: 'create', configuration })
      return { ...reply, status: reply.body.operation.replayed ? 200 : 201 }
    },
  }),

  environmentRoute({
    method: 'PUT',
    path: '',
    name: 'updateEnvironment',
    summary: 'Replaces the configuration of the Environment.',
    ...MANAGE,
    replies: { 200: EnvironmentChanged },
    body: { schema: EnvironmentUpdate, bytesMax: ENVIRONMENT_BODY_BYTES_MAX },
    handle(call) {
      const { configuration } = call.body
      const expectedRevision = BigInt(call.body.expectedRevision)
      return change(call, { verb: 'update', configuration, expectedRevision })
    },
  }),

  lifecycleRoute('archive', 'Stops serving the Environment and keeps its data.'),
  lifecycleRoute('restore', 'Serves an archived Environment again.'),

  operationRoute({
    path: '/environment-operations',
    name: 'readEnvironmentOperation',
    resource: 'environment',
    capability: 'environments:read',
  }),
]

function lifecycleRoute(verb: 'archive' | 'restore', summary: string): Route<ProductApp> {
  return environmentRoute({
    method: 'POST',
    path: `/${verb}`,
    name: `${verb}Environment`,
    summary,
    ...MANAGE,
    replies: { 200: EnvironmentChanged },
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
