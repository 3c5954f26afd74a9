/** One coherent picture of Workspaces, Releases, Channels and the serving policy. */
import { type Channel, listChannelHistory, listChannels } from '../../storage/control/channels.ts'
import { findEnvironment } from '../../storage/control/environment.ts'
import { listReleases, type ReleaseRecord } from '../../storage/control/releases.ts'
import { findDesiredPolicy } from '../../storage/control/serving-policy.ts'
import { listWorkspaceHeads, type WorkspaceHead } from '../../storage/control/workspaces.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { Product } from '../product.ts'

/** Releases of a status beside those that a Channel or a HEAD names. */
const RELEASES_MAX = 1_000
/** Earlier bindings of one Channel. */
const HISTORY_MAX = 100

export interface Status {
  /** 0 in an Environment that nothing was published to. */
  readonly revision: bigint
  readonly lifecycle: 'active' | 'archived'
  readonly workspaces: readonly WorkspaceHead[]
  /** Newest first. */
  readonly releases: readonly ReleaseRecord[]
  readonly channels: readonly (Channel & { readonly history: readonly ReleaseId[] })[]
  /** null where there never was one; observed is 0 where environment:default serves nothing. */
  readonly servingPolicy: {
    readonly desiredRevision: bigint
    readonly observedRevision: bigint
  } | null
}

/** All reads run in one turn on the one connection, so nothing changes between them. */
export function readStatus({ root, serving }: Pick<Product, 'root' | 'serving'>): Status {
  return root.control.read((reader) => {
    const { revision, lifecycle } = findEnvironment(reader)!
    const policy = findDesiredPolicy(reader)
    return {
      revision,
      lifecycle,
      workspaces: listWorkspaceHeads(reader),
      releases: listReleases(reader, RELEASES_MAX),
      channels: listChannels(reader).map((channel) => ({
        ...channel,
        history: listChannelHistory(reader, channel.name, HISTORY_MAX),
      })),
      servingPolicy: policy && {
        desiredRevision: policy.revision,
        observedRevision: serving.observedPolicy?.revision ?? 0n,
      },
    }
  })
}
