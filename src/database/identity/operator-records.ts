/** Operators as administrators see them: with their state, grants and linked identities. */
import type { OperatorId } from '../../value/ids.ts'
import type { RawRow } from '../connection.ts'
import type { Reader } from '../database.ts'
import { corrupt, readBoolean, readCount, readId, readNullable, readText } from '../rows.ts'
import type { Tx } from '../transaction.ts'
import { type Grant, toGrant } from './grants.ts'

export interface OperatorRecord {
  readonly operatorId: OperatorId
  readonly operatorName: string
  readonly createdAtMicros: bigint
  /** Null for an enabled operator. */
  readonly disabledAtMicros: bigint | null
  /** The last use of any session; null for an operator that never had one. */
  readonly lastUsedAtMicros: bigint | null
  /** Oldest first. */
  readonly grants: readonly Grant[]
  /** Oldest first. */
  readonly identities: readonly {
    readonly providerId: string
    readonly linkedAtMicros: bigint
  }[]
}

/** Lists at most `limit` operators, newest first. */
export async function listOperatorRecords(
  reader: Reader,
  /** Only operators older than this one, which need not exist; null for all. */
  before: OperatorId | null,
  limit: number,
): Promise<OperatorRecord[]> {
  const rows = await reader.rows(
    `select o.operator_id, o.operator_name, o.created_at_micros, o.disabled_at_micros,
            (select max(s.last_used_at_micros)
               from service_operator_sessions s
              where s.operator_id = o.operator_id) as last_used_at_micros,
            (select coalesce(
                      json_agg(
                        json_build_object(
                          'scope_kind', g.scope_kind, 'project_id', g.project_id,
                          'environment_id', g.environment_id,
                          'capabilities', g.capabilities, 'source', g.source)
                        order by g.grant_id),
                      '[]')
               from service_operator_grants g
              where g.operator_id = o.operator_id) as grants,
            (select coalesce(
                      json_agg(
                        json_build_object(
                          'provider_id', i.provider_id,
                          'linked_at_micros', i.linked_at_micros::text)
                        order by i.linked_at_micros, i.provider_id),
                      '[]')
               from service_operator_identities i
              where i.operator_id = o.operator_id) as identities
       from service_operators o
      where ($1::text is null or o.operator_id < $1)
      order by o.operator_id desc
      limit $2`,
    [before, limit],
  )
  return rows.map(toRecord)
}

export async function operatorExists(reader: Reader, operatorId: OperatorId): Promise<boolean> {
  const rows = await reader.rows(
    `select exists (select 1 from service_operators where operator_id = $1) as found`,
    [operatorId],
  )
  return readBoolean(rows[0] ?? {}, 'found')
}

/** Locks an operator's state against other transactions. Returns whether it is enabled. */
export async function lockIfEnabled(tx: Tx, operatorId: OperatorId): Promise<boolean> {
  const rows = await tx.rows(
    `select disabled_at_micros is null as enabled
       from service_operators
      where operator_id = $1
        for share`,
    [operatorId],
  )
  return readBoolean(rows[0] ?? {}, 'enabled')
}

/** Finds and locks the row, so that neither state nor grants change in another transaction. */
export async function lockOperatorState(
  tx: Tx,
  operatorId: OperatorId,
): Promise<{
  readonly disabledAtMicros: bigint | null
  readonly authorizationRevision: bigint
} | null> {
  const rows = await tx.rows(
    `select disabled_at_micros, authorization_revision
       from service_operators
      where operator_id = $1
        for no key update`,
    [operatorId],
  )
  const row = rows[0]
  if (row === undefined) return null
  return {
    disabledAtMicros: readNullable(row, 'disabled_at_micros', readCount),
    authorizationRevision: readCount(row, 'authorization_revision'),
  }
}

/** Returns whether another enabled operator holds `operators:manage` at the installation. */
export async function hasOtherOwner(reader: Reader, operatorId: OperatorId): Promise<boolean> {
  const rows = await reader.rows(
    `select exists (
       select 1
         from service_operators o
         join service_operator_grants g on g.operator_id = o.operator_id
        where o.operator_id <> $1
          and o.disabled_at_micros is null
          and g.scope_kind = 'installation'
          and 'operators:manage' = any (g.capabilities)) as found`,
    [operatorId],
  )
  return readBoolean(rows[0] ?? {}, 'found')
}

/** Disables at a time, or enables with null. Returns the new authorization revision. */
export async function markOperatorDisabled(
  tx: Tx,
  operatorId: OperatorId,
  disabledAtMicros: bigint | null,
): Promise<bigint> {
  const rows = await tx.rows(
    `update service_operators
        set disabled_at_micros = $2, authorization_revision = authorization_revision + 1
      where operator_id = $1
     returning authorization_revision`,
    [operatorId, disabledAtMicros],
  )
  return readCount(rows[0] ?? {}, 'authorization_revision')
}

function toRecord(row: RawRow): OperatorRecord {
  const { grants, identities } = row
  if (!Array.isArray(grants) || !Array.isArray(identities)) throw corrupt('operator')
  return {
    operatorId: readId(row, 'operator_id', 'opr'),
    operatorName: readText(row, 'operator_name'),
    createdAtMicros: readCount(row, 'created_at_micros'),
    disabledAtMicros: readNullable(row, 'disabled_at_micros', readCount),
    lastUsedAtMicros: readNullable(row, 'last_used_at_micros', readCount),
    grants: grants.map((grant: RawRow) => toGrant(grant)),
    identities: identities.map((identity: RawRow) => ({
      providerId: readText(identity, 'provider_id'),
      linkedAtMicros: readCount(identity, 'linked_at_micros'),
    })),
  }
}
