/** Validation and retirement of a Release (wire decisions, section 3). */
import { ChannelName } from './channels.ts'
import { idField, Micros } from './fields.ts'
import { message } from './schema.ts'

export const ReleaseStateField = message("'published' | 'validated' | 'rejected' | 'retired'")

export const ValidateRequest = message({ 'against?': ChannelName })

export const CheckField = message({
  name: 'string',
  outcome: "'passed' | 'failed'",
  detail: 'string',
})

export const Validated = message({
  version: '1',
  releaseId: idField('rel'),
  state: ReleaseStateField,
  checks: CheckField.array(),
  validatedAtMicros: Micros,
})
export type Validated = typeof Validated.infer

export const Retired = message({ version: '1', releaseId: idField('rel'), state: "'retired'" })
export type Retired = typeof Retired.infer
