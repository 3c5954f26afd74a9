/**
 * The snapshot of Workspaces, Releases and Channels (contract/wire.md, Channels, status and serving
 * policy).
 */
import { ChannelName } from './channels.ts'
import { idField, Micros, U64 } from './fields.ts'
import { ReleaseStateField } from './releases.ts'
import { type Infer, schema } from './schema.ts'
import { DigestField, Provenance, WorkspaceName } from './workspace.ts'

export const Status = schema({
  version: '1',
  revision: U64,
  lifecycle: "'active' | 'archived'",
  /** Sorted by name. */
  workspaces: [
    {
      name: WorkspaceName,
      revisionId: idField('wsr'),
      releaseId: idField('rel'),
    },
    '[]',
  ],
  /** The newest 1,000 and all that a Workspace or a Channel references, newest first. */
  releases: [
    {
      releaseId: idField('rel'),
      state: ReleaseStateField,
      packageDigest: DigestField,
      createdAtMicros: Micros,
      /** null if the publisher declared none. */
      provenance: [Provenance, '|', 'null'],
    },
    '[]',
  ],
  /** Sorted by name; `history` has at most 100 earlier bindings, newest first. */
  channels: [
    {
      channel: ChannelName,
      releaseId: idField('rel'),
      revision: U64,
      history: [idField('rel'), '[]'],
    },
    '[]',
  ],
  servingPolicy: [{ desiredRevision: U64, observedRevision: U64 }, '|', 'null'],
})
export type Status = Infer<typeof Status>
