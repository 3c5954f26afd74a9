/** The keys that work, which a restore may have brought back. */
import type { CredentialId, StorageKeyId } from '../../value/ids.ts'
import type { ControlReader } from './database.ts'

export interface LiveKey<Id> {
  readonly id: Id
  readonly name: string
}

export interface LiveKeys {
  readonly credentials: readonly LiveKey<CredentialId>[]
  readonly storageKeys: readonly LiveKey<StorageKeyId>[]
}

export function listLiveKeys(reader: ControlReader): LiveKeys {
  return {
    credentials: reader.all<LiveKey<CredentialId>>(
      `select credential_id as id, name from application_credentials
        where state = 'active' order by credential_id`,
    ),
    storageKeys: reader.all<LiveKey<StorageKeyId>>(
      `select storage_key_id as id, name from storage_keys
        where state = 'active' order by storage_key_id`,
    ),
  }
}
