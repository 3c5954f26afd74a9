/** Rows of service_operator_identities, which map external subjects to operators. */
import type { OperatorId } from '../../value/ids.ts'
import type { Reader } from '../database.ts'
import { readBoolean, readId } from '../rows.ts'
import { expectOneRow, type Tx } from '../transaction.ts'

export interface ExternalIdentity {
  readonly providerId: string
  /** Keyed digest of the subject; the subject itself is never stored. */
  readonly subjectDigest: Uint8Array
}

export interface LinkedOperator {
  readonly operatorId: OperatorId
  readonly disabled: boolean
}

/** Finds and locks the operator, so that it is not disabled before the transaction ends. */
export async function lockLinkedOperator(
  tx: Tx,
  { providerId, subjectDigest }: ExternalIdentity,
): Promise<LinkedOperator | null> {
  const rows = await tx.rows(
    `select i.operator_id, o.disabled_at_micros is not null as disabled
       from service_operator_identities i
       join service_operators o on o.operator_id = i.operator_id
      where i.provider_id = $1 and i.subject_digest = $2
        for no key update of o`,
    [providerId, subjectDigest],
  )
  const row = rows[0]
  if (row === undefined) return null
  return {
    operatorId: readId(row, 'operator_id', 'opr'),
    disabled: readBoolean(row, 'disabled'),
  }
}

/** Returns whether the operator has an external subject of any provider. */
export async function hasIdentity(reader: Reader, operatorId: OperatorId): Promise<boolean> {
  const rows = await reader.rows(
    `select exists (select 1 from service_operator_identities where operator_id = $1) as found`,
    [operatorId],
  )
  return readBoolean(rows[0] ?? {}, 'found')
}

/** Inserts a row. The caller has the lock of the subject and has found no row. */
export async function insertIdentity(
  tx: Tx,
  { providerId, subjectDigest }: ExternalIdentity,
  operatorId: OperatorId,
  atMicros: bigint,
): Promise<void> {
  const inserted = await tx.execute(
    `insert into service_operator_identities
       (provider_id, subject_digest, operator_id, linked_at_micros)
     values ($1, $2, $3, $4)`,
    [providerId, subjectDigest, operatorId, atMicros],
  )
  expectOneRow(inserted, 'an identity was not inserted')
}
