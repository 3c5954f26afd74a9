/** Validation and retirement of a Release. */
import { validate } from '../../product/releases.ts'
import { retire } from '../../product/retirement.ts'
import { parseId } from '../../value/ids.ts'
import { type Retired, type Validated, ValidateRequest } from '../../wire/releases.ts'
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

  environmentRoute({
    method: 'POST',
    path: '/releases/:releaseId/retire',
    capability: 'releases:publish',
    handle({ app, actor, params, requestId }) {
      const releaseId = parseId('rel', params.releaseId)
      retire(app.product, actor, { releaseId, requestId })
      const body: Retired = { version: 1, releaseId, state: 'retired' }
      return { status: 200, body }
    },
  }),
]
