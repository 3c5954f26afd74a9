/** Validation and retirement of a Release. */
import { retire } from '../../product/releases/retire.ts'
import { validate } from '../../product/releases/validate.ts'
import { releaseOperations } from '../../wire/operations/releases.ts'
import type { Retired, Validated } from '../../wire/releases.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type Route } from './route.ts'

export const releaseRoutes: readonly Route<ProductApp>[] = bind(releaseOperations, {
  async validateRelease({ app, actor, params, body: { against = null }, requestId }) {
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

  retireRelease({ app, actor, params, requestId }) {
    const { releaseId } = params
    retire(app.product, actor, { releaseId, requestId })
    const body: Retired = { version: 1, releaseId, state: 'retired' }
    return { status: 200, body }
  },
})
