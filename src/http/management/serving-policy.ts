/** The serving policy of environment:default, and whether its Releases fit each other. */
import {
  readSchemaEvidence,
  readServingPolicy,
  setServingPolicy,
} from '../../product/serving-policy.ts'
import {
  type SchemaCompatibility,
  type ServingPolicy,
  type ServingPolicyChanged,
  ServingPolicySet,
} from '../../wire/serving-policy.ts'
import { environmentRoute, type Route } from '../route.ts'
import { operationField, operationRoute } from './operations.ts'
import type { ProductApp } from './product-app.ts'

export const servingPolicyRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '/serving-policy',
    capability: 'releases:read',
    handle({ app }) {
      const body: ServingPolicy = { version: 1, ...readServingPolicy(app.product) }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'PUT',
    path: '/serving-policy',
    capability: 'channels:promote',
    operationId: 'required',
    body: { schema: ServingPolicySet },
    async handle({ app, actor, operationId, body: asked, requestId }) {
      const { result, operation } = await setServingPolicy(app.product, actor, {
        operationId,
        expectedRevision: BigInt(asked.expectedRevision),
        mode: asked.mode,
        releases: asked.releases,
        changedAtMicros: BigInt(asked.changedAtMicros),
        requestId,
      })
      const body: ServingPolicyChanged = {
        version: 1,
        ...result,
        operation: operationField(operation),
      }
      return { status: 200, body }
    },
  }),

  operationRoute({
    path: '/serving-policy-operations',
    resource: 'serving_policy',
    capability: 'releases:read',
  }),

  environmentRoute({
    method: 'GET',
    path: '/schemas/compatibility',
    capability: 'releases:read',
    async handle({ app }) {
      const { compatible, releases } = await readSchemaEvidence(app.product)
      const body: SchemaCompatibility = { version: 1, compatible, releases: [...releases] }
      return { status: 200, body }
    },
  }),
]
