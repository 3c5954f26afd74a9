/**
 * Storage keys as operators issue, rotate and revoke them. A key opens one bucket to S3 clients.
 * Its secret is derived and could be shown again, but only the first response contains it.
 */
import type { Actor } from '../../identity/actor.ts'
import type { ControlReader, ControlTx } from '../../storage/control/database.ts'
import {
  countActiveStorageKeys,
  findStorageKey,
  insertStorageKey,
  listStorageKeys,
  markStorageKeyRevoked,
  type StorageKey,
} from '../../storage/control/storage-keys.ts'
import type { BucketId, OperationId, RequestId, StorageKeyId } from '../../value/ids.ts'
import type { StorageAccess } from '../../value/manifest.ts'
import type { Secret } from '../../value/secret.ts'
import type { StorageKeyField } from '../../wire/files/buckets.ts'
import { requireName } from '../application-clients/application-clients.ts'
import { type Applied, applyOnce } from '../idempotency/idempotency-records.ts'
import type { ChangePorts, RootPort } from '../ports.ts'
import { limitReached, notFound, stateConflict } from '../resource-faults.ts'
import { requireActive, requireBucket } from './buckets.ts'
import { storageSecret } from './storage-callers.ts'

/** @limit Files: active storage keys of a bucket */
export const STORAGE_KEYS_MAX = 100

/** Stored as JSON with its idempotency record, so times are decimal text. */
export type StorageKeyState = Omit<StorageKeyField, 'accessKeyId'>

export interface IssuedKey extends Applied<StorageKeyState> {
  /** Null for a repeat. */
  readonly secret: Secret | null
}

interface KeyInput {
  readonly operationId: OperationId
  readonly bucketId: BucketId
  readonly changedAtMicros: bigint
  readonly requestId: RequestId
}

export interface IssueInput extends KeyInput {
  readonly name: string
  readonly access: StorageAccess
}

export interface NamedKeyInput extends KeyInput {
  readonly storageKeyId: StorageKeyId
}

/** Returns a page in the order of the IDs, revoked keys included. Throws PRODUCT_NOT_FOUND. */
export function readStorageKeys(
  { root }: RootPort,
  bucketId: BucketId,
  page: { readonly after: StorageKeyId | null; readonly limit: number },
): { readonly keys: readonly StorageKeyState[]; readonly next: StorageKeyId | null } {
  const { limit } = page
  const found = root.control.read((reader) => {
    requireBucket(reader, bucketId)
    return listStorageKeys(reader, bucketId, { ...page, limit: limit + 1 })
  })
  const keys = found.slice(0, limit).map(stateOf)
  return { keys, next: found.length > limit ? keys.at(-1)!.storageKeyId : null }
}

/**
 * Issues a key. Throws PRODUCT_INVALID, PRODUCT_NOT_FOUND, PRODUCT_OPERATION_REUSED, and
 * PRODUCT_STATE_CONFLICT for an archived bucket and one key too many.
 */
export function issueStorageKey(ports: ChangePorts, actor: Actor, input: IssueInput): IssuedKey {
  const { bucketId, access } = input
  const name = requireName(input.name)
  const request = { bucketId, name, access }
  return issue(ports, actor, { ...input, verb: 'issue', request }, () => {
    return { name, access, replaces: null }
  })
}

/**
 * Issues a second key with the name and the access of an active one, which stays active. Throws
 * what issueStorageKey throws, and PRODUCT_STATE_CONFLICT for a revoked key.
 */
export function rotateStorageKey(
  ports: ChangePorts,
  actor: Actor,
  input: NamedKeyInput,
): IssuedKey {
  const { bucketId, storageKeyId } = input
  const request = { bucketId, storageKeyId }
  return issue(ports, actor, { ...input, verb: 'rotate', request }, (tx) => {
    const { name, access, state } = requireKey(tx, input)
    if (state === 'active') return { name, access, replaces: storageKeyId }
    const rule = 'a storage key that is active; this one is revoked'
    throw stateConflict({ path: 'storageKeyId', rule, detail: `${storageKeyId} is revoked` })
  })
}

/**
 * Revokes a key permanently, from the next request on. Revoking it again changes nothing. Throws
 * PRODUCT_NOT_FOUND, PRODUCT_INVALID and PRODUCT_OPERATION_REUSED.
 */
export function revokeStorageKey(
  ports: ChangePorts,
  actor: Actor,
  { operationId, bucketId, storageKeyId, changedAtMicros, requestId }: NamedKeyInput,
): Applied<StorageKeyState> {
  const intent = {
    operationId,
    kind: 'storage_key.revoke',
    request: { bucketId, storageKeyId },
    changedAtMicros,
    subject: storageKeyId,
    requestId,
  } as const
  return applyOnce(ports, actor, intent, (tx) => {
    const { revision } = requireBucket(tx, bucketId)
    requireKey(tx, { bucketId, storageKeyId })
    markStorageKeyRevoked(tx, storageKeyId, ports.system.nowMicros())
    return { result: stateOf(findStorageKey(tx, storageKeyId)!), revision }
  })
}

function issue(
  ports: ChangePorts,
  actor: Actor,
  input: KeyInput & {
    readonly verb: 'issue' | 'rotate'
    readonly request: Record<string, string>
  },
  plan: (tx: ControlTx) => Pick<StorageKey, 'name' | 'access' | 'replaces'>,
): IssuedKey {
  const { operationId, bucketId, changedAtMicros, requestId, verb, request } = input
  const storageKeyId = ports.system.ids.make('stk')
  const { keyring } = ports.root
  const keyId = keyring.activeId
  const intent = {
    operationId,
    kind: `storage_key.${verb}`,
    request,
    changedAtMicros,
    subject: storageKeyId,
    requestId,
  } as const
  const applied = applyOnce(ports, actor, intent, (tx) => {
    const bucket = requireBucket(tx, bucketId)
    requireActive(bucket)
    if (countActiveStorageKeys(tx, bucketId) >= STORAGE_KEYS_MAX) {
      throw limitReached('bucketId', STORAGE_KEYS_MAX, 'active storage keys of this bucket')
    }
    const created = { createdAtMicros: ports.system.nowMicros(), revokedAtMicros: null }
    const named = { storageKeyId, bucketId, state: 'active', keyId } as const
    const key: StorageKey = { ...named, ...created, ...plan(tx) }
    insertStorageKey(tx, key)
    return { result: stateOf(key), revision: bucket.revision }
  })
  const secret = applied.operation.replayed ? null : storageSecret(keyring, keyId, storageKeyId)
  return { ...applied, secret }
}

function requireKey(
  reader: ControlReader,
  { bucketId, storageKeyId }: Pick<NamedKeyInput, 'bucketId' | 'storageKeyId'>,
): StorageKey {
  const found = findStorageKey(reader, storageKeyId)
  if (found?.bucketId === bucketId) return found
  throw notFound({
    path: 'storageKeyId',
    rule: 'a storage key of this bucket',
    detail: `${storageKeyId} of ${bucketId}`,
  })
}

function stateOf(key: StorageKey): StorageKeyState {
  return {
    storageKeyId: key.storageKeyId,
    bucketId: key.bucketId,
    name: key.name,
    access: key.access,
    state: key.state,
    replaces: key.replaces,
    createdAtMicros: String(key.createdAtMicros),
    revokedAtMicros: key.revokedAtMicros === null ? null : String(key.revokedAtMicros),
  }
}
