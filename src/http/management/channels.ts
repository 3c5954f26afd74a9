/** Promotion and rollback of a Channel. */
import type { BoundChannel } from '../../product/channels/bindings.ts'
import { promote } from '../../product/channels/promote.ts'
import { rollback } from '../../product/channels/rollback.ts'
import type { Promoted } from '../../wire/channels.ts'
import { channelOperations } from '../../wire/operations/channels.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type Route } from './route.ts'

export const channelRoutes: readonly Route<ProductApp>[] = bind(channelOperations, {
  async promoteRelease({
    app,
    actor,
    params,
    body: { releaseId, expectedReleaseId = null },
    requestId,
  }) {
    const promoted = await promote(app.product, actor, {
      channel: params.channel,
      releaseId,
      expectedReleaseId,
      requestId,
    })
    return { status: 200, body: promotedBody(promoted) }
  },

  async rollbackChannel({ app, actor, params: { channel }, body: asked, requestId }) {
    const rolledBack = await rollback(app.product, actor, { ...asked, channel, requestId })
    return { status: 200, body: promotedBody(rolledBack) }
  },
})

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
