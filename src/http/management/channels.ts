/** Promotion and rollback of a Channel. */
import { Fault } from '../../errors/fault.ts'
import {
  type Promoted as Binding,
  CHANNEL_NAME,
  promote,
  rollback,
} from '../../product/channels.ts'
import { type Promoted, PromoteRequest, RollbackRequest } from '../../wire/channels.ts'
import { environmentRoute, type Route } from '../route.ts'
import type { ProductApp } from './product-app.ts'

export const channelRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'PUT',
    path: '/channels/:channel',
    capability: 'channels:promote',
    body: { schema: PromoteRequest },
    handle({ app, actor, params, body: { releaseId, expectedReleaseId = null }, requestId }) {
      const promoted = promote(app.product, actor, {
        channel: readChannel(params.channel),
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
    capability: 'channels:promote',
    body: { schema: RollbackRequest },
    async handle({ app, actor, params, body: asked, requestId }) {
      const channel = readChannel(params.channel)
      const rolledBack = await rollback(app.product, actor, { ...asked, channel, requestId })
      return { status: 200, body: promotedBody(rolledBack) }
    },
  }),
]

function promotedBody({ name, revision, changedAtMicros, ...binding }: Binding): Promoted {
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

function readChannel(text: string): string {
  if (CHANNEL_NAME.test(text)) return text
  throw new Fault('PLATFORM_REQUEST_INVALID', {
    violations: [{ path: 'url', rule: 'a Channel name' }],
  })
}
