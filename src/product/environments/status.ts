/** A consistent snapshot of Workspaces, Releases, Channels and the serving policy. */
import { type Channel, listChannelHistory, listChannels } from '../../storage/control/channels.ts'
import { findEnvironment } from '../../storage/control/environment.ts'
import { type ListedRelease, listReleases } from '../../storage/control/releases.ts'
import { findDesiredPolicy } from '../../storage/control/serving-policy.ts'
import { listWorkspaceHeads, type WorkspaceHead } from '../../storage/control/workspaces.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { RootPort } from '../ports.ts'
import type { Serving } from '../serving/serving.ts'

/**
 * Maximum number of the newest Releases in a status, beside all that a Channel or a HEAD
 * references.
 */
const RELEASES_MAX = 1_000
/** Maximum number of earlier bindings listed for each Channel. */
const HISTORY_MAX = 100

export interface Status {
  /** 0 before the first publication. */
  readonly revision: bigint
  readonly lifecycle: 'active' | 'archived'
  readonly workspaces: readonly WorkspaceHead[]
  /** Newest first. */
  readonly releases: readonly ListedRelease[]
  readonly channels: readonly (Channel & { readonly history: readonly ReleaseId[] })[]
  /** Null before the first policy; observed is 0 while environment:default serves nothing. */
  readonly servingPolicy: {
    readonly desiredRevision: bigint
    readonly observedRevision: bigint
  } | null
}

export interface StatusPorts extends RootPort {
  readonly serving: Pick<Serving, 'observedPolicy'>
}

/**
 * Reads everything in one turn of the event loop on one connection, so that no change happens in
 * between.
 */
export function readStatus({ root, serving }: StatusPorts): Status {
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
