/**
 * A new key for the Environment. Whatever can be sealed again is; what was derived from an older
 * key and given away, such as publishable keys and guests, stays good, and so does that key.
 */
import { Fault } from '../../errors/fault.ts'
import { listEntries, markResealed } from '../../storage/control/configuration.ts'
import type { ControlTx } from '../../storage/control/database.ts'
import {
  countKeyUses,
  deleteKeyringCheck,
  insertKeyringCheck,
  type KeyUses,
} from '../../storage/control/keyring-checks.ts'
import { Keyring } from '../../storage/keyring.ts'
import type { KeyringFiles } from '../../storage/keyring-files.ts'
import type { ProductRoot } from '../../storage/root.ts'
import { seal, unseal } from '../../storage/sealing.ts'
import type { System } from '../../system/system.ts'
import { GUEST_SECONDS_MAX } from '../../value/identities.ts'
import { KEY_BYTES, KEYS_MAX, type KeyringFile, type KeyringKey } from '../../value/product-root.ts'
import { appendAudit } from '../audit/audit-outbox.ts'
import { pruneOperations } from '../idempotency/idempotency-records.ts'

const GUEST_MICROS_MAX = BigInt(GUEST_SECONDS_MAX) * 1_000_000n

export interface KeyRotation {
  readonly activeId: string
  /** Secrets that were sealed under the new key. */
  readonly resealed: number
  readonly removedIds: readonly string[]
  /** Older keys, and what in the root still needs each. */
  readonly kept: readonly { readonly keyId: string; readonly uses: KeyUses }[]
}

interface App {
  readonly system: System
  readonly root: ProductRoot
  readonly files: KeyringFiles
}

/**
 * Only on a root that nothing else of this process uses: its `keyring` is the old one afterwards.
 * Wherever it is interrupted the root opens with everything in it, and can be rotated again. Throws
 * PRODUCT_CORRUPT, PRODUCT_UNAVAILABLE, and PRODUCT_STATE_CONFLICT where too many keys are in use.
 */
export function rotateKeys({ system, root, files }: App): KeyRotation {
  const { control, descriptor } = root
  const file = files.read()
  const atMicros = system.nowMicros()
  // Before the file: a check without its key would keep the root from opening.
  const removedIds = control.transaction((tx) => removeUnused(tx, system, file))
  const left = file.keys.filter(({ id }) => !removedIds.includes(id))
  if (left.length >= KEYS_MAX) {
    throw new Fault('PRODUCT_STATE_CONFLICT', { detail: `${KEYS_MAX} keys are in use` })
  }
  const key: KeyringKey = {
    id: `k${system.ids.ulid().toLowerCase()}`,
    key: system.randomBytes(KEY_BYTES),
    createdAtMicros: atMicros,
  }
  const next: KeyringFile = { version: 1, keys: [...left, key], active: key.id }
  files.write(next)
  const keyring = new Keyring(next, descriptor.environmentId)
  return control.transaction((tx) => {
    insertKeyringCheck(tx, { keyId: key.id, digest: keyring.derive(key.id, 'keyring-check') })
    const resealed = resealAll(tx, { system, root, keyring })
    const kept = left.map(({ id }) => ({ keyId: id, uses: countKeyUses(tx, id) }))
    appendAudit(tx, system, null, {
      operation: 'product.keyring.rotate',
      subject: descriptor.environmentId,
      requestId: null,
    })
    return { activeId: key.id, resealed, removedIds, kept }
  })
}

/** Answers the IDs of the keys that nothing needs any more. */
function removeUnused(tx: ControlTx, system: System, { keys, active }: KeyringFile): string[] {
  pruneOperations(tx, system)
  const removed = keys.filter(({ id }, i) => {
    // Guests are written down nowhere: those of a replaced key are gone after their longest life.
    // So are cursors, which go with their key: a list that someone left for a day begins anew.
    const replacedAt = keys[i + 1]?.createdAtMicros
    if (id === active || replacedAt === undefined) return false
    if (system.nowMicros() - replacedAt <= GUEST_MICROS_MAX) return false
    return Object.values(countKeyUses(tx, id)).every((uses) => uses === 0)
  })
  for (const { id } of removed) deleteKeyringCheck(tx, id)
  return removed.map(({ id }) => id)
}

/** Answers how many. */
function resealAll(
  tx: ControlTx,
  { system, root, keyring }: Omit<App, 'files'> & { readonly keyring: Keyring },
): number {
  const { environmentId } = root.descriptor
  let resealed = 0
  for (const { name, revision, content } of listEntries(tx)) {
    if (content.kind !== 'secret') continue
    const subject = { environmentId, name, revision }
    const secret = unseal(keyring, subject, content.sealed)
    markResealed(tx, name, seal(keyring, system, subject, secret))
    resealed += 1
  }
  return resealed
}
