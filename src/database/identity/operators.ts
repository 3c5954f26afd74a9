/** Rows of service_operators. The rules for operators are in identity/. */
import type { OperatorId } from '../../value/ids.ts'
import type { RawRow } from '../connection.ts'
import type { Reader } from '../database.ts'
import { corrupt, readBoolean, readCount, readId, readInteger, readText } from '../rows.ts'
import { expectOneRow, type Tx } from '../transaction.ts'

export interface Operator {
  readonly operatorId: OperatorId
  readonly operatorName: string
  readonly createdAtMicros: bigint
  /** Increases with every change of the grants of the operator. */
  readonly authorizationRevision: bigint
}

export async function anyOperatorExists(reader: Reader): Promise<boolean> {
  const rows = await reader.rows(`select exists (select 1 from service_operators) as found`, [])
  return readBoolean(rows[0] ?? {}, 'found')
}

/** Counts the enabled operators who may manage operators of the whole installation. */
export async function countOwners(reader: Reader): Promise<number> {
  const rows = await reader.rows(
    `select count(distinct operator_id)::integer as owners
       from service_operators
       join service_operator_grants using (operator_id)
      where disabled_at_micros is null
        and scope_kind = 'installation'
        and 'operators:manage' = any (capabilities)`,
    [],
  )
  return readInteger(rows[0] ?? {}, 'owners')
}

export async function insertOperator(
  tx: Tx,
  operator: Omit<Operator, 'authorizationRevision'>,
): Promise<Operator> {
  const inserted = await tx.execute(
    `insert into service_operators
       (operator_id, operator_name, created_at_micros, authorization_revision)
     values ($1, $2, $3, 1)`,
    [operator.operatorId, operator.operatorName, operator.createdAtMicros],
  )
  expectOneRow(inserted, 'an operator was not inserted')
  return { ...operator, authorizationRevision: 1n }
}

/** Returns the operator of a session. Operators are never deleted. */
export async function getOperator(reader: Reader, operatorId: OperatorId): Promise<Operator> {
  const rows = await reader.rows(
    `select operator_id, operator_name, created_at_micros, authorization_revision
       from service_operators
      where operator_id = $1`,
    [operatorId],
  )
  if (rows[0] === undefined) throw corrupt('session without its operator')
  return toOperator(rows[0])
}

/** Finds and locks the row, which serializes changes of the grants and sessions of the operator. */
export async function lockOperator(tx: Tx, operatorId: OperatorId): Promise<Operator | null> {
  const rows = await tx.rows(
    `select operator_id, operator_name, created_at_micros, authorization_revision
       from service_operators
      where operator_id = $1
        for no key update`,
    [operatorId],
  )
  return rows[0] === undefined ? null : toOperator(rows[0])
}

/** Increases the authorization revision. Returns the new one. */
export async function raiseAuthorizationRevision(tx: Tx, operatorId: OperatorId): Promise<bigint> {
  const rows = await tx.rows(
    `update service_operators
        set authorization_revision = authorization_revision + 1
      where operator_id = $1
     returning authorization_revision`,
    [operatorId],
  )
  return readCount(rows[0] ?? {}, 'authorization_revision')
}

export function toOperator(row: RawRow): Operator {
  return {
    operatorId: readId(row, 'operator_id', 'opr'),
    operatorName: readText(row, 'operator_name'),
    createdAtMicros: readCount(row, 'created_at_micros'),
    authorizationRevision: readCount(row, 'authorization_revision'),
  }
}
