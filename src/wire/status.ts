/** The snapshot of Workspaces, Releases and Channels (wire decisions, section 3). */
import * as z from 'zod'
import { ChannelName } from './channels.ts'
import { idField, Micros, U64 } from './fields.ts'
import { ReleaseStateField } from './releases.ts'
import { DigestField, WorkspaceName } from './workspace.ts'

export const Status = z.strictObject({
  version: z.literal(1),
  revision: U64,
  lifecycle: z.enum(['active', 'archived']),
  /** Sorted by name. */
  workspaces: z
    .strictObject({
      name: WorkspaceName,
      revisionId: idField('wsr'),
      releaseId: idField('rel'),
    })
    .array(),
  /** Newest first: the newest 1,000 and every one that a Workspace or a Channel names. */
  releases: z
    .strictObject({
      releaseId: idField('rel'),
      state: ReleaseStateField,
      packageDigest: DigestField,
      createdAtMicros: Micros,
    })
    .array(),
  /** Sorted by name; `history` has at most 100 earlier bindings, newest first. */
  channels: z
    .strictObject({
      channel: ChannelName,
      releaseId: idField('rel'),
      revision: U64,
      history: idField('rel').array(),
    })
    .array(),
  servingPolicy: z.strictObject({ desiredRevision: U64, observedRevision: U64 }).nullable(),
})
export type Status = z.infer<typeof Status>
