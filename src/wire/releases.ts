/** Validation and retirement of a Release (wire decisions, section 3). */
import * as z from 'zod'
import { ChannelName } from './channels.ts'
import { idField, Micros } from './fields.ts'

export const ReleaseStateField = z.enum(['published', 'validated', 'rejected', 'retired'])

export const ValidateRequest = z.strictObject({ against: ChannelName.exactOptional() })

export const CheckField = z.strictObject({
  name: z.string(),
  outcome: z.enum(['passed', 'failed']),
  detail: z.string(),
})

export const Validated = z.strictObject({
  version: z.literal(1),
  releaseId: idField('rel'),
  state: ReleaseStateField,
  checks: CheckField.array(),
  validatedAtMicros: Micros,
})
export type Validated = z.infer<typeof Validated>

export const Retired = z.strictObject({
  version: z.literal(1),
  releaseId: idField('rel'),
  state: z.literal('retired'),
})
export type Retired = z.infer<typeof Retired>
