/**
 * Sessions, invitations and keys are as they were at the restored state: what was revoked after it
 * works again. Lists what works, and revokes it if the operator wants that.
 */
import type { Database } from '../../database/database.ts'
import { markPendingInvitationsRevoked } from '../../database/identity/invitations.ts'
import {
  type LiveInvitation,
  type LiveSession,
  listLiveInvitations,
  listLiveSessions,
} from '../../database/identity/live-credentials.ts'
import { markAllSessionsRevoked } from '../../database/identity/sessions.ts'
import { transaction } from '../../database/transaction.ts'
import { recordAudit } from '../../identity/audit.ts'
import { markCredentialRevoked } from '../../storage/control/application-credentials.ts'
import type { ControlDatabase } from '../../storage/control/database.ts'
import { type LiveKeys, listLiveKeys } from '../../storage/control/live-keys.ts'
import { markStorageKeyRevoked } from '../../storage/control/storage-keys.ts'
import type { System } from '../../system/system.ts'
import type { HistoryId } from '../../value/ids.ts'

export interface LiveCredentials extends LiveKeys {
  readonly sessions: readonly LiveSession[]
  readonly invitations: readonly LiveInvitation[]
}

export interface LiveCredentialsOptions {
  /** Null lists the keys alone. */
  readonly identity: Database | null
  readonly control: ControlDatabase
  readonly system: Pick<System, 'ids' | 'nowMicros'>
  /** The history that the restore begins. */
  readonly historyId: HistoryId
  readonly isRevoked: boolean
}

/** Records the restore in the audit. Returns what worked before anything was revoked. */
export async function settleCredentials(options: LiveCredentialsOptions): Promise<LiveCredentials> {
  const { identity, control, system, isRevoked } = options
  const atMicros = system.nowMicros()
  const ofOperators = identity === null ? NO_OPERATORS : await settleIdentity(identity, options)
  const keys = control.read(listLiveKeys)
  if (isRevoked) {
    control.transaction((tx) => {
      for (const { id } of keys.credentials) markCredentialRevoked(tx, id, atMicros)
      for (const { id } of keys.storageKeys) markStorageKeyRevoked(tx, id, atMicros)
    })
  }
  return { ...ofOperators, ...keys }
}

const NO_OPERATORS = { sessions: [], invitations: [] }

function settleIdentity(
  identity: Database,
  { system, historyId, isRevoked }: LiveCredentialsOptions,
): Promise<Pick<LiveCredentials, 'sessions' | 'invitations'>> {
  const atMicros = system.nowMicros()
  return transaction(identity, async (tx) => {
    const live = {
      sessions: await listLiveSessions(tx, atMicros),
      invitations: await listLiveInvitations(tx, atMicros),
    }
    if (isRevoked) {
      await markAllSessionsRevoked(tx, atMicros)
      await markPendingInvitationsRevoked(tx, atMicros)
    }
    const facts = { actor: null, subject: historyId, atMicros, requestId: null }
    await recordAudit(tx, system, 'installation.restore', facts)
    return live
  })
}
