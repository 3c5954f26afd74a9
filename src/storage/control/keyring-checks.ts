/** Rows of keyring_checks: which keys the control database was written with. */
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
