/** Promotion of a Channel. */
import { Fault } from '../../errors/fault.ts'
import { CHANNEL_NAME, promote } from '../../product/channels.ts'
import { type Promoted, PromoteRequest } from '../../wire/channels.ts'
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
      const body: Promoted = {
        version: 1,
        channel: promoted.name,
        releaseId: promoted.releaseId,
        previousReleaseId: promoted.previousReleaseId,
        revision: String(promoted.revision),
        changedAtMicros: String(promoted.changedAtMicros),
        serving: promoted.serving,
      }
      return { status: 200, body }
    },
  }),
]

function readChannel(text: string): string {
  if (CHANNEL_NAME.test(text)) return text
  throw new Fault('PLATFORM_REQUEST_INVALID', {
    violations: [{ path: 'url', rule: 'a Channel name' }],
  })
}
