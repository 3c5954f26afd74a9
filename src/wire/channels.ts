/** Promotion and rollback of a Channel (contract/wire.md, Channels, status and serving policy). */
import { CHANNEL_NAME } from '../value/targets.ts'
import { idField, Micros, text, U64 } from './fields.ts'
import { type Infer, schema } from './schema.ts'

export const ChannelName = text(CHANNEL_NAME, 'a Channel name')

export const PromoteRequest = schema({
  releaseId: idField('rel'),
  /** Expected binding; without it the Channel moves from any binding. */
  'expectedReleaseId?': ["'empty'", '|', idField('rel')],
})

export const RollbackRequest = schema({
  targetReleaseId: idField('rel'),
  expectedReleaseId: idField('rel'),
})

export const Promoted = schema({
  version: '1',
  channel: ChannelName,
  releaseId: idField('rel'),
  previousReleaseId: [idField('rel'), '|', 'null'],
  revision: U64,
  changedAtMicros: Micros,
  serving: "'pending' | 'converged'",
})
export type Promoted = Infer<typeof Promoted>
