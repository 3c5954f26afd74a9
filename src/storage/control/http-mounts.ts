/** Rows of http_mounts. Callers apply the rules. */
import type { ControlReader, ControlTx } from './database.ts'

/** The secret part of the path of a mount. */
export interface MountToken {
  readonly digest: Uint8Array
  /** ID of the keyring's key that the digest was made with. */
  readonly keyId: string
}

export interface StoredMount {
  readonly name: string
  readonly target: string
  /** Requests a second; null for the default. */
  readonly rateLimit: number | null
  /** The URL of the application origin as other services call it; null if it is not known. */
  readonly publicUrl: string | null
  /** Null for paths without a secret. */
  readonly token: MountToken | null
  /** Grows by one with every change, from 1. */
  readonly revision: bigint
  readonly createdAtMicros: bigint
  readonly updatedAtMicros: bigint
}

interface Row {
  name: string
  target: string
  rate_limit: number | null
  public_url: string | null
  token_digest: Uint8Array | null
  key_id: string | null
  revision: number
  created_at: number
  updated_at: number
}

const SELECT = `select name, target, rate_limit, public_url, token_digest, key_id, revision,
        created_at, updated_at
   from http_mounts`

export function findMount(reader: ControlReader, name: string): StoredMount | null {
  const row = reader.get<Row>(`${SELECT} where name = ?`, name)
  return row === null ? null : toMount(row)
}

/** Returns all mounts in the order of their names. */
export function listMounts(reader: ControlReader): StoredMount[] {
  return reader.all<Row>(`${SELECT} order by name`).map(toMount)
}

/** Stores a mount, in place of the one that has its name. */
export function putMount(tx: ControlTx, mount: StoredMount): void {
  tx.run(
    `insert or replace into http_mounts (name, target, rate_limit, public_url, token_digest,
            key_id, revision, created_at, updated_at)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    mount.name,
    mount.target,
    mount.rateLimit,
    mount.publicUrl,
    mount.token?.digest ?? null,
    mount.token?.keyId ?? null,
    mount.revision,
    mount.createdAtMicros,
    mount.updatedAtMicros,
  )
}

export function deleteMount(tx: ControlTx, name: string): void {
  tx.run('delete from http_mounts where name = ?', name)
}

function toMount(row: Row): StoredMount {
  const { token_digest: digest, key_id: keyId } = row
  return {
    name: row.name,
    target: row.target,
    rateLimit: row.rate_limit,
    publicUrl: row.public_url,
    token: digest === null || keyId === null ? null : { digest, keyId },
    revision: BigInt(row.revision),
    createdAtMicros: BigInt(row.created_at),
    updatedAtMicros: BigInt(row.updated_at),
  }
}
