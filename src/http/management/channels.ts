/** Promotion and rollback of a Channel. */
import type { BoundChannel } from '../../product/channels/bindings.ts'
import { promote } from '../../product/channels/promote.ts'
import { rollback } from '../../product/channels/rollback.ts'
import { Promoted, PromoteRequest, RollbackRequest } from '../../wire/channels.ts'
import type { ProductApp } from './product-app.ts'
import { environmentRoute, type Route } from './route.ts'

/** Errors of a Release that cannot be bound, or of a Channel that another request changed. */
const BINDING_ERRORS = [
  'PRODUCT_CAS_CONFLICT',
  'PRODUCT_INCOMPATIBLE',
  'PRODUCT_RELEASE_RETIRED',
  'PRODUCT_STATE_CONFLICT',
] as const

export const channelRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'PUT',
    path: '/channels/:channel',
    name: 'promoteRelease',
    summary: 'Binds a Channel to a Release.',
    capability: 'channels:promote',
    body: { schema: PromoteRequest },
    replies: { 200: Promoted },
    errors: ['PRODUCT_INVALID', ...BINDING_ERRORS],
    async handle({ app, actor, params, body: { releaseId, expectedReleaseId = null }, requestId }) {
      const promoted = await promote(app.product, actor, {
        channel: params.channel,
        releaseId,
        expectedReleaseId,
        requestId,
      })
      return { status: 200, body: promotedBody(promoted) }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '/channels/:channel/rollback',
    name: 'rollbackChannel',
    summary: 'Binds a Channel to a Release that it was bound to before.',
    capability: 'channels:promote',
    body: { schema: RollbackRequest },
    replies: { 200: Promoted },
    errors: [...BINDING_ERRORS],
    async handle({ app, actor, params: { channel }, body: asked, requestId }) {
      const rolledBack = await rollback(app.product, actor, { ...asked, channel, requestId })
      return { status: 200, body: promotedBody(rolledBack) }
    },
  }),
]

function promotedBody({ name, revision, changedAtMicros, ...binding }: BoundChannel): Promoted {
  return {
    version: 1,
    channel: name,
    releaseId: binding.releaseId,
    previousReleaseId: binding.previousReleaseId,
    revision: String(revision),
    changedAtMicros: String(changedAtMicros),
    serving: binding.serving,
  }
}
