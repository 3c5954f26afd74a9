/** Scopes, grants and invitations as they stand in messages (wire decisions, section 2). */
import { CapabilityField, idField, Micros, Name, RoleField, text, textUpTo } from './fields.ts'
import { rule } from './rules.ts'
import { type Infer, schema, schemaOf } from './schema.ts'

/** Null as a predicate: with the keyword, arktype would distinguish scopes before `kind`. */
const Null = schemaOf<null>([
  'unknown',
  ':',
  rule('null', (data) => data === null, { type: 'null' }),
])

const InstallationScope = schema({
  kind: "'installation'",
  projectId: Null,
  environmentId: Null,
})
export const ProjectScope = schema({
  kind: "'project'",
  projectId: idField('prj'),
  environmentId: Null,
})
export const EnvironmentScope = schema({
  kind: "'environment'",
  projectId: idField('prj'),
  environmentId: idField('env'),
})

export const ScopeField = schema([[InstallationScope, '|', ProjectScope], '|', EnvironmentScope])

export const GrantField = schema({
  scope: ScopeField,
  capabilities: [CapabilityField, '[]'],
  source: "'bootstrap' | 'invitation' | 'managed' | 'legacy'",
})
export type GrantField = Infer<typeof GrantField>

const ProviderId = text(
  /^[^\u0000-\u001f\u007f-\u009f]{1,256}$/,
  'the ID of a provider, 1 to 256 printable characters',
)

export const InvitationRequest = schema({
  operatorName: Name,
  role: RoleField,
  scope: ScopeField,
  /** The identity whose first login consumes the invitation, in place of a code. */
  'workload?': {
    providerId: ProviderId,
    subject: text(
      /^[^\u0000-\u001f\u007f-\u009f]{1,255}$/u,
      'the sub claim of its tokens, 1 to 255 printable characters',
    ),
  },
})
export type InvitationRequest = Infer<typeof InvitationRequest>

const Invitation = schema({
  version: '1',
  /** Null for a request without Idempotency-Key. */
  operationId: [idField('opn'), '|', 'null'],
  invitationId: idField('opi'),
  operatorName: Name,
  role: RoleField,
  scope: ScopeField,
  capabilities: [CapabilityField, '[]'],
  createdAtMicros: Micros,
  expiresAtMicros: Micros,
  secretShownOnce: 'boolean',
  replayed: 'boolean',
  /** Its subject is not kept, only a digest of it. */
  'workload?': { providerId: ProviderId },
})

/** Only the first response contains `code`, and none for a workload. */
export const InvitationIssued = schema({ '...': Invitation, 'code?': textUpTo(256) })
export type InvitationIssued = Infer<typeof InvitationIssued>

export const InvitationOperation = schema({
  '...': Invitation,
  state: "'pending' | 'consumed' | 'revoked' | 'expired'",
})
export type InvitationOperation = Infer<typeof InvitationOperation>
