/** A delivery: the request of another service, as the handler of a hook gets it. */
import type { ValidatorJson } from '../validators.ts'

/**
 * The validator that `v.httpDelivery()` makes, an object like any other. Manifests contain it, so a
 * later form must accept this one too.
 */
export const HTTP_DELIVERY: ValidatorJson = {
  type: 'object',
  fields: {
    id: { type: 'string' },
    receivedAt: { type: 'timestamp' },
    method: { type: 'string' },
    path: { type: 'string' },
    headers: { type: 'record', values: { type: 'string' } },
    query: { type: 'record', values: { type: 'string' } },
    body: { type: 'bytes' },
    json: { type: 'optional', inner: { type: 'any' } },
  },
}
