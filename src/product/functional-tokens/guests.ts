/**
 * Guest tokens: bearers that the Environment issues to callers without a provider and recognizes by
 * their MAC alone. The token contains its key's ID, so tokens of older keys stay valid.
 */
import { TokenRejection } from '../../identity/jwt/rejections.ts'
import type { Keyring } from '../../storage/keyring.ts'
import { digestEquals, secretDigest } from '../../system/digests.ts'
import { decodeBase64Url, encodeBase64Url } from '../../value/base64url.ts'
import type { GuestIdentity } from '../../value/identities.ts'
import { decodeUlid, type EnvironmentId, encodeUlid } from '../../value/ids.ts'
import { ValidationError } from '../../value/validation-error.ts'

/** Prefix of every guest token, by which the log redacts it. No JWT starts with it. */
export const GUEST_PREFIX = 'rk_gst_v1_'
const TIME_BYTES = 6
const SUBJECT_BYTES = 16
const MAC_BYTES = 32

export interface GuestRequest {
  /** 10 bytes that identify the guest; equal bytes and times make equal tokens. */
  readonly entropy: Uint8Array
  readonly nowMicros: bigint
  readonly expiresInSeconds: number
}

export interface VerifiedGuest {
  readonly identity: GuestIdentity
  readonly expiresAtMillis: number
}

export interface GuestsOptions {
  readonly keyring: Keyring
  readonly environmentId: EnvironmentId
}

/** Returns `rk_gst_v1_` and base64url of: length and key ID, expiry, subject, and their MAC. */
export function issueGuest({ keyring }: GuestsOptions, request: GuestRequest): string {
  const { entropy, nowMicros, expiresInSeconds } = request
  const nowMillis = Number(nowMicros / 1000n)
  const keyId = Buffer.from(keyring.activeId)
  const expiry = Buffer.alloc(TIME_BYTES)
  expiry.writeUIntBE(nowMillis + expiresInSeconds * 1000, 0, TIME_BYTES)
  const subject = decodeUlid(encodeUlid(nowMillis, entropy))
  const body = Buffer.concat([Buffer.of(keyId.length), keyId, expiry, subject])
  return GUEST_PREFIX + encodeBase64Url(Buffer.concat([body, mac(keyring, keyring.activeId, body)]))
}

/**
 * Returns the guest of a token. Throws TokenRejection for an invalid or expired token, and for one
 * of another Environment.
 */
export function verifyGuest(
  { keyring, environmentId }: GuestsOptions,
  token: string,
  nowMillis: number,
): VerifiedGuest {
  const bytes = bytesOf(token)
  const keyEnd = 1 + (bytes[0] ?? 0)
  const bodyEnd = keyEnd + TIME_BYTES + SUBJECT_BYTES
  if (bytes.length !== bodyEnd + MAC_BYTES) throw new TokenRejection('guestForm')
  const keyId = bytes.toString('latin1', 1, keyEnd)
  if (!keyring.ids.includes(keyId)) throw new TokenRejection('guestKey')
  const body = bytes.subarray(0, bodyEnd)
  if (!digestEquals(mac(keyring, keyId, body), bytes.subarray(bodyEnd))) {
    throw new TokenRejection('guestSignature')
  }
  const expiresAtMillis = bytes.readUIntBE(keyEnd, TIME_BYTES)
  if (expiresAtMillis <= nowMillis) throw new TokenRejection('expired')
  const subject = bytes.subarray(keyEnd + TIME_BYTES, bodyEnd)
  const ulid = encodeUlid(subject.readUIntBE(0, 6), subject.subarray(6))
  return {
    identity: { kind: 'guest', subject: `gst_${ulid}`, issuer: environmentId },
    expiresAtMillis,
  }
}

function bytesOf(token: string): Buffer {
  try {
    return Buffer.from(decodeBase64Url(token.slice(GUEST_PREFIX.length)))
  } catch (error) {
    if (error instanceof ValidationError) throw new TokenRejection('guestForm')
    throw error
  }
}

/** The derived key is salted with the Environment's ID, so tokens of others never match. */
function mac(keyring: Keyring, keyId: string, body: Uint8Array): Uint8Array {
  const key = keyring.derive(keyId, 'guest-identity')
  return secretDigest(key, 'guest-identity', encodeBase64Url(body))
}
