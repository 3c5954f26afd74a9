/**
 * IDs of Convex: the number of the table as a variable-length integer, 16 bytes, and a Fletcher-16
 * checksum, in Crockford's base32 in lower case.
 */

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const FORM = /^[0-9a-hjkmnp-tv-z]{31,37}$/
const INTERNAL_BYTES = 16
const FOOTER_BYTES = 2

/** Returns the number of the table; null for any other text. */
export function tableNumberOf(text: string): number | null {
  if (!FORM.test(text)) return null
  const bytes = decodeBase32(text)
  let number = 0
  let at = 0
  for (;;) {
    const byte = bytes[at]
    if (byte === undefined || at === 5) return null
    number += (byte & 127) * 2 ** (7 * at)
    at += 1
    if (byte < 128) break
  }
  const body = bytes.subarray(0, at + INTERNAL_BYTES)
  if (bytes.length !== body.length + FOOTER_BYTES) return null
  const footer = bytes[body.length]! | (bytes[body.length + 1]! << 8)
  return number > 0 && footer === fletcher16(body) ? number : null
}

/** Encodes an ID. `internal` has 16 bytes. */
export function encodeConvexId(table: number, internal: Uint8Array): string {
  const head: number[] = []
  let rest = table
  for (; rest >= 128; rest = Math.floor(rest / 128)) head.push((rest % 128) | 128)
  const body = Uint8Array.of(...head, rest, ...internal)
  const sum = fletcher16(body)
  return encodeBase32(Uint8Array.of(...body, sum & 255, sum >> 8))
}

function fletcher16(bytes: Uint8Array): number {
  let low = 0
  let high = 0
  for (const byte of bytes) {
    low = (low + byte) & 255
    high = (high + low) & 255
  }
  return (high << 8) | low
}

function decodeBase32(text: string): Uint8Array {
  const bytes = new Uint8Array(Math.floor((text.length * 5) / 8))
  let bits = 0
  let held = 0
  let at = 0
  for (const character of text) {
    held = ((held << 5) | ALPHABET.indexOf(character)) & 0xfff
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes[at++] = (held >> bits) & 255
  }
  return bytes
}

function encodeBase32(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  let held = 0
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += ALPHABET[(held >> bits) & 31]
    }
  }
  return bits === 0 ? text : text + ALPHABET[(held << (5 - bits)) & 31]
}
