/**
 * Looks up the storage keys of S3 clients. The secret is a MAC of the key's ID under a key of the
 * keyring, so that signatures can be checked without a stored secret.
 */
import { findBucket } from '../../storage/control/buckets.ts'
import type { ControlDatabase } from '../../storage/control/database.ts'
import { findStorageKey } from '../../storage/control/storage-keys.ts'
import type { Keyring } from '../../storage/keyring.ts'
import { secretDigest } from '../../system/digests.ts'
import { encodeBase64Url } from '../../value/base64url.ts'
import { type BucketId, isId, type StorageKeyId } from '../../value/ids.ts'
import type { StorageAccess } from '../../value/manifest.ts'
import { Secret } from '../../value/secret.ts'
import { rethrowForApplication } from '../application-faults.ts'

export interface StorageCaller {
  readonly storageKeyId: StorageKeyId
  readonly bucketId: BucketId
  readonly bucketName: string
  /** `write` includes reading. */
  readonly access: StorageAccess
  readonly secretAccessKey: Secret
}

/** Prefix of every secret, by which the log redacts it. */
export const STORAGE_SECRET_PREFIX = 'rk_stk_v1_'

export class StorageKeys {
  readonly #control: ControlDatabase
  readonly #keyring: Keyring

  constructor({
    control,
    keyring,
  }: {
    readonly control: ControlDatabase
    readonly keyring: Keyring
  }) {
    this.#control = control
    this.#keyring = keyring
  }

  /**
   * Returns null unless the text is the ID of an active key of an active bucket. Each look-up reads
   * the database, so that a revocation or an archive is effective at once. Raises UNAVAILABLE and
   * INTERNAL.
   */
  find(accessKeyId: string): StorageCaller | null {
    if (!isId('stk', accessKeyId)) return null
    try {
      const found = this.#control.read((reader) => {
        const key = findStorageKey(reader, accessKeyId)
        return key && { key, bucket: findBucket(reader, key.bucketId) }
      })
      if (found?.bucket?.lifecycle !== 'active' || found.key.keyId === null) return null
      const { storageKeyId, bucketId, access, keyId } = found.key
      const { name: bucketName } = found.bucket.configuration
      const secretAccessKey = storageSecret(this.#keyring, keyId, storageKeyId)
      return { storageKeyId, bucketId, bucketName, access, secretAccessKey }
    } catch (error) {
      rethrowForApplication(error)
    }
  }
}

/** Returns the prefix and 43 characters. `keyId` is a key of the keyring. */
export function storageSecret(keyring: Keyring, keyId: string, id: StorageKeyId): Secret {
  const mac = secretDigest(keyring.derive(keyId, 'storage-key'), 'storage-key', id)
  return new Secret(STORAGE_SECRET_PREFIX + encodeBase64Url(mac))
}
