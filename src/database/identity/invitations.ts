/** Rows of service_operator_invitations. The caller interprets their state. */
import { type Capability, ROLES, type Role } from '../../value/capabilities.ts'
import type { InvitationId, OperatorId } from '../../value/ids.ts'
import type { Scope } from '../../value/scope.ts'
import type { RawRow } from '../connection.ts'
import type { Reader } from '../database.ts'
import {
  corrupt,
  readBytes,
  readCapabilities,
  readCount,
  readId,
  readMember,
  readNullable,
  readScope,
  readText,
} from '../rows.ts'
import { expectOneRow, type Tx } from '../transaction.ts'
import type { ExternalIdentity } from './identities.ts'

export interface Invitation {
  readonly invitationId: InvitationId
  readonly kind: 'bootstrap' | 'delegated'
  /** Digest of the code, which is never stored; null if `workload` stands in for a code. */
  readonly codeDigest: Uint8Array | null
  /** The identity whose first login consumes the invitation; null if a code does. */
  readonly workload: ExternalIdentity | null
  /** Null for the bootstrap invitation: the first owner chooses the name. */
  readonly operatorName: string | null
  /** Null for the bootstrap invitation, which the server creates. */
  readonly createdBy: OperatorId | null
  readonly role: Role
  readonly scope: Scope
  readonly capabilities: readonly Capability[]
  readonly state: 'pending' | 'consumed' | 'revoked'
  readonly createdAtMicros: bigint
  readonly expiresAtMicros: bigint
}

const COLUMNS = `invitation_id, kind, code_digest, operator_name, role, scope_kind, project_id,
       environment_id, capabilities, state, created_by, created_at_micros, expires_at_micros,
       provider_id, subject_digest`

/** Finds and locks the row, so that two exchanges of one code cannot both see it as pending. */
export async function lockInvitationByDigest(
  tx: Tx,
  codeDigest: Uint8Array,
): Promise<Invitation | null> {
  const rows = await tx.rows(
    `select ${COLUMNS} from service_operator_invitations where code_digest = $1 for update`,
    [codeDigest],
  )
  return rows[0] === undefined ? null : toInvitation(rows[0])
}

/** Finds and locks the row, so that it is not consumed before the transaction ends. */
export async function lockInvitation(
  tx: Tx,
  invitationId: InvitationId,
): Promise<Invitation | null> {
  const rows = await tx.rows(
    `select ${COLUMNS} from service_operator_invitations where invitation_id = $1 for update`,
    [invitationId],
  )
  return rows[0] === undefined ? null : toInvitation(rows[0])
}

/** Returns the invitation of an operation, which exists because of its foreign key. */
export async function getInvitation(
  reader: Reader,
  invitationId: InvitationId,
): Promise<Invitation> {
  const rows = await reader.rows(
    `select ${COLUMNS} from service_operator_invitations where invitation_id = $1`,
    [invitationId],
  )
  if (rows[0] === undefined) throw corrupt('operation without its invitation')
  return toInvitation(rows[0])
}

/**
 * Finds and locks the newest invitation that names the identity and has not expired. The caller has
 * the lock of the subject.
 */
export async function lockPendingInvitationOf(
  tx: Tx,
  { providerId, subjectDigest }: ExternalIdentity,
  atMicros: bigint,
): Promise<Invitation | null> {
  const rows = await tx.rows(
    `select ${COLUMNS}
       from service_operator_invitations
      where provider_id = $1 and subject_digest = $2
        and state = 'pending' and expires_at_micros > $3
      order by invitation_id desc
      limit 1
        for update`,
    [providerId, subjectDigest, atMicros],
  )
  return rows[0] === undefined ? null : toInvitation(rows[0])
}

/** Finds and locks the row, so that it is not consumed before the transaction ends. */
export async function lockPendingBootstrap(tx: Tx): Promise<Invitation | null> {
  const rows = await tx.rows(
    `select ${COLUMNS}
       from service_operator_invitations
      where kind = 'bootstrap' and state = 'pending'
        for update`,
    [],
  )
  return rows[0] === undefined ? null : toInvitation(rows[0])
}

export async function insertInvitation(
  tx: Tx,
  invitation: Invitation & { readonly state: 'pending' },
): Promise<void> {
  const { scope } = invitation
  const inserted = await tx.execute(
    `insert into service_operator_invitations
       (invitation_id, kind, code_digest, operator_name, role, scope_kind, project_id,
        environment_id, capabilities, state, created_by, created_at_micros, expires_at_micros,
        provider_id, subject_digest)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending', $10, $11, $12, $13, $14)`,
    [
      invitation.invitationId,
      invitation.kind,
      invitation.codeDigest,
      invitation.operatorName,
      invitation.role,
      scope.kind,
      scope.projectId,
      scope.environmentId,
      invitation.capabilities,
      invitation.createdBy,
      invitation.createdAtMicros,
      invitation.expiresAtMicros,
      invitation.workload?.providerId ?? null,
      invitation.workload?.subjectDigest ?? null,
    ],
  )
  expectOneRow(inserted, 'an invitation was not inserted')
}

export async function markInvitationConsumed(
  tx: Tx,
  invitationId: InvitationId,
  by: OperatorId,
  atMicros: bigint,
): Promise<void> {
  const changed = await tx.execute(
    `update service_operator_invitations
        set state = 'consumed', consumed_by = $2, consumed_at_micros = $3
      where invitation_id = $1 and state = 'pending'`,
    [invitationId, by, atMicros],
  )
  expectOneRow(changed, 'a locked invitation was not pending')
}

export async function markInvitationRevoked(
  tx: Tx,
  invitationId: InvitationId,
  atMicros: bigint,
): Promise<void> {
  const changed = await tx.execute(
    `update service_operator_invitations
        set state = 'revoked', revoked_at_micros = $2
      where invitation_id = $1 and state = 'pending'`,
    [invitationId, atMicros],
  )
  expectOneRow(changed, 'a locked invitation was not pending')
}

/** Revokes the pending invitations of all kinds. */
export async function markPendingInvitationsRevoked(tx: Tx, atMicros: bigint): Promise<void> {
  await tx.execute(
    `update service_operator_invitations
        set state = 'revoked', revoked_at_micros = $1
      where state = 'pending'`,
    [atMicros],
  )
}

/** The columns are both null or both set, by a constraint. */
function readWorkload(row: RawRow): ExternalIdentity | null {
  const providerId = readNullable(row, 'provider_id', readText)
  if (providerId === null) return null
  return { providerId, subjectDigest: readBytes(row, 'subject_digest') }
}

function toInvitation(row: RawRow): Invitation {
  return {
    invitationId: readId(row, 'invitation_id', 'opi'),
    kind: readMember(row, 'kind', ['bootstrap', 'delegated']),
    codeDigest: readNullable(row, 'code_digest', readBytes),
    workload: readWorkload(row),
    operatorName: readNullable(row, 'operator_name', readText),
    role: readMember(row, 'role', ROLES),
    scope: readScope(row),
    capabilities: readCapabilities(row, 'capabilities'),
    state: readMember(row, 'state', ['pending', 'consumed', 'revoked']),
    createdBy: readNullable(row, 'created_by', (of, column) => readId(of, column, 'opr')),
    createdAtMicros: readCount(row, 'created_at_micros'),
    expiresAtMicros: readCount(row, 'expires_at_micros'),
  }
}
