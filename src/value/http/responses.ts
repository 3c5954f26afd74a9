/** A response of HTTP, as the result of a Function. */
import type { ValidatorJson } from '../validators.ts'

/**
 * The validator that `v.httpResponse()` makes, an object like any other. Manifests contain it, so a
 * later form must accept this one too.
 */
export const HTTP_RESPONSE: ValidatorJson = {
  type: 'object',
  fields: {
    status: { type: 'optional', inner: { type: 'float64' } },
    headers: { type: 'optional', inner: { type: 'record', values: { type: 'string' } } },
    contentType: { type: 'optional', inner: { type: 'string' } },
    body: {
      type: 'optional',
      inner: { type: 'union', members: [{ type: 'string' }, { type: 'bytes' }] },
    },
    json: { type: 'optional', inner: { type: 'any' } },
  },
}
