/**
 * Keyed and plain digests. Credentials are stored as HMAC-SHA-256 with a label per purpose, so that
 * a digest of one kind is never valid as another (contract/wire.md, Secrets).
 */
import { createHash, createHmac, hash, timingSafeEqual } from 'node:crypto'
import { encodeBase64Url } from '../value/base64url.ts'
import type { Secret } from '../value/secret.ts'

export type Purpose =
  | 'invitation'
  | 'access-token'
  | 'access-token-mac'
  | 'derived-token'
  | 'derived-token-mac'
  | 'refresh-token'
  | 'refresh-token-mac'
  | 'oidc-subject'
  | 'external-token'
  | 'pepper-check'
  | 'application-key'
  | 'application-public-key'
  | 'guest-identity'
  | 'operation-fingerprint'
  | 'upload-grant'
  | 'download-grant'
  | 'download-url'
  | 'storage-key'
  | 'http-mount-token'

/** Returns 32 bytes: HMAC-SHA-256(key, "service/<purpose>/v1" || 0x00 || text). */
export function secretDigest(key: Uint8Array, purpose: Purpose, secret: Secret | string): Buffer {
  const text = typeof secret === 'string' ? secret : secret.reveal()
  return createHmac('sha256', key).update(`service/${purpose}/v1\0`).update(text).digest()
}

/** Returns 32 bytes: SHA-256 of the concatenated parts. */
export function sha256(...parts: readonly (Uint8Array | string)[]): Buffer {
  // Half of the cost of a hash object.
  if (parts.length === 1) return hash('sha256', parts[0]!, 'buffer')
  const digest = createHash('sha256')
  for (const part of parts) digest.update(part)
  return digest.digest()
}

/** Returns 32 bytes: HMAC-SHA-256 of the text, without a label of a purpose. */
export function hmacSha256(key: Uint8Array | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

/** Returns the HMAC of the concatenated parts, for protocols that others define. */
export function hmac(
  algorithm: 'sha1' | 'sha256' | 'sha512',
  key: Uint8Array | string,
  ...parts: readonly (Uint8Array | string)[]
): Buffer {
  const digest = createHmac(algorithm, key)
  for (const part of parts) digest.update(part)
  return digest.digest()
}

export function sha256Hex(...parts: readonly (Uint8Array | string)[]): string {
  return sha256(...parts).toString('hex')
}

/** SHA-256 of a stream. */
export function sha256Stream(): { update(bytes: Uint8Array): unknown; digest(): Buffer } {
  return createHash('sha256')
}

/** Compares digests, in constant time where their lengths are equal. */
export function digestEquals(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Returns the prefix and 43 characters: base64url of 32 random bytes. */
export function randomSecret(
  source: { randomBytes(length: number): Uint8Array },
  prefix: string,
): string {
  return prefix + encodeBase64Url(source.randomBytes(32))
}
