/** Checks, validation and retirement of a Release (wire decisions, section 3). */
import { ChannelName } from './channels.ts'
import { idField, Micros } from './fields.ts'
import { type Infer, schema } from './schema.ts'
import { DigestField, WorkspaceName } from './workspace.ts'

export const ReleaseStateField = schema("'published' | 'validated' | 'rejected' | 'retired'")

export const ValidateRequest = schema({ 'against?': ChannelName })

export const CheckField = schema({
  name: 'string',
  outcome: "'passed' | 'failed'",
  detail: 'string',
})

export const CheckQuery = schema({
  /** A Channel whose Release the schema must stay compatible with. */
  'against?': ChannelName,
})

/** A package that was checked and not published. */
export const PackageChecked = schema({
  version: '1',
  workspace: WorkspaceName,
  packageDigest: DigestField,
  /** Whether every check passed; after the first kind that fails no other is made. */
  compatible: 'boolean',
  checks: [CheckField, '[]'],
})
export type PackageChecked = Infer<typeof PackageChecked>

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
