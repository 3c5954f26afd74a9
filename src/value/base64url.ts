/** URL-safe base64 without padding, canonical in both directions (RFC 4648, section 5). */
import { ValidationError } from './validation-error.ts'

const FORM = /^[A-Za-z0-9_-]*$/
/** True on runtimes with native conversion: Node has it from 25; the client runs on older ones. */
const NATIVE = 'toBase64' in Uint8Array.prototype

export function encodeBase64Url(bytes: Uint8Array): string {
  if (NATIVE) return bytes.toBase64({ alphabet: 'base64url', omitPadding: true })
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
  return text.replace(/=+$/, '').replaceAll('+', '-').replaceAll('/', '_')
}

/**
 * Throws ValidationError for padding, the standard alphabet or stray bits in the last character.
 */
export function decodeBase64Url(text: string): Uint8Array {
  if (!FORM.test(text) || text.length % 4 === 1) throw new ValidationError('canonical base64url')
  const bytes = NATIVE
    ? Uint8Array.fromBase64(text, { alphabet: 'base64url' })
    : fromBase64Url(text)
  if (encodeBase64Url(bytes) !== text) throw new ValidationError('canonical base64url')
  return bytes
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(binary, (character) => character.charCodeAt(0))
}
