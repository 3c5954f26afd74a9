/** Promotion and rollback of a Channel (wire decisions, section 3). */
import * as z from 'zod'
import { CHANNEL_NAME } from '../value/targets.ts'
import { idField, Micros, text, U64 } from './fields.ts'

export const ChannelName = text(CHANNEL_NAME, 'a Channel name')

export const PromoteRequest = z.strictObject({
  releaseId: idField('rel'),
  /** Without it the Channel moves whatever it is bound to. */
  expectedReleaseId: z.literal('empty').or(idField('rel')).exactOptional(),
})

export const RollbackRequest = z.strictObject({
  targetReleaseId: idField('rel'),
  expectedReleaseId: idField('rel'),
})

export const Promoted = z.strictObject({
  version: z.literal(1),
  channel: ChannelName,
  releaseId: idField('rel'),
  previousReleaseId: idField('rel').nullable(),
  revision: U64,
  changedAtMicros: Micros,
  serving: z.enum(['pending', 'converged']),
})
export type Promoted = z.infer<typeof Promoted>
