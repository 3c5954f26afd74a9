/** Rows of service_platform_audit: appended, never changed. IDs only, never bearer material. */
import type {
  AuditId,
  InvitationId,
  OperationId,
  OperatorId,
  RequestId,
  SessionId,
} from '../../value/ids.ts'
import type { Parameter, RawRow } from '../connection.ts'
import type { Reader } from '../database.ts'
import { readBoolean, readCount, readId, readMember, readNullable, readText } from '../rows.ts'

const OUTCOMES = ['succeeded', 'denied', 'failed'] as const

export interface AuditRecord {
  readonly auditId: AuditId
  /** Such as `session.create`; 128 characters at most. */
  readonly operation: string
  readonly outcome: (typeof OUTCOMES)[number]
  /** null where the server itself or a stranger acts. */
  readonly actor: OperatorId | null
  /** The ID of what was changed; 512 characters at most. */
  readonly subject: string | null
  readonly atMicros: bigint
  readonly requestId: RequestId | null
  readonly sessionId: SessionId | null
  readonly invitationId: InvitationId | null
  readonly operationId: OperationId | null
}

/**
 * In the transaction of the change. `deliver` is for a change that another store has made: the same
 * record may come twice.
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
  ]
  await writer.rows(
    `insert into service_platform_audit
       (audit_id, operation, outcome, actor_operator_id, subject, at_micros, request_id,
        session_id, invitation_id, operation_id)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     ${mode === 'deliver' ? 'on conflict (audit_id) do nothing' : ''}`,
    values,
  )
}

/** A place in the audit: records are ordered by time, then by ID. */
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
  /** Records older than this one; null begins with the newest. */
  readonly before: AuditPosition | null
}

const COLUMNS = `audit_id, operation, outcome, actor_operator_id, subject, at_micros, request_id,
            session_id, invitation_id, operation_id`
/** Before every ID, and behind: its alphabet lies between the two. */
const FIRST_ID = ''
const LAST_ID = '~'

/**
 * Newest first, along the index by time, `limit` at most. Actor and operation are looked at row by
 * row, back to `floor`; null walks the whole span.
 */
export async function listAudit(
  reader: Reader,
  { actor, operation, fromMicros, toMicros, before }: AuditFilter,
  floor: AuditPosition | null,
  limit: number,
): Promise<AuditRecord[]> {
  const rows = await reader.rows(
    `select ${COLUMNS}
       from service_platform_audit
      where at_micros < $1
        and (at_micros, audit_id) < ($2::bigint, $3::text collate "C")
        and (at_micros, audit_id) >= ($4::bigint, $5::text collate "C")
        and ($6::text is null or actor_operator_id = $6)
        and ($7::text is null or operation = $7)
      order by at_micros desc, audit_id desc
      limit $8`,
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
  return rows.map(toAuditRecord)
}

/** The last of `count` records of the span, whoever made them; null where there are fewer. */
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
  }
}

/** Whether an invitation has a record with this operation. */
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
