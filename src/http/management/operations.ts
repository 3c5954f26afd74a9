/** What a change that carried an Operation ID came to: with its answer, and looked up later. */
import { findApplied, type Operation } from '../../product/operations.ts'
import type { Capability } from '../../value/capabilities.ts'
import { parseId } from '../../value/ids.ts'
import type { OperationField } from '../../wire/operations.ts'
import { environmentRoute, type Route } from '../route.ts'
import type { ProductApp } from './product-app.ts'

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

/** Answers 404 where nothing was committed on the resource, until then. */
export function operationRoute({
  path,
  resource,
  capability,
}: {
  readonly path: `/${string}-operations`
  /** First part of the kind of its operations. */
  readonly resource: string
  readonly capability: Capability
}): Route<ProductApp> {
  return environmentRoute({
    method: 'GET',
    path: `${path}/:operationId`,
    capability,
    handle({ app, params }) {
      const operationId = parseId('opn', params.operationId)
      const body: OperationField = operationField(findApplied(app.product, resource, operationId))
      return { status: 200, body }
    },
  })
}
