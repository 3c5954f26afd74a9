/** Outcome of a change with an Operation ID: in the response to it, and in a later look-up. */
import { findApplied, type Operation } from '../../product/idempotency/idempotency-records.ts'
import type { Capability } from '../../value/capabilities.ts'
import { OperationField } from '../../wire/operations.ts'
import type { ProductApp } from './product-app.ts'
import { environmentRoute, type Route } from './route.ts'

export function operationField({
  revision,
  createdAtMicros,
  ...operation
}: Operation): OperationField {
  return {
    version: 1,
    ...operation,
    outcome: 'applied',
    revision: String(revision),
    createdAtMicros: String(createdAtMicros),
  }
}

/** Creates the look-up route of a resource. 404: no change with the ID is committed yet. */
export function operationRoute({
  path,
  name,
  resource,
  capability,
}: {
  readonly path: `/${string}-operations`
  readonly name: string
  /** Prefix of the operation kinds, such as `environment`. */
  readonly resource: string
  readonly capability: Capability
}): Route<ProductApp> {
  return environmentRoute({
    method: 'GET',
    path: `${path}/:operationId`,
    name,
    summary: 'Returns the outcome of a change. 404: no change with this ID is committed yet.',
    capability,
    replies: { 200: OperationField },
    handle({ app, params }) {
      const { operationId } = params
      const body: OperationField = operationField(findApplied(app.product, resource, operationId))
      return { status: 200, body }
    },
  })
}
