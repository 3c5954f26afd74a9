/**
 * Credentials of an Application Client. A public key is derived from its credential's ID, so it can
 * be told again; a confidential or development key is random and told once.
 */
import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import {
  type ApplicationClient,
  type ApplicationKind,
  findClient,
} from '../../storage/control/application-clients.ts'
import {
  type ApplicationCredential,
  type CredentialOfKey,
  countCredentials,
  findCredential,
  insertCredential,
  listCredentials as listRows,
  markCredentialDeleted,
  markCredentialRevoked,
} from '../../storage/control/application-credentials.ts'
import type { ControlReader, ControlTx } from '../../storage/control/database.ts'
import type { Keyring } from '../../storage/keyring.ts'
import { digestEquals, randomSecret, secretDigest } from '../../system/digests.ts'
import type { ApplicationScope } from '../../value/application-scopes.ts'
import { encodeBase64Url } from '../../value/base64url.ts'
import type { ClientId, CredentialId, RequestId } from '../../value/ids.ts'
import { Secret } from '../../value/secret.ts'
import type { Product } from '../product.ts'
import { requireName, requireRecent, requireScopes } from './application-clients.ts'

export type { ApplicationCredential } from '../../storage/control/application-credentials.ts'

export const CREDENTIALS_MAX = 1_000
export const RATE_LIMIT_MAX = 1_000_000

export const KEY_PREFIXES = {
  public: 'rk_pub_v1_',
  confidential: 'rk_sec_v1_',
  development: 'rk_dev_v1_',
} as const satisfies Record<ApplicationKind, string>

export interface CredentialName {
  readonly clientId: ClientId
  readonly credentialId: CredentialId
}

export interface CredentialInput extends CredentialName {
  readonly name: string
  readonly scopes: readonly ApplicationScope[]
  /** Requests a second; null for the default. */
  readonly rateLimit: number | null
  readonly createdAtMicros: bigint
  readonly requestId: RequestId
}

export interface RotateInput extends CredentialName {
  readonly replacementId: CredentialId
  readonly changes: Partial<Pick<CredentialInput, 'name' | 'scopes' | 'rateLimit'>>
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
  app: App,
  actor: Actor,
  input: CredentialInput,
): CredentialCreated {
  return issue(app, actor, 'create', input.requestId, (tx) => {
    const client = requireClient(tx, input.clientId)
    return { client, credential: newCredential(client, input), admit: () => undefined }
  })
}

/**
 * A replacement with a key of its own. What `input` leaves out is as with the source, which stays
 * as it is and active. Throws what createCredential throws, and PRODUCT_STATE_CONFLICT where the
 * source is not active.
 */
export function rotateCredential(app: App, actor: Actor, input: RotateInput): CredentialCreated {
  return issue(app, actor, 'rotate', input.requestId, (tx) => {
    const client = requireClient(tx, input.clientId)
    const { credential: source } = requireCredential(tx, input)
    const { name, scopes, rateLimit } = { ...source, ...input.changes }
    const asked = { ...input, credentialId: input.replacementId, name, scopes, rateLimit }
    const credential = { ...newCredential(client, asked), replaces: source.credentialId }
    return { client, credential, admit: () => requireState(source, 'active') }
  })
}

interface Issue {
  readonly client: ApplicationClient
  readonly credential: ApplicationCredential
  /** Throws what only a new credential must fulfil: a replay is answered whatever came after. */
  readonly admit: () => void
}

function issue(
  { system, root, audit, keys }: App,
  actor: Actor,
  verb: 'create' | 'rotate',
  requestId: RequestId,
  plan: (tx: ControlTx) => Issue,
): CredentialCreated {
  const created = root.control.transaction((tx): CredentialCreated => {
    const { client, credential, admit } = plan(tx)
    const earlier = findCredential(tx, credential.credentialId)
    if (earlier !== null) return replay(root.keyring, earlier, credential)
    requireRecent(system, credential.createdAtMicros)
    admit()
    if (countCredentials(tx, client.clientId) >= CREDENTIALS_MAX) {
      throw new Fault('PRODUCT_STATE_CONFLICT', { detail: `${CREDENTIALS_MAX} credentials` })
    }
    const keyId = root.keyring.activeId
    const key =
      client.kind === 'public'
        ? publicKey(root.keyring, keyId, credential.credentialId)
        : new Secret(randomSecret(system, KEY_PREFIXES[client.kind]))
    insertCredential(tx, credential, { keyId, digest: keyDigest(root.keyring, keyId, key) })
    const subject = credential.credentialId
    audit.append(tx, actor, {
      operation: `product.application_credential.${verb}`,
      subject,
      requestId,
    })
    return { credential, key, secretShownOnce: client.kind !== 'public', replayed: false }
  })
  keys.forget()
  audit.deliver()
  return created
}

/**
 * The key of a public credential, made anew and held against its digest. Throws PRODUCT_NOT_FOUND,
 * PRODUCT_INVALID for a credential of another kind, PRODUCT_STATE_CONFLICT for one that is deleted,
 * PRODUCT_CORRUPT.
 */
export function revealKey(
  { root, audit }: Pick<App, 'root' | 'audit'>,
  actor: Actor,
  input: CredentialName & { readonly requestId: RequestId },
): { readonly credential: ApplicationCredential; readonly key: Secret } {
  const revealed = root.control.transaction((tx) => {
    const found = requireCredential(tx, input)
    const { credential, kind } = found
    if (kind !== 'public') {
      throw new Fault('PRODUCT_INVALID', {
        violations: [{ path: 'credential', rule: 'of a public client; other keys are told once' }],
      })
    }
    requireState(credential, 'active', 'revoked')
    audit.append(tx, actor, {
      operation: 'product.application_credential.reveal',
      subject: credential.credentialId,
      requestId: input.requestId,
    })
    return { credential, key: verifiedKey(root.keyring, found) }
  })
  audit.deliver()
  return revealed
}

/** In force on the next request, for good. Again it changes nothing. Throws PRODUCT_NOT_FOUND. */
export function revokeCredential(
  { system, root, audit, keys }: App,
  actor: Actor,
  input: CredentialName & { readonly requestId: RequestId },
): ApplicationCredential {
  const revoked = root.control.transaction((tx) => {
    const { credential } = requireCredential(tx, input)
    if (credential.state !== 'active') return credential
    markCredentialRevoked(tx, credential.credentialId, system.nowMicros())
    audit.append(tx, actor, {
      operation: 'product.application_credential.revoke',
      subject: credential.credentialId,
      requestId: input.requestId,
    })
    return requireCredential(tx, input).credential
  })
  keys.forget()
  audit.deliver()
  return revoked
}

/**
 * Leaves a tombstone. Again it changes nothing. Throws PRODUCT_NOT_FOUND, PRODUCT_STATE_CONFLICT
 * for one that is not revoked.
 */
export function deleteCredential(
  { root, audit }: Pick<App, 'root' | 'audit'>,
  actor: Actor,
  input: CredentialName & { readonly requestId: RequestId },
): void {
  root.control.transaction((tx) => {
    const { credential } = requireCredential(tx, input)
    requireState(credential, 'revoked', 'deleted')
    if (credential.state === 'deleted') return
    markCredentialDeleted(tx, credential.credentialId)
    audit.append(tx, actor, {
      operation: 'product.application_credential.delete',
      subject: credential.credentialId,
      requestId: input.requestId,
    })
  })
  audit.deliver()
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

function requireCredential(
  reader: ControlReader,
  { clientId, credentialId }: CredentialName,
): CredentialOfKey {
  const found = findCredential(reader, credentialId)
  if (found?.credential.clientId === clientId) return found
  throw new Fault('PRODUCT_NOT_FOUND', { detail: `${credentialId} of ${clientId}` })
}

function requireState(
  { credentialId, state }: ApplicationCredential,
  ...allowed: readonly ApplicationCredential['state'][]
): void {
  if (allowed.includes(state)) return
  throw new Fault('PRODUCT_STATE_CONFLICT', { detail: `${credentialId} is ${state}` })
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
  const { credential, kind } = earlier
  const same =
    credential.clientId === asked.clientId &&
    credential.name === asked.name &&
    credential.scopes.join() === asked.scopes.join() &&
    credential.rateLimit === asked.rateLimit &&
    credential.replaces === asked.replaces &&
    credential.createdAtMicros === asked.createdAtMicros
  if (!same) throw new Fault('PRODUCT_OPERATION_REUSED')
  if (kind !== 'public') return { credential, key: null, secretShownOnce: false, replayed: true }
  // A key that was withdrawn is not handed out again.
  const key = credential.state === 'active' ? verifiedKey(keyring, earlier) : null
  return { credential, key, secretShownOnce: false, replayed: true }
}

/** Of a public credential. Throws PRODUCT_CORRUPT where the key does not fit the digest. */
function verifiedKey(keyring: Keyring, { credential, keyId, digest }: CredentialOfKey): Secret {
  const key = publicKey(keyring, keyId, credential.credentialId)
  if (digestEquals(keyDigest(keyring, keyId, key), digest)) return key
  throw new Fault('PRODUCT_CORRUPT', { detail: 'a public key does not fit its digest' })
}
