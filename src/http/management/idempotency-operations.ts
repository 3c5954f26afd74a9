/** Outcome of a change with an Operation ID: in the response to it, and in a later look-up. */
import { findApplied, type Operation } from '../../product/idempotency/idempotency-records.ts'
import type { OperationField } from '../../wire/idempotency-records.ts'
import type { ProductApp } from './product-app.ts'
import type { Call } from './route.ts'

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

/** Creates the handler of a look-up. `resource` is the prefix of the operation kinds. */
export function lookUp(resource: string) {
  return ({ app, params }: Pick<Call<ProductApp, ':operationId', undefined>, 'app' | 'params'>) => {
    const { operationId } = params
    const body: OperationField = operationField(findApplied(app.product, resource, operationId))
    return { status: 200 as const, body }
  }
}
