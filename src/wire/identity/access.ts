/** Scopes, grants, invitations and operators in messages (contract/wire.md, Identity types). */
import { CAPABILITIES } from '../../value/capabilities.ts'
import {
  CapabilityField,
  idField,
  listUpTo,
  Micros,
  Name,
  PAGE_MAX,
  PageLimit,
  RoleField,
  secretUpTo,
  text,
} from '../fields.ts'
import { OperationField } from '../idempotency-records.ts'
import { rule } from '../rules.ts'
import { declaredSchema, type Infer, schema } from '../schema.ts'

/** Null as a predicate: with the keyword, arktype would distinguish scopes before `kind`. */
const Null = declaredSchema<null>([
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

/** Only the first response contains `code`; a workload gets no code. */
export const InvitationIssued = schema({ '...': Invitation, 'code?': secretUpTo(256) })
export type InvitationIssued = Infer<typeof InvitationIssued>

export const InvitationOperation = schema({
  '...': Invitation,
  state: "'pending' | 'consumed' | 'revoked' | 'expired'",
})
export type InvitationOperation = Infer<typeof InvitationOperation>

export const OperatorsQuery = schema({
  'limit?': PageLimit,
  /** The `next` of the page before. */
  'after?': idField('opr'),
})

export const OperatorRecord = schema({
  operatorId: idField('opr'),
  operatorName: Name,
  createdAtMicros: Micros,
  /** null for an enabled operator. */
  disabledAtMicros: [Micros, '|', 'null'],
  /** The last use of any session; null for an operator that never had one. */
  lastUsedAtMicros: [Micros, '|', 'null'],
  grants: [GrantField, '[]'],
  identities: [{ providerId: 'string', linkedAtMicros: Micros }, '[]'],
})
export type OperatorRecord = Infer<typeof OperatorRecord>

export const OperatorPage = schema({
  version: '1',
  items: listUpTo(OperatorRecord, PAGE_MAX),
  /** `after` of the next page; null at the end. */
  next: [idField('opr'), '|', 'null'],
})
export type OperatorPage = Infer<typeof OperatorPage>

export const OperatorChangeRequest = schema({
  /** The client's clock, within 24 hours of the server's. */
  changedAtMicros: Micros,
})

const Capabilities = listUpTo(CapabilityField, CAPABILITIES.length)

export const GrantChangeRequest = schema({
  scope: ScopeField,
  /** The role whose capabilities the grant gets; null revokes it. */
  role: [RoleField, '|', 'null'],
  /** The capabilities that the caller saw at the scope; null for no grant. */
  expectedCapabilities: [Capabilities, '|', 'null'],
})
export type GrantChangeRequest = Infer<typeof GrantChangeRequest>

export const GrantChanged = schema({
  version: '1',
  operatorId: idField('opr'),
  /** False if the grant was as wanted already. */
  applied: 'boolean',
  /** All grants of the operator after it. */
  grants: [GrantField, '[]'],
})
export type GrantChanged = Infer<typeof GrantChanged>

export const OperatorChanged = schema({
  version: '1',
  operatorId: idField('opr'),
  disabledAtMicros: [Micros, '|', 'null'],
  operation: OperationField,
})
export type OperatorChanged = Infer<typeof OperatorChanged>
