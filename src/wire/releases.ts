/** Validation and retirement of a Release (wire decisions, section 3). */
import { ChannelName } from './channels.ts'
import { idField, Micros } from './fields.ts'
import { type Infer, schema } from './schema.ts'

export const ReleaseStateField = schema("'published' | 'validated' | 'rejected' | 'retired'")

export const ValidateRequest = schema({ 'against?': ChannelName })

export const CheckField = schema({
  name: 'string',
  outcome: "'passed' | 'failed'",
  detail: 'string',
})

export const Validated = schema({
  version: '1',
  releaseId: idField('rel'),
  state: ReleaseStateField,
  checks: [CheckField, '[]'],
  validatedAtMicros: Micros,
})
export type Validated = Infer<typeof Validated>

export const Retired = schema({
  version: '1',
  releaseId: idField('rel'),
  state: "'retired'",
})
export type Retired = Infer<typeof Retired>
