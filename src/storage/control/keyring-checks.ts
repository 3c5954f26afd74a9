/** Rows of keyring_checks: the keys that the control database was written with. */
import type { ControlReader, ControlTx } from './database.ts'

export interface KeyringCheck {
  readonly keyId: string
  readonly digest: Uint8Array
}

export function listKeyringChecks(reader: ControlReader): KeyringCheck[] {
  return reader
    .all<{ key_id: string; check_digest: Uint8Array }>(
      'select key_id, check_digest from keyring_checks order by key_id',
    )
    .map((row) => ({ keyId: row.key_id, digest: row.check_digest }))
}

export function insertKeyringCheck(tx: ControlTx, check: KeyringCheck): void {
  tx.run(
    'insert into keyring_checks (key_id, check_digest) values (?, ?)',
    check.keyId,
    check.digest,
  )
}

/** Number of rows of the control database that need a key. */
export interface KeyUses {
  readonly credentials: number
  readonly secrets: number
  readonly operations: number
  readonly storageKeys: number
  readonly mounts: number
}

export function countKeyUses(reader: ControlReader, keyId: string): KeyUses {
  return reader.get<KeyUses>(
    `select (select count(*) from application_credentials where key_id = ?1) as credentials,
            (select count(*) from configuration where key_id = ?1) as secrets,
            (select count(*) from operations where key_id = ?1) as operations,
            (select count(*) from storage_keys where key_id = ?1) as "storageKeys",
            (select count(*) from http_mounts where key_id = ?1) as mounts`,
    keyId,
  )!
}

/** Deletes an unused key; a foreign key rejects the deletion of a key in use. */
export function deleteKeyringCheck(tx: ControlTx, keyId: string): void {
  tx.run('delete from keyring_checks where key_id = ?', keyId)
}
