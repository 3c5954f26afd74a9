/**
 * Credentials of an Application Client. A public key is derived from its credential's ID, so it can
 * be told again; a confidential or development key is random and told once.
 */
import { Fault } from '../errors/fault.ts'
import type { Actor } from '../identity/actor.ts'
import {
  type ApplicationClient,
  type ApplicationKind,
  findClient,
} from '../storage/control/application-clients.ts'
import {
  type ApplicationCredential,
  type CredentialOfKey,
  countCredentials,
  findCredential,
  insertCredential,
  listCredentials as listRows,
} from '../storage/control/application-credentials.ts'
import type { ControlReader } from '../storage/control/database.ts'
import type { ApplicationScope } from '../storage/control/scopes.ts'
import type { Keyring } from '../storage/keyring.ts'
import { digestEquals, randomSecret, secretDigest } from '../system/digests.ts'
import { encodeBase64Url } from '../value/base64url.ts'
import type { ClientId, CredentialId, RequestId } from '../value/ids.ts'
import { Secret } from '../value/secret.ts'
import { requireName, requireRecent, requireScopes } from './application-clients.ts'
import type { Product } from './product.ts'

export type { ApplicationCredential } from '../storage/control/application-credentials.ts'

export const CREDENTIALS_MAX = 1_000
export const RATE_LIMIT_MAX = 1_000_000

export const KEY_PREFIXES = {
  public: 'rk_pub_v1_',
  confidential: 'rk_sec_v1_',
  development: 'rk_dev_v1_',
} as const satisfies Record<ApplicationKind, string>

export interface CredentialInput {
  readonly clientId: ClientId
  readonly credentialId: CredentialId
  readonly name: string
  readonly scopes: readonly ApplicationScope[]
  /** Requests a second; null for the default. */
  readonly rateLimit: number | null
  readonly createdAtMicros: bigint
  readonly requestId: RequestId
}

export interface CredentialCreated {
  readonly credential: ApplicationCredential
  /** null where it was told already and cannot be told again. */
  readonly key: Secret | null
  readonly secretShownOnce: boolean
  readonly replayed: boolean
}

type App = Pick<Product, 'system' | 'root' | 'audit' | 'keys'>

/** Throws PRODUCT_NOT_FOUND. */
export function listCredentials(
  { root }: Pick<Product, 'root'>,
  clientId: ClientId,
): ApplicationCredential[] {
  return root.control.read((reader) => {
    requireClient(reader, clientId)
    return listRows(reader, clientId)
  })
}

/**
 * Creates, or answers an exact replay: with the key of a public credential, without that of any
 * other. Throws PRODUCT_INVALID, PRODUCT_NOT_FOUND for the client, PRODUCT_OPERATION_REUSED where
 * the ID was used with other content, PRODUCT_STATE_CONFLICT where there are too many.
 */
export function createCredential(
  { system, root, audit, keys }: App,
  actor: Actor,
  input: CredentialInput,
): CredentialCreated {
  const created = root.control.transaction((tx): CredentialCreated => {
    const client = requireClient(tx, input.clientId)
    const credential = newCredential(client, input)
    const earlier = findCredential(tx, credential.credentialId)
    if (earlier !== null) return replay(root.keyring, earlier, credential)
    requireRecent(system, credential.createdAtMicros)
    if (countCredentials(tx, client.clientId) >= CREDENTIALS_MAX) {
      throw new Fault('PRODUCT_STATE_CONFLICT', { detail: `${CREDENTIALS_MAX} credentials` })
    }
    const keyId = root.keyring.activeId
    const key =
      client.kind === 'public'
        ? publicKey(root.keyring, keyId, credential.credentialId)
        : new Secret(randomSecret(system, KEY_PREFIXES[client.kind]))
    insertCredential(tx, credential, { keyId, digest: keyDigest(root.keyring, keyId, key) })
    audit.append(tx, actor, {
      operation: 'product.application_credential.create',
      subject: credential.credentialId,
      requestId: input.requestId,
    })
    return { credential, key, secretShownOnce: client.kind !== 'public', replayed: false }
  })
  keys.forget()
  audit.deliver()
  return created
}

/** What of an Application Key is stored. */
export function keyDigest(keyring: Keyring, keyId: string, key: Secret | string): Buffer {
  return secretDigest(keyring.derive(keyId, 'application-key-digest'), 'application-key', key)
}

function publicKey(keyring: Keyring, keyId: string, credentialId: CredentialId): Secret {
  const key = keyring.derive(keyId, 'application-public-key')
  const mac = secretDigest(key, 'application-public-key', credentialId)
  return new Secret(KEY_PREFIXES.public + encodeBase64Url(mac))
}

function requireClient(reader: ControlReader, clientId: ClientId): ApplicationClient {
  const client = findClient(reader, clientId)
  if (client === null) throw new Fault('PRODUCT_NOT_FOUND', { detail: clientId })
  return client
}

function newCredential(client: ApplicationClient, input: CredentialInput): ApplicationCredential {
  const { rateLimit } = input
  if (
    rateLimit !== null &&
    !(Number.isInteger(rateLimit) && rateLimit >= 1 && rateLimit <= RATE_LIMIT_MAX)
  ) {
    throw new Fault('PRODUCT_INVALID', {
      violations: [{ path: 'rateLimit', rule: `1 to ${RATE_LIMIT_MAX} requests a second` }],
    })
  }
  return {
    credentialId: input.credentialId,
    clientId: client.clientId,
    name: requireName(input.name),
    scopes: requireScopes(input.scopes, client.maximumScopes, 'scopes'),
    state: 'active',
    rateLimit,
    createdAtMicros: input.createdAtMicros,
    revokedAtMicros: null,
    lastUsedAtMicros: null,
    replaces: null,
  }
}

function replay(
  keyring: Keyring,
  earlier: CredentialOfKey,
  asked: ApplicationCredential,
): CredentialCreated {
  const { credential, kind, keyId, digest } = earlier
  const same =
    credential.clientId === asked.clientId &&
    credential.name === asked.name &&
    credential.scopes.join() === asked.scopes.join() &&
    credential.rateLimit === asked.rateLimit &&
    credential.createdAtMicros === asked.createdAtMicros
  if (!same) throw new Fault('PRODUCT_OPERATION_REUSED')
  if (kind !== 'public') return { credential, key: null, secretShownOnce: false, replayed: true }
  const key = publicKey(keyring, keyId, credential.credentialId)
  if (!digestEquals(keyDigest(keyring, keyId, key), digest)) {
    throw new Fault('PRODUCT_CORRUPT', { detail: 'a public key does not fit its digest' })
  }
  return { credential, key, secretShownOnce: false, replayed: true }
}
