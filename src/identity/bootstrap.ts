/**
 * The first-owner code: created once, valid for a day, replaced on request. Its digest is in the
 * database, its text in a file. No crash may leave one without the other:
 *
 * 1. One transaction under a lock inserts the row, writes the file `next`, then commits.
 * 2. Under that lock, the file that holds the code of the committed row becomes `current`.
 *
 * A crash before the commit leaves a `next` without a row, which is overwritten later. A crash
 * after the commit leaves a `next` that step 2 of the next start finds by its digest.
 */
import { lockBootstrap } from '../database/advisory-locks.ts'
import {
  type Invitation,
  insertInvitation,
  lockPendingBootstrap,
  markInvitationRevoked,
} from '../database/identity/invitations.ts'
import { anyOperatorExists } from '../database/identity/operators.ts'
import { corrupt } from '../database/rows.ts'
import { type Tx, transaction } from '../database/transaction.ts'
import { Fault, isFault } from '../errors/fault.ts'
import { digestEquals } from '../system/digests.ts'
import { capabilitiesOfRole } from '../value/capabilities.ts'
import type { InvitationId } from '../value/ids.ts'
import { INSTALLATION } from '../value/scope.ts'
import { recordAudit } from './audit.ts'
import type { BootstrapFiles } from './bootstrap-files.ts'
import type { IdentityCore } from './core.ts'
import type { Credentials } from './credentials.ts'
import { INVITATION_LIFETIME_MICROS } from './invitations.ts'

/** State of the bootstrap that a start found, or the change that it made. */
export type BootstrapOutcome = 'complete' | 'pending' | 'created' | 'renewed'

/**
 * Creates or checks the first owner's code at each start. Throws SERVER_BOOTSTRAP_FILE_MISSING
 * where no file holds the code of the pending bootstrap, and SERVER_STATE_DIRECTORY_* where its
 * file cannot be kept.
 */
export async function ensureBootstrap(
  core: IdentityCore,
  files: BootstrapFiles,
): Promise<BootstrapOutcome> {
  files.prepare()
  let outcome: BootstrapOutcome
  try {
    outcome = await createOrRenew(core, files)
  } catch (error) {
    if (!isFault(error, 'PLATFORM_IDENTITY_RESULT_UNCERTAIN')) throw error
    // The lost connection holds the lock until PostgreSQL committed or aborted its transaction.
    outcome = await createOrRenew(core, files)
  }
  await reconcileFiles(core, files)
  return outcome
}

async function createOrRenew(core: IdentityCore, files: BootstrapFiles): Promise<BootstrapOutcome> {
  return transaction(core.database, async (tx) => {
    await lockBootstrap(tx)
    const pending = await lockPendingBootstrap(tx)
    // Checked after the row is locked: a concurrent exchange has ended.
    if (await anyOperatorExists(tx)) return 'complete'
    const atMicros = core.system.nowMicros()
    if (pending !== null && pending.expiresAtMicros > atMicros) return 'pending'
    if (pending !== null) {
      const { invitationId } = pending
      await markInvitationRevoked(tx, invitationId, atMicros)
      await audit(core, tx, 'bootstrap.expire', invitationId, atMicros)
    }
    await issueOwnerCode(core, tx, files, { operation: 'bootstrap.create', atMicros })
    return pending === null ? 'created' : 'renewed'
  })
}

/**
 * Replaces a lost code. Throws SERVER_BOOTSTRAP_ALREADY_COMPLETE where an operator exists, and
 * SERVER_BOOTSTRAP_RECOVERY_RESULT_UNCERTAIN where the replacement may have been stored without its
 * file in place; another run resolves that.
 */
export async function recoverBootstrap(core: IdentityCore, files: BootstrapFiles): Promise<void> {
  files.prepare()
  try {
    await transaction(core.database, async (tx) => {
      await lockBootstrap(tx)
      const pending = await lockPendingBootstrap(tx)
      if (await anyOperatorExists(tx)) throw new Fault('SERVER_BOOTSTRAP_ALREADY_COMPLETE')
      const atMicros = core.system.nowMicros()
      if (pending !== null) await markInvitationRevoked(tx, pending.invitationId, atMicros)
      await issueOwnerCode(core, tx, files, { operation: 'bootstrap.recover', atMicros })
    })
  } catch (error) {
    throw isFault(error, 'PLATFORM_IDENTITY_RESULT_UNCERTAIN') ? uncertain(error) : error
  }
  try {
    await reconcileFiles(core, files)
  } catch (error) {
    throw uncertain(error)
  }
}

function uncertain(cause: unknown): Fault {
  const detail = isFault(cause) ? `${cause.code}: ${cause.detail ?? 'no detail'}` : undefined
  return new Fault('SERVER_BOOTSTRAP_RECOVERY_RESULT_UNCERTAIN', { detail, cause })
}

/**
 * Microseconds (contract/management.md, Limits).
 * @limit Identity and keys: lifetime of the first-owner code
 */
export const BOOTSTRAP_LIFETIME_MICROS = 86_400_000_000n

const LIFETIME_MICROS = {
  'bootstrap.create': BOOTSTRAP_LIFETIME_MICROS,
  'bootstrap.recover': BOOTSTRAP_LIFETIME_MICROS,
  'owner.recover': INVITATION_LIFETIME_MICROS,
}

/**
 * Inserts the row and its audit record, then writes the file `next`. The caller holds the lock, and
 * no other code is pending.
 */
export async function issueOwnerCode(
  core: IdentityCore,
  tx: Tx,
  files: BootstrapFiles,
  options: {
    readonly operation: keyof typeof LIFETIME_MICROS
    readonly atMicros: bigint
  },
): Promise<void> {
  const { operation, atMicros } = options
  const code = core.credentials.issueInvitationCode()
  const invitation = {
    invitationId: core.system.ids.make('opi'),
    kind: 'bootstrap' as const,
    codeDigest: code.digest,
    workload: null,
    operatorName: null,
    role: 'owner' as const,
    scope: INSTALLATION,
    capabilities: capabilitiesOfRole('owner'),
    state: 'pending' as const,
    createdBy: null,
    createdAtMicros: atMicros,
    expiresAtMicros: atMicros + LIFETIME_MICROS[operation],
  }
  await insertInvitation(tx, invitation)
  await audit(core, tx, operation, invitation.invitationId, atMicros)
  files.write('next', code.secret)
}

async function audit(
  { system }: IdentityCore,
  tx: Tx,
  operation: 'bootstrap.expire' | keyof typeof LIFETIME_MICROS,
  invitationId: InvitationId,
  atMicros: bigint,
): Promise<void> {
  const facts = { actor: null, subject: invitationId, atMicros, requestId: null, invitationId }
  await recordAudit(tx, system, operation, facts)
}

/** Updates the files to the committed state. Idempotent, also across servers. */
async function reconcileFiles(
  { database, credentials }: IdentityCore,
  files: BootstrapFiles,
): Promise<void> {
  await transaction(database, async (tx) => {
    await lockBootstrap(tx)
    const pending = await lockPendingBootstrap(tx)
    if (await anyOperatorExists(tx)) {
      files.remove('next')
      files.remove('current')
      return
    }
    if (pending === null) throw corrupt('bootstrap without a pending row')
    if (promoteFile(files, credentials, pending)) return
    const detail = 'no file holds the code of the pending bootstrap'
    throw new Fault('SERVER_BOOTSTRAP_FILE_MISSING', { detail })
  })
}

/** Makes the file that holds this code the current one. Returns false if there is none. */
export function promoteFile(
  files: BootstrapFiles,
  credentials: Credentials,
  { codeDigest }: Invitation,
): boolean {
  const holdsCode = (file: 'current' | 'next'): boolean => {
    const digest = credentials.digestInvitationCode(files.read(file)?.reveal() ?? '')
    return digest !== null && codeDigest !== null && digestEquals(digest, codeDigest)
  }
  if (!holdsCode('current')) {
    const next = holdsCode('next') ? files.read('next') : null
    if (next === null) return false
    files.write('current', next)
  }
  files.remove('next')
  return true
}
