/** Scopes, grants and invitations as they stand in messages (wire decisions, section 2). */
import * as z from 'zod'
import { CapabilityField, idField, Micros, Name, RoleField } from './fields.ts'

const InstallationScope = z.strictObject({
  kind: z.literal('installation'),
  projectId: z.null(),
  environmentId: z.null(),
})
export const ProjectScope = z.strictObject({
  kind: z.literal('project'),
  projectId: idField('prj'),
  environmentId: z.null(),
})
export const EnvironmentScope = z.strictObject({
  kind: z.literal('environment'),
  projectId: idField('prj'),
  environmentId: idField('env'),
})

export const ScopeField = z.discriminatedUnion('kind', [
  InstallationScope,
  ProjectScope,
  EnvironmentScope,
])

export const GrantField = z.strictObject({
  scope: ScopeField,
  capabilities: CapabilityField.array(),
  source: z.enum(['bootstrap', 'invitation', 'managed', 'legacy']),
})
export type GrantField = z.infer<typeof GrantField>

export const InvitationRequest = z.strictObject({
  operatorName: Name,
  role: RoleField,
  scope: ScopeField,
})
export type InvitationRequest = z.infer<typeof InvitationRequest>

const Invitation = z.strictObject({
  version: z.literal(1),
  /** null where the request had no Idempotency-Key. */
  operationId: idField('opn').nullable(),
  invitationId: idField('opi'),
  operatorName: Name,
  role: RoleField,
  scope: ScopeField,
  capabilities: CapabilityField.array(),
  createdAtMicros: Micros,
  expiresAtMicros: Micros,
  secretShownOnce: z.boolean(),
  replayed: z.boolean(),
})

/** `code` is there the first time alone. */
export const InvitationIssued = Invitation.extend({ code: z.string().max(256).exactOptional() })
export type InvitationIssued = z.infer<typeof InvitationIssued>

export const InvitationOperation = Invitation.extend({
  state: z.enum(['pending', 'consumed', 'revoked', 'expired']),
})
export type InvitationOperation = z.infer<typeof InvitationOperation>
