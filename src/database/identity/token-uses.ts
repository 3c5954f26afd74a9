/** Rows of service_operator_token_uses: the session of each workload token that was used. */
import type { SessionId } from '../../value/ids.ts'
import type { Reader } from '../database.ts'
import { readBoolean, readId } from '../rows.ts'
import { expectOneRow, type Tx } from '../transaction.ts'

export interface TokenUse {
  readonly sessionId: SessionId
  /** True if the token was presented again since. */
  readonly replayed: boolean
}

export async function findTokenUse(
  reader: Reader,
  tokenDigest: Uint8Array,
): Promise<TokenUse | null> {
  const rows = await reader.rows(
    `select session_id, replayed_at_micros is not null as replayed
       from service_operator_token_uses
      where token_digest = $1`,
    [tokenDigest],
  )
  const row = rows[0]
  if (row === undefined) return null
  return { sessionId: readId(row, 'session_id', 'ops'), replayed: readBoolean(row, 'replayed') }
}

/** Inserts a row. The caller has the lock of the token's subject and has found no row. */
export async function insertTokenUse(
  tx: Tx,
  use: {
    readonly tokenDigest: Uint8Array
    readonly sessionId: SessionId
    readonly expiresAtMicros: bigint
  },
): Promise<void> {
  const inserted = await tx.execute(
    `insert into service_operator_token_uses (token_digest, session_id, expires_at_micros)
     values ($1, $2, $3)`,
    [use.tokenDigest, use.sessionId, use.expiresAtMicros],
  )
  expectOneRow(inserted, 'the use of a token was not inserted')
}

/** Marks a use as replayed. The caller has the lock of the token's subject. */
export async function markTokenReplayed(
  tx: Tx,
  tokenDigest: Uint8Array,
  atMicros: bigint,
): Promise<void> {
  const changed = await tx.execute(
    `update service_operator_token_uses
        set replayed_at_micros = $2
      where token_digest = $1 and replayed_at_micros is null`,
    [tokenDigest, atMicros],
  )
  expectOneRow(changed, 'the use of a token was not marked')
}

/**
 * Deletes at most `limit` uses of tokens that expired before. Skips rows that others delete.
 * Returns the number of deleted rows.
 */
export function deleteExpiredTokenUses(
  tx: Tx,
  beforeMicros: bigint,
  limit: number,
): Promise<number> {
  return tx.execute(
    `delete from service_operator_token_uses
      where token_digest in (
        select token_digest from service_operator_token_uses
         where expires_at_micros < $1
         order by expires_at_micros
         limit $2
           for update skip locked)`,
    [beforeMicros, limit],
  )
}
