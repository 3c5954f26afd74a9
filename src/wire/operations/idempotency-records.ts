/** Look-ups of changes by their Operation ID. */
import type { Capability } from '../../value/capabilities.ts'
import { OperationField } from '../idempotency-records.ts'
import { environmentOperation } from './operation.ts'

/** Creates the look-up of a resource. 404: no change with the ID is committed yet. */
export function lookUpOperation<P extends `/${string}-operations`>(
  path: P,
  name: string,
  capability: Capability,
) {
  return environmentOperation({
    method: 'GET',
    path: `${path}/:operationId`,
    name,
    summary: 'Returns the outcome of a change. 404: no change with this ID is committed yet.',
    capability,
    replies: { 200: OperationField },
  })
}
