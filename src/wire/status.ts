/** The snapshot of Workspaces, Releases and Channels (wire decisions, section 3). */
import { ChannelName } from './channels.ts'
import { idField, Micros, U64 } from './fields.ts'
import { ReleaseStateField } from './releases.ts'
import { message } from './schema.ts'
import { DigestField, WorkspaceName } from './workspace.ts'

export const Status = message({
  version: '1',
  revision: U64,
  lifecycle: "'active' | 'archived'",
  /** Sorted by name. */
  workspaces: message({
    name: WorkspaceName,
    revisionId: idField('wsr'),
    releaseId: idField('rel'),
  }).array(),
  /** Newest first: the newest 1,000 and every one that a Workspace or a Channel names. */
  releases: message({
    releaseId: idField('rel'),
    state: ReleaseStateField,
    packageDigest: DigestField,
    createdAtMicros: Micros,
  }).array(),
  /** Sorted by name; `history` has at most 100 earlier bindings, newest first. */
  channels: message({
    channel: ChannelName,
    releaseId: idField('rel'),
    revision: U64,
    history: idField('rel').array(),
  }).array(),
  servingPolicy: message({ desiredRevision: U64, observedRevision: U64 }).or('null'),
})
export type Status = typeof Status.infer
