/**
 * Rows of service_platform_audit, which are never changed, and removed after a time. They have IDs,
 * never credentials.
 */
import { SESSION_PURPOSES, type SessionPurpose } from '../../value/capabilities.ts'
import type {
  AuditId,
  CredentialId,
  InvitationId,
  OperationId,
  OperatorId,
  RequestId,
  SessionId,
} from '../../value/ids.ts'
import type { Parameter, RawRow } from '../connection.ts'
import type { Reader } from '../database.ts'
import { readBoolean, readCount, readId, readMember, readNullable, readText } from '../rows.ts'
import type { Tx } from '../transaction.ts'

const OUTCOMES = ['succeeded', 'denied', 'failed'] as const

export interface AuditRecord {
  readonly auditId: AuditId
  /** Name such as `session.create`; at most 128 characters. */
  readonly operation: string
  readonly outcome: (typeof OUTCOMES)[number]
  /** Null for the server itself, an application credential, and an unauthenticated caller. */
  readonly actor: OperatorId | null
  /** ID of the changed resource; at most 512 characters. */
  readonly subject: string | null
  readonly atMicros: bigint
  readonly requestId: RequestId | null
  readonly sessionId: SessionId | null
  readonly invitationId: InvitationId | null
  readonly operationId: OperationId | null
  /** The application credential whose development key made the change; null for any other. */
  readonly credentialId: CredentialId | null
  /** Purpose of the derived session that made the change, or was opened; null for others. */
  readonly purpose: SessionPurpose | null
}

/**
 * Inserts a record in the transaction of its change. `deliver` is for a change of another store,
 * whose record may be delivered twice.
 */
export async function insertAudit(
  writer: Reader,
  record: AuditRecord,
  mode: 'with-change' | 'deliver' = 'with-change',
): Promise<void> {
  const values: Parameter[] = [
    record.auditId,
    record.operation,
    record.outcome,
    record.actor,
    record.subject,
    record.atMicros,
    record.requestId,
    record.sessionId,
    record.invitationId,
    record.operationId,
    record.credentialId,
    record.purpose,
  ]
  await writer.rows(
    `insert into service_platform_audit
       (audit_id, operation, outcome, actor_operator_id, subject, at_micros, request_id,
        session_id, invitation_id, operation_id, credential_id, purpose)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     ${mode === 'deliver' ? 'on conflict (audit_id) do nothing' : ''}`,
    values,
  )
}

/** A position in the audit log, whose records are ordered by time, then by ID. */
export interface AuditPosition {
  readonly atMicros: bigint
  readonly auditId: AuditId
}

export interface AuditFilter {
  readonly actor: OperatorId | null
  readonly operation: string | null
  readonly fromMicros: bigint
  /** Exclusive. */
  readonly toMicros: bigint
  /** Only records older than this position; null for all. */
  readonly before: AuditPosition | null
}

const COLUMNS = `audit_id, operation, outcome, actor_operator_id, subject, at_micros, request_id,
            session_id, invitation_id, operation_id, credential_id, purpose`
/** Bounds before and after every ID. */
const FIRST_ID = ''
const LAST_ID = '~'

/** A record with the names of today, which the audit does not store. */
export interface NamedAuditRecord extends AuditRecord {
  readonly actorName: string | null
  /** Name of the operator that the subject is, or that its invitation or session belongs to. */
  readonly subjectName: string | null
}

/**
 * Lists at most `limit` records, newest first, along the index by time. Actor and operation are
 * filtered row by row, back to `floor`; null reads the whole span.
 */
export async function listAudit(
  reader: Reader,
  { actor, operation, fromMicros, toMicros, before }: AuditFilter,
  floor: AuditPosition | null,
  limit: number,
): Promise<NamedAuditRecord[]> {
  // Names are looked up for the rows of the page alone.
  const rows = await reader.rows(
    `select page.*,
            (select operator_name from service_operators
              where operator_id = page.actor_operator_id) as actor_name,
            coalesce(
              (select operator_name from service_operators where operator_id = page.subject),
              (select operator_name from service_operator_invitations
                where invitation_id = page.subject),
              (select o.operator_name
                 from service_operator_sessions s
                 join service_operators o on o.operator_id = s.operator_id
                where s.session_id = page.subject)) as subject_name
       from (select ${COLUMNS}
               from service_platform_audit
              where at_micros < $1
                and (at_micros, audit_id) < ($2::bigint, $3::text collate "C")
                and (at_micros, audit_id) >= ($4::bigint, $5::text collate "C")
                and ($6::text is null or actor_operator_id = $6)
                and ($7::text is null or operation = $7)
              order by at_micros desc, audit_id desc
              limit $8) as page
      order by page.at_micros desc, page.audit_id desc`,
    [
      toMicros,
      before?.atMicros ?? toMicros,
      before?.auditId ?? LAST_ID,
      floor?.atMicros ?? fromMicros,
      floor?.auditId ?? FIRST_ID,
      actor,
      operation,
      limit,
    ],
  )
  return rows.map((row) => ({
    ...toAuditRecord(row),
    actorName: readNullable(row, 'actor_name', readText),
    subjectName: readNullable(row, 'subject_name', readText),
  }))
}

/** The last of `count` records of the span, of any actor; null if there are fewer. */
export async function findAuditFloor(
  reader: Reader,
  { fromMicros, toMicros, before }: AuditFilter,
  count: number,
): Promise<AuditPosition | null> {
  const rows = await reader.rows(
    `select at_micros, audit_id
       from service_platform_audit
      where at_micros >= $1 and at_micros < $2
        and (at_micros, audit_id) < ($3::bigint, $4::text collate "C")
      order by at_micros desc, audit_id desc
     offset $5 limit 1`,
    [fromMicros, toMicros, before?.atMicros ?? toMicros, before?.auditId ?? LAST_ID, count - 1],
  )
  const row = rows[0]
  if (row === undefined) return null
  return { atMicros: readCount(row, 'at_micros'), auditId: readId(row, 'audit_id', 'aud') }
}

function toAuditRecord(row: RawRow): AuditRecord {
  return {
    auditId: readId(row, 'audit_id', 'aud'),
    operation: readText(row, 'operation'),
    outcome: readMember(row, 'outcome', OUTCOMES),
    actor: readNullable(row, 'actor_operator_id', (of, column) => readId(of, column, 'opr')),
    subject: readNullable(row, 'subject', readText),
    atMicros: readCount(row, 'at_micros'),
    requestId: readNullable(row, 'request_id', (of, column) => readId(of, column, 'req')),
    sessionId: readNullable(row, 'session_id', (of, column) => readId(of, column, 'ops')),
    invitationId: readNullable(row, 'invitation_id', (of, column) => readId(of, column, 'opi')),
    operationId: readNullable(row, 'operation_id', (of, column) => readId(of, column, 'opn')),
    credentialId: readNullable(row, 'credential_id', (of, column) => readId(of, column, 'crd')),
    purpose: readNullable(row, 'purpose', (of, column) => readMember(of, column, SESSION_PURPOSES)),
  }
}

/** Returns whether an invitation has a record of this operation. */
export async function hasInvitationRecord(
  reader: Reader,
  invitationId: InvitationId,
  operation: string,
): Promise<boolean> {
  const rows = await reader.rows(
    `select exists (select 1 from service_platform_audit
                     where invitation_id = $1 and operation = $2) as found`,
    [invitationId, operation],
  )
  return readBoolean(rows[0] ?? {}, 'found')
}

/**
 * Deletes at most `limit` records that are older, the oldest first. Skips rows that others delete.
 * Returns the number of deleted rows.
 */
export function deleteOldAudit(tx: Tx, beforeMicros: bigint, limit: number): Promise<number> {
  return tx.execute(
    `delete from service_platform_audit
      where audit_id in (
        select audit_id from service_platform_audit
         where at_micros < $1
         order by at_micros, audit_id
         limit $2
           for update skip locked)`,
    [beforeMicros, limit],
  )
}
