/**
 * Recovery for an owner that lost every device, offline, on the server. The code is a second
 * bootstrap, created while operators exist. Its audit record distinguishes it from a first-owner
 * code that became obsolete when the first owner was created in another way. bootstrap.ts writes
 * its file.
 */
import { lockBootstrap } from '../database/advisory-locks.ts'
import { hasInvitationRecord } from '../database/identity/audit.ts'
import {
  type Invitation,
  lockPendingBootstrap,
  markInvitationRevoked,
} from '../database/identity/invitations.ts'
import { anyOperatorExists } from '../database/identity/operators.ts'
import { type Tx, transaction } from '../database/transaction.ts'
import { Fault, isFault } from '../errors/fault.ts'
import { issueOwnerCode, promoteFile } from './bootstrap.ts'
import type { BootstrapFiles } from './bootstrap-files.ts'
import type { IdentityCore } from './core.ts'

/**
 * Revokes an earlier code of this kind. Throws SERVER_OWNER_RECOVERY_BOOTSTRAP_PENDING where no
 * operator exists, and SERVER_OWNER_RECOVERY_RESULT_UNCERTAIN where the code may have been stored
 * without its file in place; another run resolves that.
 */
export async function recoverOwner(core: IdentityCore, files: BootstrapFiles): Promise<void> {
  files.prepare()
  try {
    await transaction(core.database, async (tx) => {
      await lockBootstrap(tx)
      const pending = await lockPendingBootstrap(tx)
      if (!(await anyOperatorExists(tx))) {
        throw new Fault('SERVER_OWNER_RECOVERY_BOOTSTRAP_PENDING')
      }
      const atMicros = core.system.nowMicros()
      if (pending !== null) await markInvitationRevoked(tx, pending.invitationId, atMicros)
      await issueOwnerCode(core, tx, files, { operation: 'owner.recover', atMicros })
    })
  } catch (error) {
    throw isFault(error, 'PLATFORM_IDENTITY_RESULT_UNCERTAIN') ? uncertain(error) : error
  }
  try {
    await reconcileRecoveryFile(core, files)
  } catch (error) {
    throw uncertain(error)
  }
}

/**
 * Removes, at each start, the file of a code that is consumed, revoked or expired. Unlike the
 * first owner's code it may be lost, since the operator can create another at any time.
 */
export async function reconcileRecoveryFile(
  core: IdentityCore,
  files: BootstrapFiles,
): Promise<void> {
  await transaction(core.database, async (tx) => {
    await lockBootstrap(tx)
    const pending = await lockPendingBootstrap(tx)
    const usable =
      pending !== null &&
      pending.expiresAtMicros > core.system.nowMicros() &&
      (await isOwnerRecovery(tx, pending))
    if (usable && promoteFile(files, core.credentials, pending)) return
    files.remove('next')
    files.remove('current')
  })
}

/** Returns whether a bootstrap was created to recover an owner's access. */
export function isOwnerRecovery(tx: Tx, { invitationId }: Invitation): Promise<boolean> {
  return hasInvitationRecord(tx, invitationId, 'owner.recover')
}

function uncertain(cause: unknown): Fault {
  const detail = isFault(cause) ? `${cause.code}: ${cause.detail ?? 'no detail'}` : undefined
  return new Fault('SERVER_OWNER_RECOVERY_RESULT_UNCERTAIN', { detail, cause })
}
