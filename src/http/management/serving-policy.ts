/** The serving policy of environment:default, and the compatibility of its Releases. */
import { readSchemaEvidence } from '../../product/compatibility/schema-evidence.ts'
import { readServingPolicy, setServingPolicy } from '../../product/serving/serving-policy.ts'
import { servingPolicyOperations } from '../../wire/operations/serving-policy.ts'
import type {
  SchemaCompatibility,
  ServingPolicy,
  ServingPolicyChanged,
} from '../../wire/serving-policy.ts'
import { lookUp, operationField } from './idempotency-operations.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type Route } from './route.ts'

export const servingPolicyRoutes: readonly Route<ProductApp>[] = bind(servingPolicyOperations, {
  readServingPolicy({ app }) {
    const body: ServingPolicy = { version: 1, ...readServingPolicy(app.product) }
    return { status: 200, body }
  },

  async setServingPolicy({ app, actor, operationId, body: asked, requestId }) {
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

  readServingPolicyOperation: lookUp('serving_policy'),

  async readSchemaCompatibility({ app }) {
    const { compatible, releases } = await readSchemaEvidence(app.product)
    const body: SchemaCompatibility = { version: 1, compatible, releases: [...releases] }
    return { status: 200, body }
  },
})
