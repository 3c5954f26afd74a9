/** Scopes, grants and invitations as they stand in messages (wire decisions, section 2). */
import { CapabilityField, idField, Micros, Name, RoleField } from './fields.ts'
import { message } from './schema.ts'

export const ScopeField = message({
  kind: "'installation'",
  projectId: 'null',
  environmentId: 'null',
})
  .or({ kind: "'project'", projectId: idField('prj'), environmentId: 'null' })
  .or({ kind: "'environment'", projectId: idField('prj'), environmentId: idField('env') })

export const GrantField = message({
  scope: ScopeField,
  capabilities: CapabilityField.array(),
  source: "'bootstrap' | 'invitation' | 'managed' | 'legacy'",
})
export type GrantField = typeof GrantField.infer

export const InvitationRequest = message({
  operatorName: Name,
  role: RoleField,
  scope: ScopeField,
})
export type InvitationRequest = typeof InvitationRequest.infer

const Invitation = message({
  version: '1',
  /** null where the request had no Idempotency-Key. */
  operationId: idField('opn').or('null'),
  invitationId: idField('opi'),
  operatorName: Name,
  role: RoleField,
  scope: ScopeField,
  capabilities: CapabilityField.array(),
  createdAtMicros: Micros,
  expiresAtMicros: Micros,
  secretShownOnce: 'boolean',
  replayed: 'boolean',
})

/** `code` is there the first time alone. */
export const InvitationIssued = Invitation.merge({ 'code?': 'string <= 256' })
export type InvitationIssued = typeof InvitationIssued.infer

export const InvitationOperation = Invitation.merge({
  state: "'pending' | 'consumed' | 'revoked' | 'expired'",
})
export type InvitationOperation = typeof InvitationOperation.infer
