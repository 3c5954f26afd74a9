/**
 * Secrets as the control database stores them: AES-256-GCM under a key that the keyring derives.
 * The name, revision and Environment of a secret are authenticated with it, so that a sealed value
 * that was copied to another one of these cannot be unsealed.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto'
import { Fault } from '../errors/fault.ts'
import { canonicalJson } from '../value/canonical-json.ts'
import type { EnvironmentId } from '../value/ids.ts'
import { Secret } from '../value/secret.ts'
import type { Keyring } from './keyring.ts'

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

export interface Sealed {
  readonly keyId: string
  /** Nonce, ciphertext and tag. */
  readonly bytes: Uint8Array
}

export interface SealedFor {
  readonly environmentId: EnvironmentId
  readonly name: string
  readonly revision: bigint
}

/** Seals a secret under the active key with a fresh nonce. */
export function seal(
  keyring: Keyring,
  source: { randomBytes(length: number): Uint8Array },
  subject: SealedFor,
  secret: Secret,
): Sealed {
  const keyId = keyring.activeId
  const nonce = source.randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, keyring.derive(keyId, 'configuration-secret'), nonce)
  cipher.setAAD(authenticated(subject, keyId))
  const ciphertext = [cipher.update(secret.reveal(), 'utf8'), cipher.final()]
  return { keyId, bytes: Buffer.concat([nonce, ...ciphertext, cipher.getAuthTag()]) }
}

/** Throws PRODUCT_CORRUPT for bytes that were not sealed for this subject with this key. */
export function unseal(keyring: Keyring, subject: SealedFor, { keyId, bytes }: Sealed): Secret {
  const tagStart = bytes.length - TAG_BYTES
  try {
    const key = keyring.derive(keyId, 'configuration-secret')
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES))
    decipher.setAAD(authenticated(subject, keyId))
    decipher.setAuthTag(bytes.subarray(tagStart))
    const text = [decipher.update(bytes.subarray(NONCE_BYTES, tagStart)), decipher.final()]
    return new Secret(Buffer.concat(text).toString('utf8'))
  } catch (cause) {
    const detail = `the secret ${subject.name} does not open with the key ${keyId}`
    throw new Fault('PRODUCT_CORRUPT', { cause, detail })
  }
}

function authenticated({ environmentId, name, revision }: SealedFor, keyId: string): Uint8Array {
  return Buffer.from(canonicalJson({ environmentId, name, revision: String(revision), keyId }))
}
