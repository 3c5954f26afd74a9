/**
 * Idempotency records: a change that carries an Operation ID is applied once, however often its
 * request is repeated. The record commits with the change, so neither exists without the other.
 */

import { Fault } from '../../errors/fault.ts'
import type { RecordedActor } from '../../identity/actor.ts'
import type { ControlTx } from '../../storage/control/database.ts'
import {
  deleteIdempotencyRecordsBefore,
  findIdempotencyRecord,
  type IdempotencyRecord,
  insertIdempotencyRecord,
} from '../../storage/control/idempotency-records.ts'
import type { Keyring } from '../../storage/keyring.ts'
import { requireRecent } from '../../system/client-clock.ts'
import { digestEquals, secretDigest } from '../../system/digests.ts'
import type { System } from '../../system/system.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import type { OperationId, RequestId } from '../../value/ids.ts'
import type { Json } from '../../value/strict-json.ts'
import type { ChangePorts, RootPort } from '../ports.ts'
import { notFound } from '../resource-faults.ts'

/**
 * Retention of a record. A first attempt is rejected as too old long before, so that a request
 * cannot be applied again after its record was deleted.
 */
const RETENTION_MICROS = 30n * 24n * 60n * 60n * 1_000_000n

export interface Intent {
  readonly operationId: OperationId
  /** `<resource>.<verb>`; the audit names it `product.<resource>.<verb>`. */
  readonly kind: `${string}.${string}`
  /** All input of the request: path parameters and the body, secrets included. */
  readonly request: Json
  /** The client's clock. */
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
 * Commits the writes of `apply`, their audit record and their result; returns the first result to
 * an exact repeat. Throws PRODUCT_OPERATION_REUSED if the ID was used by another operator or with
 * other content, PRODUCT_INVALID if the client's clock is off by a day, and what `apply` throws.
 */
export function applyOnce<T extends Json>(
  { system, root, audit }: ChangePorts,
  actor: RecordedActor,
  intent: Intent,
  apply: (tx: ControlTx) => { readonly result: T; readonly revision: bigint },
): Applied<T> {
  const { operationId, kind } = intent
  const applied = root.control.transaction((tx): Applied<T> => {
    const earlier = findIdempotencyRecord(tx, operationId)
    if (earlier !== null) return replay(root.keyring, earlier, actor, intent)
    requireRecent(system, intent.changedAtMicros, 'changedAtMicros')
    const { result, revision } = apply(tx)
    const createdAtMicros = system.nowMicros()
    pruneIdempotencyRecords(tx, system)
    const keyId = root.keyring.activeId
    insertIdempotencyRecord(tx, {
      operationId,
      kind,
      fingerprint: fingerprintOf(root.keyring, keyId, actor, intent),
      keyId,
      // JSON.stringify keeps the order of the keys, so that a repeat gets the same bytes.
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

/**
 * Returns whether the ID was used. A repeat needs none of the checks that precede its transaction.
 */
export function isApplied({ root }: RootPort, operationId: OperationId): boolean {
  return root.control.read((reader) => findIdempotencyRecord(reader, operationId)) !== null
}

/**
 * Returns the operation that was committed under the ID on this kind of resource, the first part of
 * `kind`. Throws PRODUCT_NOT_FOUND if none was committed.
 */
export function findApplied(
  ports: RootPort,
  resource: string,
  operationId: OperationId,
): Operation {
  const found = appliedOrNull(ports, [resource], operationId)
  if (found === null) throw noOperation(operationId)
  return found
}

/**
 * Returns the operation as `findApplied` does, of any of the resources; null if none was committed.
 */
export function appliedOrNull(
  { root }: RootPort,
  resources: readonly string[],
  operationId: OperationId,
): Operation | null {
  const found = root.control.read((reader) => findIdempotencyRecord(reader, operationId))
  if (found === null || !resources.includes(found.kind.split('.', 1)[0]!)) return null
  const { kind, revision, createdAtMicros } = found
  return { operationId, kind, replayed: true, revision, createdAtMicros }
}

/** Returns a PRODUCT_NOT_FOUND. */
export function noOperation(operationId: OperationId): Fault {
  const rule = 'an operation that was committed on this kind of resource'
  return notFound({ path: 'operationId', rule, detail: operationId })
}

/** Deletes the records that are older than RETENTION_MICROS. */
export function pruneIdempotencyRecords(tx: ControlTx, system: Pick<System, 'nowMicros'>): void {
  deleteIdempotencyRecordsBefore(tx, system.nowMicros() - RETENTION_MICROS)
}

function replay<T extends Json>(
  keyring: Keyring,
  earlier: IdempotencyRecord,
  actor: RecordedActor,
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

/**
 * Returns the fingerprint of a request. It is keyed, so that secrets in requests cannot be guessed
 * from a stolen control database.
 */
function fingerprintOf(
  keyring: Keyring,
  keyId: string,
  { operatorId }: RecordedActor,
  { kind, request, changedAtMicros }: Intent,
): Buffer {
  const key = keyring.derive(keyId, 'operation-fingerprint')
  const text = canonicalJson({ kind, operatorId, request, at: String(changedAtMicros) })
  return secretDigest(key, 'operation-fingerprint', text)
}
