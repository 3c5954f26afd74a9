/** Promotion and rollback of a Channel (wire decisions, section 3). */
import { idField, Micros, U64 } from './fields.ts'
import { message } from './schema.ts'

export const ChannelName = message(/^[a-z][a-z0-9-]{0,62}$/).describe('a Channel name')

export const PromoteRequest = message({
  releaseId: idField('rel'),
  /** Without it the Channel moves whatever it is bound to. */
  'expectedReleaseId?': message("'empty'").or(idField('rel')),
})

export const RollbackRequest = message({
  targetReleaseId: idField('rel'),
  expectedReleaseId: idField('rel'),
})

export const Promoted = message({
  version: '1',
  channel: ChannelName,
  releaseId: idField('rel'),
  previousReleaseId: idField('rel').or('null'),
  revision: U64,
  changedAtMicros: Micros,
  serving: "'pending' | 'converged'",
})
export type Promoted = typeof Promoted.infer
