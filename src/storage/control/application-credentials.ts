/** Rows of application_credentials, which hold a key only as its keyed digest. */
import type { ApplicationScope } from '../../value/application-scopes.ts'
import type { ClientId, CredentialId } from '../../value/ids.ts'
import type { ApplicationKind } from './application-clients.ts'
import type { ControlReader, ControlTx } from './database.ts'
import { joinScopes, splitScopes } from './scopes.ts'

export interface ApplicationCredential {
  readonly credentialId: CredentialId
  readonly clientId: ClientId
  readonly name: string
  /** Sorted, each once. */
  readonly scopes: readonly ApplicationScope[]
  readonly state: 'active' | 'revoked' | 'deleted'
  /** Requests a second; null for the default. */
  readonly rateLimit: number | null
  readonly createdAtMicros: bigint
  readonly revokedAtMicros: bigint | null
  readonly lastUsedAtMicros: bigint | null
  readonly replaces: CredentialId | null
}

/** The digest of an Application Key and the ID of the keyring's key that it was made with. */
export interface KeyDigest {
  readonly keyId: string
  readonly digest: Uint8Array
}

export interface KeyedCredential extends KeyDigest {
  readonly credential: ApplicationCredential
  readonly kind: ApplicationKind
}

interface Row {
  credential_id: CredentialId
  client_id: ClientId
  name: string
  scopes: string
  state: ApplicationCredential['state']
  rate_limit: number | null
  created_at: number
  revoked_at: number | null
  last_used_at: number | null
  replaces: CredentialId | null
}

interface KeyRow extends Row {
  kind: ApplicationKind
  key_id: string
  key_digest: Uint8Array
}

const COLUMNS = `c.credential_id, c.client_id, c.name, c.scopes, c.state, c.rate_limit,
  c.created_at, c.revoked_at, c.last_used_at, c.replaces`
const WITH_KEY = `select ${COLUMNS}, c.key_id, c.key_digest, a.kind
   from application_credentials c
   join application_clients a on a.client_id = c.client_id`

export function findCredential(reader: ControlReader, id: CredentialId): KeyedCredential | null {
  const row = reader.get<KeyRow>(`${WITH_KEY} where c.credential_id = ?`, id)
  return row === null ? null : toKeyedCredential(row)
}

export function findCredentialByDigest(
  reader: ControlReader,
  digest: Uint8Array,
): KeyedCredential | null {
  const row = reader.get<KeyRow>(`${WITH_KEY} where c.key_digest = ?`, digest)
  return row === null ? null : toKeyedCredential(row)
}

export function listCredentials(reader: ControlReader, client: ClientId): ApplicationCredential[] {
  return reader
    .all<Row>(
      `select ${COLUMNS} from application_credentials c
        where c.client_id = ? order by c.credential_id`,
      client,
    )
    .map(toCredential)
}

/** Counts the credentials of a client that are not deleted. */
export function countCredentials(reader: ControlReader, client: ClientId): number {
  return reader.get<{ count: number }>(
    `select count(*) as count from application_credentials
      where client_id = ? and state <> 'deleted'`,
    client,
  )!.count
}

export function insertCredential(
  tx: ControlTx,
  credential: ApplicationCredential,
  key: KeyDigest,
): void {
  tx.run(
    `insert into application_credentials (credential_id, client_id, name, scopes, state,
            rate_limit, created_at, revoked_at, last_used_at, replaces, key_id, key_digest)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    credential.credentialId,
    credential.clientId,
    credential.name,
    joinScopes(credential.scopes),
    credential.state,
    credential.rateLimit,
    credential.createdAtMicros,
    credential.revokedAtMicros,
    credential.lastUsedAtMicros,
    credential.replaces,
    key.keyId,
    key.digest,
  )
}

/** Revokes an active credential permanently: no statement makes it active again. */
export function markCredentialRevoked(tx: ControlTx, id: CredentialId, atMicros: bigint): void {
  tx.run(
    `update application_credentials set state = 'revoked', revoked_at = ?
      where credential_id = ? and state = 'active'`,
    atMicros,
    id,
  )
}

/** Keeps the row as a tombstone, so that neither its ID nor its key is ever used again. */
export function markCredentialDeleted(tx: ControlTx, id: CredentialId): void {
  tx.run(
    `update application_credentials set state = 'deleted'
      where credential_id = ? and state = 'revoked'`,
    id,
  )
}

export function markCredentialUsed(tx: ControlTx, id: CredentialId, atMicros: bigint): void {
  tx.run(
    'update application_credentials set last_used_at = ? where credential_id = ?',
    atMicros,
    id,
  )
}

function toKeyedCredential(row: KeyRow): KeyedCredential {
  return {
    credential: toCredential(row),
    kind: row.kind,
    keyId: row.key_id,
    digest: row.key_digest,
  }
}

function toCredential(row: Row): ApplicationCredential {
  return {
    credentialId: row.credential_id,
    clientId: row.client_id,
    name: row.name,
    scopes: splitScopes(row.scopes),
    state: row.state,
    rateLimit: row.rate_limit,
    createdAtMicros: BigInt(row.created_at),
    revokedAtMicros: row.revoked_at === null ? null : BigInt(row.revoked_at),
    lastUsedAtMicros: row.last_used_at === null ? null : BigInt(row.last_used_at),
    replaces: row.replaces,
  }
}
