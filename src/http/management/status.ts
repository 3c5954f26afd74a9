/** The snapshot of Workspaces, Releases and Channels. */
import { readStatus } from '../../product/environments/status.ts'
import { statusOperations } from '../../wire/operations/status.ts'
import type { Status } from '../../wire/status.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type Route } from './route.ts'

export const statusRoutes: readonly Route<ProductApp>[] = bind(statusOperations, {
  readStatus({ app }) {
    const status = readStatus(app.product)
    const { revision, lifecycle, workspaces, releases, channels, servingPolicy } = status
    const body: Status = {
      version: 1,
      revision: String(revision),
      lifecycle,
      workspaces: [...workspaces],
      releases: releases.map(({ releaseId, state, packageDigest, ...release }) => ({
        releaseId,
        state,
        packageDigest,
        createdAtMicros: String(release.createdAtMicros),
        provenance: release.provenance,
      })),
      channels: channels.map((channel) => ({
        channel: channel.name,
        releaseId: channel.releaseId,
        revision: String(channel.revision),
        history: [...channel.history],
      })),
      servingPolicy: servingPolicy && {
        desiredRevision: String(servingPolicy.desiredRevision),
        observedRevision: String(servingPolicy.observedRevision),
      },
    }
    return { status: 200, body }
  },
})
