/** Validation and retirement of a Release. */

import { retire } from '../../product/releases/retire.ts'
import { validate } from '../../product/releases/validate.ts'
import { Retired, Validated, ValidateRequest } from '../../wire/releases.ts'
import type { ProductApp } from './product-app.ts'
import { environmentRoute, type Route } from './route.ts'

export const releaseRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'POST',
    path: '/releases/:releaseId',
    name: 'validateRelease',
    summary: 'Validates a published Release, also against the Release of a Channel.',
    capability: 'releases:publish',
    body: { schema: ValidateRequest },
    replies: { 200: Validated },
    errors: ['PRODUCT_INCOMPATIBLE', 'PRODUCT_RELEASE_RETIRED'],
    async handle({ app, actor, params, body: { against = null }, requestId }) {
      const { releaseId } = params
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
    name: 'retireRelease',
    summary: 'Retires a Release that no Channel or serving policy uses.',
    capability: 'releases:publish',
    replies: { 200: Retired },
    errors: ['PRODUCT_STATE_CONFLICT'],
    handle({ app, actor, params, requestId }) {
      const { releaseId } = params
      retire(app.product, actor, { releaseId, requestId })
      const body: Retired = { version: 1, releaseId, state: 'retired' }
      return { status: 200, body }
    },
  }),
]
