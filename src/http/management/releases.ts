/** Validation of a Release. */
import { validate } from '../../product/releases.ts'
import { parseId } from '../../value/ids.ts'
import { type Validated, ValidateRequest } from '../../wire/releases.ts'
import { environmentRoute, type Route } from '../route.ts'
import type { ProductApp } from './product-app.ts'

export const releaseRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'POST',
    path: '/releases/:releaseId',
    capability: 'releases:publish',
    body: { schema: ValidateRequest },
    async handle({ app, actor, params, body: { against = null }, requestId }) {
      const releaseId = parseId('rel', params.releaseId)
      const validated = await validate(app.product, actor, { releaseId, against, requestId })
      const body: Validated = {
        version: 1,
        releaseId,
        state: validated.state,
        checks: [...validated.checks],
        validatedAtMicros: String(validated.validatedAtMicros),
      }
      return { status: 200, body }
    },
  }),
]
