/**
 * Grants to download one file, which the Environment recognizes by their MAC alone: bearers, and
 * signed URLs. They contain the ID of their key, so grants of older keys stay valid.
 */
import { Fault } from '../../errors/fault.ts'
import type { Keyring } from '../../storage/keyring.ts'
import { digestEquals, secretDigest } from '../../system/digests.ts'
import { decodeBase64Url, encodeBase64Url } from '../../value/base64url.ts'
import { decodeUlid, encodeUlid } from '../../value/ids.ts'
import { ValidationError } from '../../value/validation-error.ts'

const TIME_BYTES = 6
const FILE_BYTES = 16
const MAC_BYTES = 32

/**
 * One form of grant. A token of one form is never valid as another: each has a key of its own. The
 * log redacts tokens by their prefix.
 */
interface Form {
  readonly prefix: string
  readonly use: 'download-grant' | 'download-url'
}
const BEARER: Form = { prefix: 'rk_dnl_v1_', use: 'download-grant' }
const SIGNED_URL: Form = { prefix: 'rk_url_v1_', use: 'download-url' }

/** Values of the first byte in `end` of a signed URL. */
const ATTACHMENT = 0
const INLINE = 1

export interface DownloadClaims {
  readonly fileId: string
  readonly expiresAtMillis: number
  /** The name that a browser saves the file under; null for none. */
  readonly fileName: string | null
}

export interface SignedDownloadClaims extends DownloadClaims {
  /** True if a browser may show the file in place, if it has a type for that. */
  readonly inline: boolean
}

/** Returns the bearer of a download grant. */
export function sealDownload(keyring: Keyring, claims: DownloadClaims): string {
  return seal(keyring, BEARER, claims, Buffer.from(claims.fileName ?? ''))
}

/**
 * Returns the claims of the token. Throws GRANT_INVALID unless it is a grant of this file that has
 * not expired.
 */
export function openDownload(
  keyring: Keyring,
  token: string,
  { fileId, nowMillis }: { readonly fileId: string; readonly nowMillis: number },
): DownloadClaims {
  const { end, ...claims } = open(keyring, BEARER, token, nowMillis)
  if (claims.fileId !== fileId) throw grantInvalid('the grant is for another file')
  return { ...claims, fileName: nameOf(end) }
}

/** Returns the token of a signed URL. */
export function sealSignedDownload(keyring: Keyring, claims: SignedDownloadClaims): string {
  const disposition = claims.inline ? INLINE : ATTACHMENT
  const end = Buffer.concat([Buffer.of(disposition), Buffer.from(claims.fileName ?? '')])
  return seal(keyring, SIGNED_URL, claims, end)
}

/**
 * Returns the claims of a signed URL. Throws GRANT_INVALID unless the token is one of a signed URL
 * that has not expired.
 */
export function openSignedDownload(
  keyring: Keyring,
  token: string,
  nowMillis: number,
): SignedDownloadClaims {
  const { end, ...claims } = open(keyring, SIGNED_URL, token, nowMillis)
  return { ...claims, inline: end[0] === INLINE, fileName: nameOf(end.subarray(1)) }
}

export function grantInvalid(detail: string): Fault {
  return new Fault('GRANT_INVALID', { detail })
}

/** Returns the prefix and base64url of: length and key ID, expiry, file, `end`, and their MAC. */
function seal(
  keyring: Keyring,
  form: Form,
  { fileId, expiresAtMillis }: Pick<DownloadClaims, 'fileId' | 'expiresAtMillis'>,
  end: Buffer,
): string {
  const keyId = Buffer.from(keyring.activeId)
  const expiry = Buffer.alloc(TIME_BYTES)
  expiry.writeUIntBE(expiresAtMillis, 0, TIME_BYTES)
  const file = decodeUlid(fileId.slice(fileId.lastIndexOf('_') + 1))
  const body = Buffer.concat([Buffer.of(keyId.length), keyId, expiry, file, end])
  const sealed = Buffer.concat([body, mac(keyring, form, keyring.activeId, body)])
  return form.prefix + encodeBase64Url(sealed)
}

interface Opened extends Pick<DownloadClaims, 'fileId' | 'expiresAtMillis'> {
  readonly end: Buffer
}

function open(keyring: Keyring, form: Form, token: string, nowMillis: number): Opened {
  const bytes = bytesOf(form, token)
  const keyEnd = 1 + (bytes[0] ?? 0)
  const fileStart = keyEnd + TIME_BYTES
  const bodyEnd = bytes.length - MAC_BYTES
  if (bodyEnd < fileStart + FILE_BYTES) throw grantInvalid('the token is not a download grant')
  const keyId = bytes.toString('latin1', 1, keyEnd)
  if (!keyring.ids.includes(keyId)) throw grantInvalid('the key of the grant is unknown')
  const body = bytes.subarray(0, bodyEnd)
  if (!digestEquals(mac(keyring, form, keyId, body), bytes.subarray(bodyEnd))) {
    throw grantInvalid('the grant was not made by this Environment')
  }
  const expiresAtMillis = bytes.readUIntBE(keyEnd, TIME_BYTES)
  if (expiresAtMillis <= nowMillis) throw grantInvalid('the grant has expired')
  const file = bytes.subarray(fileStart, fileStart + FILE_BYTES)
  const fileId = `fil_${encodeUlid(file.readUIntBE(0, TIME_BYTES), file.subarray(TIME_BYTES))}`
  return { fileId, expiresAtMillis, end: body.subarray(fileStart + FILE_BYTES) }
}

function bytesOf({ prefix }: Form, token: string): Buffer {
  if (!token.startsWith(prefix)) throw grantInvalid('the token is not a download grant')
  try {
    return Buffer.from(decodeBase64Url(token.slice(prefix.length)))
  } catch (error) {
    if (error instanceof ValidationError) throw grantInvalid('the token is not a download grant')
    throw error
  }
}

function nameOf(bytes: Buffer): string | null {
  return bytes.length === 0 ? null : bytes.toString('utf8')
}

/** The derived key is salted with the Environment's ID, so grants of others never match. */
function mac(keyring: Keyring, { use }: Form, keyId: string, body: Uint8Array): Uint8Array {
  return secretDigest(keyring.derive(keyId, use), use, encodeBase64Url(body))
}
