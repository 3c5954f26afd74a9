/** Rows of storage_keys, which hold no secret: it is derived from the keyring and the key's ID. */
import type { BucketId, StorageKeyId } from '../../value/ids.ts'
import type { StorageAccess } from '../../value/manifest.ts'
import type { ControlReader, ControlTx } from './database.ts'

export interface StorageKey {
  readonly storageKeyId: StorageKeyId
  readonly bucketId: BucketId
  readonly name: string
  readonly access: StorageAccess
  readonly state: 'active' | 'revoked'
  /** ID of the keyring's key that the secret is derived from; null for a revoked one. */
  readonly keyId: string | null
  readonly replaces: StorageKeyId | null
  readonly createdAtMicros: bigint
  readonly revokedAtMicros: bigint | null
}

interface Row {
  storage_key_id: StorageKeyId
  bucket_id: BucketId
  name: string
  access: StorageAccess
  state: StorageKey['state']
  key_id: string | null
  replaces: StorageKeyId | null
  created_at: number
  revoked_at: number | null
}

const SELECT = `select storage_key_id, bucket_id, name, access, state, key_id, replaces, created_at,
        revoked_at
   from storage_keys`

export function findStorageKey(reader: ControlReader, id: StorageKeyId): StorageKey | null {
  const row = reader.get<Row>(`${SELECT} where storage_key_id = ?`, id)
  return row === null ? null : toStorageKey(row)
}

/** Returns keys of a bucket in the order of their IDs, beginning after one of them. */
export function listStorageKeys(
  reader: ControlReader,
  bucketId: BucketId,
  { after, limit }: { readonly after: StorageKeyId | null; readonly limit: number },
): StorageKey[] {
  return reader
    .all<Row>(
      `${SELECT} where bucket_id = ? and storage_key_id > ? order by storage_key_id limit ?`,
      bucketId,
      after ?? '',
      limit,
    )
    .map(toStorageKey)
}

export function countActiveStorageKeys(reader: ControlReader, bucketId: BucketId): number {
  return reader.get<{ count: number }>(
    `select count(*) as count from storage_keys where bucket_id = ? and state = 'active'`,
    bucketId,
  )!.count
}

export function insertStorageKey(tx: ControlTx, key: StorageKey): void {
  tx.run(
    `insert into storage_keys (storage_key_id, bucket_id, name, access, state, key_id, replaces,
            created_at, revoked_at)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    key.storageKeyId,
    key.bucketId,
    key.name,
    key.access,
    key.state,
    key.keyId,
    key.replaces,
    key.createdAtMicros,
    key.revokedAtMicros,
  )
}

/** Revokes an active key permanently: no statement makes it active again. */
export function markStorageKeyRevoked(tx: ControlTx, id: StorageKeyId, atMicros: bigint): void {
  tx.run(
    `update storage_keys set state = 'revoked', key_id = null, revoked_at = ?
      where storage_key_id = ? and state = 'active'`,
    atMicros,
    id,
  )
}

function toStorageKey(row: Row): StorageKey {
  return {
    storageKeyId: row.storage_key_id,
    bucketId: row.bucket_id,
    name: row.name,
    access: row.access,
    state: row.state,
    keyId: row.key_id,
    replaces: row.replaces,
    createdAtMicros: BigInt(row.created_at),
    revokedAtMicros: row.revoked_at === null ? null : BigInt(row.revoked_at),
  }
}
