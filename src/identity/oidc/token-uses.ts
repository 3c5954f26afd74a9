/**
 * Lets a token of a workload open one session: jobs print and cache what they hold, and a copy must
 * not log in again. A token that was rejected for another reason is not used up.
 */
import {
  deleteExpiredTokenUses,
  findTokenUse,
  insertTokenUse,
  markTokenReplayed,
} from '../../database/identity/token-uses.ts'
import type { Tx } from '../../database/transaction.ts'
import type { SessionId } from '../../value/ids.ts'
import { recordAudit } from '../audit.ts'
import type { IdentityCore, Origin } from '../core.ts'
import { CLOCK_SKEW_SECONDS } from './provider.ts'

/** Expired uses that one login deletes: more than one login adds. */
const EXPIRED_PER_LOGIN = 16
/** Servers on one database may have clocks that differ. */
const CLOCK_SKEW_MICROS = BigInt(CLOCK_SKEW_SECONDS) * 1_000_000n

export interface PresentedToken {
  readonly digest: Uint8Array
  readonly providerId: string
  readonly expiresAtMicros: bigint
}

/**
 * Returns whether the token opened a session before. The first replay is recorded in the audit,
 * without an actor: the caller is not known to be the workload. The caller holds the lock of the
 * token's subject.
 */
export async function detectReplay(
  { system }: IdentityCore,
  tx: Tx,
  { digest, providerId }: PresentedToken,
  { atMicros, requestId }: Origin & { readonly atMicros: bigint },
): Promise<boolean> {
  const use = await findTokenUse(tx, digest)
  if (use === null) return false
  if (!use.replayed) {
    await markTokenReplayed(tx, digest, atMicros)
    const { sessionId } = use
    const facts = { actor: null, subject: providerId, atMicros, requestId, sessionId }
    await recordAudit(tx, system, 'identity.login', facts, 'denied')
  }
  return true
}

/** Records that the token opened the session, and forgets tokens that have expired. */
export async function recordUse(
  tx: Tx,
  { digest, expiresAtMicros }: PresentedToken,
  sessionId: SessionId,
  atMicros: bigint,
): Promise<void> {
  await deleteExpiredTokenUses(tx, atMicros - CLOCK_SKEW_MICROS, EXPIRED_PER_LOGIN)
  await insertTokenUse(tx, { tokenDigest: digest, sessionId, expiresAtMicros })
}
