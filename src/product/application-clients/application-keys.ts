/**
 * Credentials of an Application Client. A public key is derived from its credential's ID, so it can
 * be shown again; a confidential or development key is random and shown once.
 */

import { Fault } from '../../errors/fault.ts'
import type { RecordedActor } from '../../identity/actor.ts'
import {
  type ApplicationClient,
  type ApplicationKind,
  findClient,
} from '../../storage/control/application-clients.ts'
import {
  type ApplicationCredential,
  countCredentials,
  findCredential,
  insertCredential,
  type KeyedCredential,
  listCredentials as listRows,
  markCredentialDeleted,
  markCredentialRevoked,
} from '../../storage/control/application-credentials.ts'
import type { ControlReader, ControlTx } from '../../storage/control/database.ts'
import type { Keyring } from '../../storage/keyring.ts'
import { requireRecent } from '../../system/client-clock.ts'
import { digestEquals, randomSecret, secretDigest } from '../../system/digests.ts'
import type { ApplicationScope } from '../../value/application-scopes.ts'
import { encodeBase64Url } from '../../value/base64url.ts'
import type { ClientId, CredentialId, RequestId } from '../../value/ids.ts'
import { Secret } from '../../value/secret.ts'
import type { ChangePorts, RootPort } from '../ports.ts'
import { limitReached, notFound, stateConflict } from '../resource-faults.ts'
import { requireName, requireScopes } from './application-clients.ts'

export type { ApplicationCredential } from '../../storage/control/application-credentials.ts'

/**
 * The list of them has no pages, so this bounds its response.
 * @limit Identity and keys: credentials of an Application Client
 */
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
  /** Null if it was shown before and cannot be shown again. */
  readonly key: Secret | null
  readonly secretShownOnce: boolean
  readonly replayed: boolean
}

export interface CredentialPorts extends ChangePorts {
  /** The cache of verified keys. Every change of a credential drops them. */
  readonly keys: { forget(): void }
}

/** Throws PRODUCT_NOT_FOUND. */
export function listCredentials({ root }: RootPort, clientId: ClientId): ApplicationCredential[] {
  return root.control.read((reader) => {
    requireClient(reader, clientId)
    return listRows(reader, clientId)
  })
}

/**
 * Creates a credential; returns the existing one to an exact repeat, with its key only if it is
 * public. Throws PRODUCT_INVALID, PRODUCT_NOT_FOUND for the client, PRODUCT_OPERATION_REUSED if the
 * ID was used with other content, PRODUCT_STATE_CONFLICT if there are too many.
 */
export function createCredential(
  ports: CredentialPorts,
  actor: RecordedActor,
  input: CredentialInput,
): CredentialCreated {
  return issue(ports, actor, 'create', input.requestId, (tx) => {
    const client = requireClient(tx, input.clientId)
    return { client, credential: newCredential(client, input), checkNew: () => undefined }
  })
}

/**
 * Creates a replacement with a key of its own. It copies from its source what `input` leaves out;
 * the source stays unchanged and active. Throws what createCredential throws, and
 * PRODUCT_STATE_CONFLICT if the source is not active.
 */
export function rotateCredential(
  ports: CredentialPorts,
  actor: RecordedActor,
  input: RotateInput,
): CredentialCreated {
  return issue(ports, actor, 'rotate', input.requestId, (tx) => {
    const client = requireClient(tx, input.clientId)
    const { credential: source } = requireCredential(tx, input)
    const { name, scopes, rateLimit } = { ...source, ...input.changes }
    const copied = { ...input, credentialId: input.replacementId, name, scopes, rateLimit }
    const credential = { ...newCredential(client, copied), replaces: source.credentialId }
    return { client, credential, checkNew: () => requireState(source, 'active') }
  })
}

interface IssuePlan {
  readonly client: ApplicationClient
  readonly credential: ApplicationCredential
  /** Checks the conditions of a new credential. An exact repeat need not meet them. */
  readonly checkNew: () => void
}

function issue(
  { system, root, audit, keys }: CredentialPorts,
  actor: RecordedActor,
  verb: 'create' | 'rotate',
  requestId: RequestId,
  plan: (tx: ControlTx) => IssuePlan,
): CredentialCreated {
  const created = root.control.transaction((tx): CredentialCreated => {
    const { client, credential, checkNew } = plan(tx)
    const earlier = findCredential(tx, credential.credentialId)
    if (earlier !== null) return replay(root.keyring, earlier, credential)
    requireRecent(system, credential.createdAtMicros, 'createdAtMicros')
    checkNew()
    if (countCredentials(tx, client.clientId) >= CREDENTIALS_MAX) {
      throw limitReached('credentialId', CREDENTIALS_MAX, 'credentials of this client')
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
 * Derives the key of a public credential again and verifies it against its digest. Throws
 * PRODUCT_NOT_FOUND, PRODUCT_INVALID for a credential of another kind, PRODUCT_STATE_CONFLICT for a
 * deleted one, PRODUCT_CORRUPT.
 */
export function revealKey(
  { root, audit }: Pick<CredentialPorts, 'root' | 'audit'>,
  actor: RecordedActor,
  input: CredentialName & { readonly requestId: RequestId },
): { readonly credential: ApplicationCredential; readonly key: Secret } {
  const revealed = root.control.transaction((tx) => {
    const found = requireCredential(tx, input)
    const { credential, kind } = found
    if (kind !== 'public') {
      throw new Fault('PRODUCT_INVALID', {
        violations: [{ path: 'credential', rule: 'of a public client; other keys are shown once' }],
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

/**
 * Revokes a credential permanently, from the next request on. Repeating it changes nothing. Throws
 * PRODUCT_NOT_FOUND.
 */
export function revokeCredential(
  { system, root, audit, keys }: CredentialPorts,
  actor: RecordedActor,
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
 * Replaces a revoked credential by a tombstone. Repeating it changes nothing. Throws
 * PRODUCT_NOT_FOUND, PRODUCT_STATE_CONFLICT for a credential that is not revoked.
 */
export function deleteCredential(
  { root, audit }: Pick<CredentialPorts, 'root' | 'audit'>,
  actor: RecordedActor,
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

/** Returns the keyed digest of an Application Key, the only form in which it is stored. */
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
  if (client !== null) return client
  const rule = 'an Application Client of this Environment'
  throw notFound({ path: 'clientId', rule, detail: clientId })
}

function requireCredential(
  reader: ControlReader,
  { clientId, credentialId }: CredentialName,
): KeyedCredential {
  const found = findCredential(reader, credentialId)
  if (found?.credential.clientId === clientId) return found
  throw notFound({
    path: 'credentialId',
    rule: 'a credential of this Application Client',
    detail: `${credentialId} of ${clientId}`,
  })
}

function requireState(
  { credentialId, state }: ApplicationCredential,
  ...allowed: readonly ApplicationCredential['state'][]
): void {
  if (allowed.includes(state)) return
  const rule = `a credential that is ${allowed[0]}; this one is ${state}`
  throw stateConflict({ path: 'credentialId', rule, detail: `${credentialId} is ${state}` })
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
  earlier: KeyedCredential,
  requested: ApplicationCredential,
): CredentialCreated {
  const { credential, kind } = earlier
  const isSame =
    credential.clientId === requested.clientId &&
    credential.name === requested.name &&
    credential.scopes.join() === requested.scopes.join() &&
    credential.rateLimit === requested.rateLimit &&
    credential.replaces === requested.replaces &&
    credential.createdAtMicros === requested.createdAtMicros
  if (!isSame) throw new Fault('PRODUCT_OPERATION_REUSED')
  if (kind !== 'public') return { credential, key: null, secretShownOnce: false, replayed: true }
  // The key of a revoked or deleted credential is not shown again.
  const key = credential.state === 'active' ? verifiedKey(keyring, earlier) : null
  return { credential, key, secretShownOnce: false, replayed: true }
}

/** Derives a public key. Throws PRODUCT_CORRUPT if it does not match its digest. */
function verifiedKey(keyring: Keyring, { credential, keyId, digest }: KeyedCredential): Secret {
  const key = publicKey(keyring, keyId, credential.credentialId)
  if (digestEquals(keyDigest(keyring, keyId, key), digest)) return key
  throw new Fault('PRODUCT_CORRUPT', { detail: 'a public key does not match its digest' })
}
