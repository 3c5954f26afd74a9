/**
 * Rotation of the Environment's keys. Secrets are sealed again under the new key; publishable keys
 * and guest tokens, which clients hold, stay valid, and so do the older keys they derive from.
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
import { pruneIdempotencyRecords } from '../idempotency/idempotency-records.ts'

const GUEST_MICROS_MAX = BigInt(GUEST_SECONDS_MAX) * 1_000_000n

export interface KeyRotation {
  readonly activeId: string
  /** Number of secrets that were sealed under the new key. */
  readonly resealed: number
  readonly removedIds: readonly string[]
  /** Older keys, each with its remaining uses in the root. */
  readonly kept: readonly { readonly keyId: string; readonly uses: KeyUses }[]
}

export interface RotationPorts {
  readonly system: System
  readonly root: ProductRoot
  readonly files: KeyringFiles
}

/**
 * Adds a key, makes it the active one and removes unused keys. No other part of the process may use
 * the root, whose `keyring` stays the old one. After an interruption at any step the root opens
 * complete and can be rotated again. Throws PRODUCT_CORRUPT, PRODUCT_UNAVAILABLE, and
 * PRODUCT_STATE_CONFLICT if too many keys are in use.
 */
export function rotateKeys({ system, root, files }: RotationPorts): KeyRotation {
  const { control, descriptor } = root
  const file = files.read()
  const atMicros = system.nowMicros()
  // The removal is committed before the file is written: a check without its key would keep the
  // root from opening.
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

/** Removes the checks of unused keys; returns the IDs of these keys. */
function removeUnused(tx: ControlTx, system: System, { keys, active }: KeyringFile): string[] {
  pruneIdempotencyRecords(tx, system)
  const removed = keys.filter(({ id }, i) => {
    // Guest tokens and download grants are not stored. Those of a replaced key have expired after
    // the maximum lifetime of a guest token, which is the longer one.
    // Cursors become invalid with their key: a client that pauses for a day starts its list again.
    const replacedAt = keys[i + 1]?.createdAtMicros
    if (id === active || replacedAt === undefined) return false
    if (system.nowMicros() - replacedAt <= GUEST_MICROS_MAX) return false
    return Object.values(countKeyUses(tx, id)).every((uses) => uses === 0)
  })
  for (const { id } of removed) deleteKeyringCheck(tx, id)
  return removed.map(({ id }) => id)
}

/** Seals every secret under the new key; returns their number. */
function resealAll(
  tx: ControlTx,
  { system, root, keyring }: Omit<RotationPorts, 'files'> & { readonly keyring: Keyring },
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
