/** Rows of service_operator_sessions. Digests of tokens are stored and never returned. */
import { type Capability, SESSION_PURPOSES, type SessionPurpose } from '../../value/capabilities.ts'
import type { OperatorId, SessionId } from '../../value/ids.ts'
import type { Scope } from '../../value/scope.ts'
import type { RawRow } from '../connection.ts'
import type { Database, Reader } from '../database.ts'
import {
  corrupt,
  readCapabilities,
  readCount,
  readId,
  readMember,
  readNullable,
  readScope,
  readText,
} from '../rows.ts'
import { expectOneRow, type Tx } from '../transaction.ts'
import { type Grant, toGrant } from './grants.ts'
import { type Operator, toOperator } from './operators.ts'

export interface Session {
  readonly sessionId: SessionId
  readonly operatorId: OperatorId
  readonly deviceName: string | null
  readonly createdAtMicros: bigint
  readonly lastUsedAtMicros: bigint
  readonly accessExpiresAtMicros: bigint
  /** Absolute expiry, which a refresh does not extend; that of the access token without one. */
  readonly refreshExpiresAtMicros: bigint
  /** Null for the session of a login. */
  readonly derivation: Derivation | null
}

/** The bounds of a derived session. */
export interface Derivation {
  /** The session that was logged in, with which this one ends. */
  readonly parentSessionId: SessionId
  readonly purpose: SessionPurpose
  /** The most that the session may do, sorted. Its operator may have less. */
  readonly capabilities: readonly Capability[]
  readonly scope: Scope
}

export interface SessionDigests {
  readonly access: Uint8Array
  readonly refresh: Uint8Array
}

/** Digests of a new session; `refresh` is null if it has no refresh token. */
export type FirstDigests = Pick<SessionDigests, 'access'> & {
  readonly refresh: Uint8Array | null
}

/** The authority of a request: the session of its token, the operator and the current grants. */
export interface AuthenticatedSession {
  readonly session: Session
  readonly operator: Operator
  readonly grants: readonly Grant[]
}

/** Columns of the session `s`. */
const COLUMNS = `s.session_id, s.operator_id, s.device_name, s.created_at_micros,
       s.last_used_at_micros, s.access_expires_at_micros, s.refresh_expires_at_micros, s.purpose,
       s.parent_session_id, s.capabilities, s.scope_kind, s.project_id, s.environment_id`

/** Columns of the session `s` and its operator `o`. */
const AUTHENTICATED_COLUMNS = `s.session_id, s.operator_id, s.device_name, s.last_used_at_micros,
            s.access_expires_at_micros, s.refresh_expires_at_micros,
            s.created_at_micros as session_created_at_micros, s.purpose, s.parent_session_id,
            s.capabilities, s.scope_kind, s.project_id, s.environment_id,
            o.operator_name, o.created_at_micros, o.authorization_revision`

/** Joins the session `s` with its parent where that can be used at the time of `$2`. */
const LIVE_PARENT = `left join service_operator_sessions parent
         on parent.session_id = s.parent_session_id
        and parent.operator_id = s.operator_id
        and parent.purpose is null
        and parent.revoked_at_micros is null
        and parent.refresh_expires_at_micros > $2`
/** Condition on `LIVE_PARENT`: the session was logged in, or its parent lives. */
const PARENT_LIVES = '(s.purpose is null or parent.session_id is not null)'

/** Inserts a session with generation 1. */
export async function insertSession(
  tx: Tx,
  session: Session,
  digests: FirstDigests,
): Promise<void> {
  const { derivation } = session
  const inserted = await tx.execute(
    `insert into service_operator_sessions
       (session_id, operator_id, device_name, access_digest, access_expires_at_micros,
        refresh_digest, refresh_generation, refresh_expires_at_micros, created_at_micros,
        last_used_at_micros, purpose, parent_session_id, capabilities, scope_kind, project_id,
        environment_id)
     values ($1, $2, $3, $4, $5, $6, 1, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
    [
      session.sessionId,
      session.operatorId,
      session.deviceName,
      digests.access,
      session.accessExpiresAtMicros,
      digests.refresh,
      session.refreshExpiresAtMicros,
      session.createdAtMicros,
      session.lastUsedAtMicros,
      derivation?.purpose ?? null,
      derivation?.parentSessionId ?? null,
      derivation?.capabilities ?? null,
      derivation?.scope.kind ?? null,
      derivation?.scope.projectId ?? null,
      derivation?.scope.environmentId ?? null,
    ],
  )
  expectOneRow(inserted, 'a session was not inserted')
}

/**
 * Finds a session with one indexed statement. Null if unknown, expired, revoked or disabled, or
 * derived from a session that is.
 */
export async function findSessionByAccess(
  reader: Reader,
  accessDigest: Uint8Array,
  atMicros: bigint,
): Promise<AuthenticatedSession | null> {
  const rows = await reader.rows(
    `select ${AUTHENTICATED_COLUMNS},
            (select coalesce(
                      json_agg(
                        json_build_object(
                          'scope_kind', g.scope_kind, 'project_id', g.project_id,
                          'environment_id', g.environment_id,
                          'capabilities', g.capabilities, 'source', g.source)
                        order by g.grant_id),
                      '[]')
               from service_operator_grants g
              where g.operator_id = s.operator_id) as grants
       from service_operator_sessions s
       join service_operators o on o.operator_id = s.operator_id
       ${LIVE_PARENT}
      where s.access_digest = $1
        and s.access_expires_at_micros > $2
        and s.revoked_at_micros is null
        and o.disabled_at_micros is null
        and ${PARENT_LIVES}`,
    [accessDigest, atMicros],
  )
  const row = rows[0]
  if (row === undefined) return null
  if (!Array.isArray(row.grants)) throw corrupt('grants')
  return { ...toAuthenticated(row), grants: row.grants.map((grant: RawRow) => toGrant(grant)) }
}

function toAuthenticated(row: RawRow): Omit<AuthenticatedSession, 'grants'> {
  return {
    session: toSession({ ...row, created_at_micros: row.session_created_at_micros }),
    operator: toOperator(row),
  }
}

/**
 * Locks a session that can still be used or refreshed, and its operator, so that neither changes
 * before the transaction ends. Null where `findSessionByAccess` finds nothing. Grants only change
 * while the operator is locked, so grants that are read afterwards do not change either. The end of
 * a parent revokes its derived sessions too, so the lock of a derived one holds it up.
 */
export async function lockActiveSession(
  tx: Tx,
  sessionId: SessionId,
  atMicros: bigint,
): Promise<Omit<AuthenticatedSession, 'grants'> | null> {
  const rows = await tx.rows(
    `select ${AUTHENTICATED_COLUMNS}
       from service_operator_sessions s
       join service_operators o on o.operator_id = s.operator_id
       ${LIVE_PARENT}
      where s.session_id = $1
        and s.refresh_expires_at_micros > $2
        and s.revoked_at_micros is null
        and o.disabled_at_micros is null
        and ${PARENT_LIVES}
        for share of o, s`,
    [sessionId, atMicros],
  )
  return rows[0] === undefined ? null : toAuthenticated(rows[0])
}

/** Moves the time of the last use forward. A late writer changes nothing. */
export async function markSessionUsed(
  database: Database,
  sessionId: SessionId,
  atMicros: bigint,
): Promise<void> {
  await database.rows(
    `update service_operator_sessions
        set last_used_at_micros = $2
      where session_id = $1 and last_used_at_micros < $2`,
    [sessionId, atMicros],
  )
}

export interface Rotation {
  readonly sessionId: SessionId
  /** Generation of the presented token. */
  readonly generation: bigint
  readonly presentedRefreshDigest: Uint8Array
  readonly next: SessionDigests
  readonly accessExpiresAtMicros: bigint
  readonly atMicros: bigint
}

/**
 * Replaces both tokens if the presented one is the current one of a live session. Condition and
 * change are one statement, so that only one of several refreshes with one token succeeds.
 */
export async function rotateSession(tx: Tx, rotation: Rotation): Promise<Session | null> {
  const rows = await tx.rows(
    `update service_operator_sessions s
        set access_digest = $4, refresh_digest = $5, refresh_generation = $2::bigint + 1,
            access_expires_at_micros = least($6, refresh_expires_at_micros),
            last_used_at_micros = greatest($7, last_used_at_micros)
      where session_id = $1
        and refresh_generation = $2::bigint
        and refresh_digest = $3
        and revoked_at_micros is null
        and refresh_expires_at_micros > $7
        and exists (
          select 1 from service_operators o
           where o.operator_id = s.operator_id
             and o.disabled_at_micros is null)
     returning ${COLUMNS}`,
    [
      rotation.sessionId,
      rotation.generation,
      rotation.presentedRefreshDigest,
      rotation.next.access,
      rotation.next.refresh,
      rotation.accessExpiresAtMicros,
      rotation.atMicros,
    ],
  )
  return rows[0] === undefined ? null : toSession(rows[0])
}

/** Revokes a live session that is past `generation`. Returns its operator, or null. */
export async function revokeReusedSession(
  tx: Tx,
  sessionId: SessionId,
  generation: bigint,
  atMicros: bigint,
): Promise<OperatorId | null> {
  const rows = await tx.rows(
    `update service_operator_sessions
        set revoked_at_micros = $3, revocation = 'reuse'
      where session_id = $1 and refresh_generation > $2 and revoked_at_micros is null
     returning operator_id`,
    [sessionId, generation, atMicros],
  )
  return rows[0] === undefined ? null : readId(rows[0], 'operator_id', 'opr')
}

/** Revokes a session. Returns whether this call did. */
export async function markSessionRevoked(
  tx: Tx,
  sessionId: SessionId,
  atMicros: bigint,
): Promise<boolean> {
  const changed = await tx.execute(
    `update service_operator_sessions
        set revoked_at_micros = $2, revocation = 'requested'
      where session_id = $1 and revoked_at_micros is null`,
    [sessionId, atMicros],
  )
  return changed === 1
}

/** Revokes the sessions that are derived from a session, which a statement before has revoked. */
export async function markDerivedSessionsRevoked(
  tx: Tx,
  parentSessionId: SessionId,
  atMicros: bigint,
): Promise<void> {
  await tx.execute(
    `update service_operator_sessions
        set revoked_at_micros = $2, revocation = 'requested'
      where parent_session_id = $1 and revoked_at_micros is null`,
    [parentSessionId, atMicros],
  )
}

/** Locks a session, so that derivations from it come one after another. */
export async function lockSession(tx: Tx, sessionId: SessionId): Promise<void> {
  await tx.rows(
    `select session_id from service_operator_sessions
      where session_id = $1
        for no key update`,
    [sessionId],
  )
}

/** Counts the derived sessions of a session that can still be used. */
export async function countDerivedSessions(
  tx: Tx,
  parentSessionId: SessionId,
  atMicros: bigint,
): Promise<number> {
  const rows = await tx.rows(
    `select count(*) as sessions
       from service_operator_sessions
      where parent_session_id = $1 and revoked_at_micros is null
        and access_expires_at_micros > $2`,
    [parentSessionId, atMicros],
  )
  return Number(readCount(rows[0] ?? {}, 'sessions'))
}

/** Revokes every session of an operator. */
export async function markOperatorSessionsRevoked(
  tx: Tx,
  operatorId: OperatorId,
  atMicros: bigint,
): Promise<void> {
  await tx.execute(
    `update service_operator_sessions
        set revoked_at_micros = $2, revocation = 'requested'
      where operator_id = $1 and revoked_at_micros is null`,
    [operatorId, atMicros],
  )
}

/** Revokes the sessions of every operator. */
export async function markAllSessionsRevoked(tx: Tx, atMicros: bigint): Promise<void> {
  await tx.execute(
    `update service_operator_sessions
        set revoked_at_micros = $1, revocation = 'requested'
      where revoked_at_micros is null`,
    [atMicros],
  )
}

export async function findSession(reader: Reader, sessionId: SessionId): Promise<Session | null> {
  const rows = await reader.rows(
    `select ${COLUMNS} from service_operator_sessions s where s.session_id = $1`,
    [sessionId],
  )
  return rows[0] === undefined ? null : toSession(rows[0])
}

/** Lists at most `limit` sessions that can still be used or refreshed, newest first. */
export async function listActiveSessions(
  reader: Reader,
  operatorId: OperatorId,
  atMicros: bigint,
  /** Only sessions older than this one, which need not exist; null for all. */
  before: SessionId | null,
  limit: number,
): Promise<Session[]> {
  const rows = await reader.rows(
    `select ${COLUMNS}
       from service_operator_sessions s
       ${LIVE_PARENT}
      where s.operator_id = $1 and s.revoked_at_micros is null and s.refresh_expires_at_micros > $2
        and ($3::text is null or s.session_id < $3)
        and ${PARENT_LIVES}
      order by s.session_id desc
      limit $4`,
    [operatorId, atMicros, before, limit],
  )
  return rows.map(toSession)
}

/**
 * Deletes at most `limit` sessions that ended before, the oldest first, and returns their number.
 * Skips rows that others use. Keeps a session whose token of a workload must not open another one,
 * and the session of each operator that was used last, which records the time of that use.
 */
export function deleteEndedSessions(tx: Tx, beforeMicros: bigint, limit: number): Promise<number> {
  return tx.execute(
    `delete from service_operator_sessions
      where session_id in (
        select s.session_id from service_operator_sessions s
         where least(s.revoked_at_micros, s.refresh_expires_at_micros) < $1
           and not exists (
             select 1 from service_operator_token_uses u
              where u.session_id = s.session_id)
           and exists (
             select 1 from service_operator_sessions later
              where later.operator_id = s.operator_id
                and (later.last_used_at_micros, later.session_id)
                  > (s.last_used_at_micros, s.session_id))
         order by least(s.revoked_at_micros, s.refresh_expires_at_micros)
         limit $2
           for update of s skip locked)`,
    [beforeMicros, limit],
  )
}

function toSession(row: RawRow): Session {
  return {
    sessionId: readId(row, 'session_id', 'ops'),
    operatorId: readId(row, 'operator_id', 'opr'),
    deviceName: readNullable(row, 'device_name', readText),
    createdAtMicros: readCount(row, 'created_at_micros'),
    lastUsedAtMicros: readCount(row, 'last_used_at_micros'),
    accessExpiresAtMicros: readCount(row, 'access_expires_at_micros'),
    refreshExpiresAtMicros: readCount(row, 'refresh_expires_at_micros'),
    derivation: readNullable(row, 'purpose', toDerivation),
  }
}

function toDerivation(row: RawRow): Derivation {
  return {
    parentSessionId: readId(row, 'parent_session_id', 'ops'),
    purpose: readMember(row, 'purpose', SESSION_PURPOSES),
    capabilities: readCapabilities(row, 'capabilities'),
    scope: readScope(row),
  }
}
