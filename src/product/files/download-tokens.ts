/**
 * Download grants: bearers for one file that the Environment recognizes by their MAC alone. They
 * contain the ID of their key, so grants of older keys stay valid.
 */
import { Fault } from '../../errors/fault.ts'
import type { Keyring } from '../../storage/keyring.ts'
import { digestEquals, secretDigest } from '../../system/digests.ts'
import { decodeBase64Url, encodeBase64Url } from '../../value/base64url.ts'
import { decodeUlid } from '../../value/ids.ts'
import { ValidationError } from '../../value/validation-error.ts'

/** A prefix by which the log redacts the token. */
export const DOWNLOAD_PREFIX = 'rk_dnl_v1_'
const TIME_BYTES = 6
const FILE_BYTES = 16
const MAC_BYTES = 32

export interface DownloadClaims {
  readonly fileId: string
  readonly expiresAtMillis: number
  /** The name that a browser saves the file under; null for none. */
  readonly fileName: string | null
}

/** Returns the prefix and base64url of: length and key ID, expiry, file, name, and their MAC. */
export function sealDownload(keyring: Keyring, claims: DownloadClaims): string {
  const { fileId, expiresAtMillis, fileName } = claims
  const keyId = Buffer.from(keyring.activeId)
  const expiry = Buffer.alloc(TIME_BYTES)
  expiry.writeUIntBE(expiresAtMillis, 0, TIME_BYTES)
  const name = Buffer.from(fileName ?? '')
  const body = Buffer.concat([Buffer.of(keyId.length), keyId, expiry, ulidOf(fileId), name])
  const sealed = Buffer.concat([body, mac(keyring, keyring.activeId, body)])
  return DOWNLOAD_PREFIX + encodeBase64Url(sealed)
}

/** Throws GRANT_INVALID for any token but a grant of this file that has not expired. */
export function openDownload(
  keyring: Keyring,
  token: string,
  { fileId, nowMillis }: { readonly fileId: string; readonly nowMillis: number },
): DownloadClaims {
  const bytes = bytesOf(token)
  const keyEnd = 1 + (bytes[0] ?? 0)
  const nameStart = keyEnd + TIME_BYTES + FILE_BYTES
  const bodyEnd = bytes.length - MAC_BYTES
  if (bodyEnd < nameStart) throw grantInvalid('no download grant')
  const keyId = bytes.toString('latin1', 1, keyEnd)
  if (!keyring.ids.includes(keyId)) throw grantInvalid('the key of the grant is unknown')
  const body = bytes.subarray(0, bodyEnd)
  if (!digestEquals(mac(keyring, keyId, body), bytes.subarray(bodyEnd))) {
    throw grantInvalid('the grant was not made by this Environment')
  }
  const expiresAtMillis = bytes.readUIntBE(keyEnd, TIME_BYTES)
  if (expiresAtMillis <= nowMillis) throw grantInvalid('the grant has expired')
  const file = bytes.subarray(keyEnd + TIME_BYTES, nameStart)
  if (!file.equals(ulidOf(fileId))) throw grantInvalid('the grant is for another file')
  const name = bytes.toString('utf8', nameStart, bodyEnd)
  return { fileId, expiresAtMillis, fileName: name === '' ? null : name }
}

export function grantInvalid(detail: string): Fault {
  return new Fault('GRANT_INVALID', { detail })
}

function bytesOf(token: string): Buffer {
  if (!token.startsWith(DOWNLOAD_PREFIX)) throw grantInvalid('no download grant')
  try {
    return Buffer.from(decodeBase64Url(token.slice(DOWNLOAD_PREFIX.length)))
  } catch (error) {
    if (error instanceof ValidationError) throw grantInvalid('no download grant')
    throw error
  }
}

function ulidOf(fileId: string): Buffer {
  return Buffer.from(decodeUlid(fileId.slice(fileId.lastIndexOf('_') + 1)))
}

/** The derived key is salted with the Environment's ID, so grants of others never match. */
function mac(keyring: Keyring, keyId: string, body: Uint8Array): Uint8Array {
  const key = keyring.derive(keyId, 'download-grant')
  return secretDigest(key, 'download-grant', encodeBase64Url(body))
}
