/**
 * Changes that carry an Operation ID: done once, whoever repeats them. The record of an operation
 * commits with its change, so there is never one without the other.
 */
import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import type { ControlTx } from '../../storage/control/database.ts'
import {
  deleteOperationsBefore,
  findOperation,
  insertOperation,
  type OperationRecord,
} from '../../storage/control/idempotency-records.ts'
import type { Keyring } from '../../storage/keyring.ts'
import { digestEquals, secretDigest } from '../../system/digests.ts'
import type { System } from '../../system/system.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import type { OperationId, RequestId } from '../../value/ids.ts'
import type { Json } from '../../value/strict-json.ts'
import { requireRecent } from '../application-clients/application-clients.ts'
import type { Product } from '../product.ts'

/** How long a record stays. Its request is too old to be taken for a new one long before. */
const RETENTION_MICROS = 30n * 24n * 60n * 60n * 1_000_000n

export interface Intent {
  readonly operationId: OperationId
  /** `<resource>.<verb>`; the audit names it `product.<resource>.<verb>`. */
  readonly kind: `${string}.${string}`
  /** Everything that the caller asked for: what it names, the body, secrets included. */
  readonly request: Json
  /** The caller's clock. */
  readonly changedAtMicros: bigint
  readonly subject: string
  readonly requestId: RequestId
}

export interface Operation {
  readonly operationId: OperationId
  readonly kind: string
  readonly replayed: boolean
  readonly revision: bigint
  readonly createdAtMicros: bigint
}

export interface Applied<T> {
  readonly result: T
  readonly operation: Operation
}

/**
 * Commits what `work` does, its audit record and its result, or answers an exact repeat with the
 * first result. Throws PRODUCT_OPERATION_REUSED where the ID was used by another operator or for
 * anything else, PRODUCT_INVALID for a clock that is a day off, and what `work` throws.
 */
export function applyOnce<T extends Json>(
  { system, root, audit }: Pick<Product, 'system' | 'root' | 'audit'>,
  actor: Actor,
  intent: Intent,
  work: (tx: ControlTx) => { readonly result: T; readonly revision: bigint },
): Applied<T> {
  const { operationId, kind } = intent
  const applied = root.control.transaction((tx): Applied<T> => {
    const earlier = findOperation(tx, operationId)
    if (earlier !== null) return replay(root.keyring, earlier, actor, intent)
    requireRecent(system, intent.changedAtMicros, 'changedAtMicros')
    const { result, revision } = work(tx)
    const createdAtMicros = system.nowMicros()
    pruneOperations(tx, system)
    const keyId = root.keyring.activeId
    insertOperation(tx, {
      operationId,
      kind,
      fingerprint: fingerprintOf(root.keyring, keyId, actor, intent),
      keyId,
      // In the order of its keys, so that a repeat is answered with the same bytes.
      result: JSON.stringify(result),
      revision,
      createdAtMicros,
    })
    const { subject, requestId } = intent
    audit.append(tx, actor, { operation: `product.${kind}`, subject, requestId, operationId })
    return { result, operation: { operationId, kind, replayed: false, revision, createdAtMicros } }
  })
  audit.deliver()
  return applied
}

/** Whether the ID was used, so that a repeat need not be looked into before it is answered. */
export function isApplied({ root }: Pick<Product, 'root'>, operationId: OperationId): boolean {
  return root.control.read((reader) => findOperation(reader, operationId)) !== null
}

/**
 * What was committed under the ID on this kind of resource, the first part of `kind`. Throws
 * PRODUCT_NOT_FOUND: nothing was, until now.
 */
export function findApplied(
  { root }: Pick<Product, 'root'>,
  resource: string,
  operationId: OperationId,
): Operation {
  const found = root.control.read((reader) => findOperation(reader, operationId))
  if (found === null || !found.kind.startsWith(`${resource}.`)) {
    throw new Fault('PRODUCT_NOT_FOUND', { detail: operationId })
  }
  const { kind, revision, createdAtMicros } = found
  return { operationId, kind, replayed: true, revision, createdAtMicros }
}

/** Forgets what is too old to be repeated. */
export function pruneOperations(tx: ControlTx, system: Pick<System, 'nowMicros'>): void {
  deleteOperationsBefore(tx, system.nowMicros() - RETENTION_MICROS)
}

function replay<T extends Json>(
  keyring: Keyring,
  earlier: OperationRecord,
  actor: Actor,
  intent: Intent,
): Applied<T> {
  const fingerprint = fingerprintOf(keyring, earlier.keyId, actor, intent)
  if (!digestEquals(fingerprint, earlier.fingerprint)) throw new Fault('PRODUCT_OPERATION_REUSED')
  const { operationId, kind, result, revision, createdAtMicros } = earlier
  return {
    result: JSON.parse(result) as T,
    operation: { operationId, kind, replayed: true, revision, createdAtMicros },
  }
}

/** Keyed: whoever stole the control database must not try out secrets against a plain digest. */
function fingerprintOf(
  keyring: Keyring,
  keyId: string,
  { operatorId }: Actor,
  { kind, request, changedAtMicros }: Intent,
): Buffer {
  const key = keyring.derive(keyId, 'operation-fingerprint')
  const text = canonicalJson({ kind, operatorId, request, at: String(changedAtMicros) })
  return secretDigest(key, 'operation-fingerprint', text)
}
