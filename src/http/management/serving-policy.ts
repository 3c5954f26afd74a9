/** The serving policy of environment:default, and the compatibility of its Releases. */
import { readSchemaEvidence } from '../../product/compatibility/schema-evidence.ts'
import { readServingPolicy, setServingPolicy } from '../../product/serving/serving-policy.ts'
import {
  SchemaCompatibility,
  ServingPolicy,
  ServingPolicyChanged,
  ServingPolicySet,
} from '../../wire/serving-policy.ts'
import { operationField, operationRoute } from './idempotency-operations.ts'
import type { ProductApp } from './product-app.ts'
import { environmentRoute, type Route } from './route.ts'

export const servingPolicyRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '/serving-policy',
    name: 'readServingPolicy',
    summary: 'Returns the desired and the observed serving policy of environment:default.',
    capability: 'releases:read',
    replies: { 200: ServingPolicy },
    handle({ app }) {
      const body: ServingPolicy = { version: 1, ...readServingPolicy(app.product) }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'PUT',
    path: '/serving-policy',
    name: 'setServingPolicy',
    summary: 'Replaces the serving policy of environment:default.',
    capability: 'channels:promote',
    operationId: 'required',
    body: { schema: ServingPolicySet },
    replies: { 200: ServingPolicyChanged },
    errors: [
      'PRODUCT_CAS_CONFLICT',
      'PRODUCT_INCOMPATIBLE',
      'PRODUCT_INVALID',
      'PRODUCT_RELEASE_RETIRED',
      'PRODUCT_STATE_CONFLICT',
    ],
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
    name: 'readServingPolicyOperation',
    resource: 'serving_policy',
    capability: 'releases:read',
  }),

  environmentRoute({
    method: 'GET',
    path: '/schemas/compatibility',
    name: 'readSchemaCompatibility',
    summary: 'Reports whether the Releases of the serving policy accept documents of each other.',
    capability: 'releases:read',
    replies: { 200: SchemaCompatibility },
    errors: ['PRODUCT_RELEASE_RETIRED'],
    async handle({ app }) {
      const { compatible, releases } = await readSchemaEvidence(app.product)
      const body: SchemaCompatibility = { version: 1, compatible, releases: [...releases] }
      return { status: 200, body }
    },
  }),
]
