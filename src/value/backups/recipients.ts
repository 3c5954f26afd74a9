/**
 * Recipients of age (https://age-encryption.org/v1): public keys to which backups are encrypted. A
 * mistyped one would be found when a backup cannot be opened, so its checksum is verified here.
 */

const CHARACTERS = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const GENERATORS = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3]
const CHECKSUM_CHARACTERS = 6
const BITS_PER_CHARACTER = 5
/** Bytes of the keys by the prefix of their text: X25519, and the same with ML-KEM-768. */
const KEY_BYTES: { readonly [prefix: string]: number } = { age: 32, age1pq: 1_216 }

/** Backups are encrypted to this many recipients at most: each adds to the header of each file. */
export const RECIPIENTS_MAX = 16
/** Characters of the longest recipient. */
export const RECIPIENT_CHARACTERS_MAX = 2_048

/** Returns whether a text is a recipient, with its checksum and the length of its key. */
export function isRecipient(text: string): boolean {
  if (text.length > RECIPIENT_CHARACTERS_MAX || !/^age1[a-z0-9]+$/.test(text)) return false
  // Neither digits nor the letters of the key have the separator.
  const end = text.lastIndexOf('1')
  const prefix = text.slice(0, end)
  const values = [...text.slice(end + 1)].map((character) => CHARACTERS.indexOf(character))
  if (values.includes(-1) || !Object.hasOwn(KEY_BYTES, prefix)) return false
  const bits = (values.length - CHECKSUM_CHARACTERS) * BITS_PER_CHARACTER
  return (
    Math.floor(bits / 8) === KEY_BYTES[prefix] && checksum([...expanded(prefix), ...values]) === 1
  )
}

/** Returns the text of a key: `age` for a recipient, `age-secret-key-` for an identity. */
export function encodeKey(prefix: 'age' | 'age-secret-key-', key: Uint8Array): string {
  const values: number[] = []
  let bits = 0
  let held = 0
  for (const byte of key) {
    bits = (bits << 8) | byte
    for (held += 8; held >= BITS_PER_CHARACTER; held -= BITS_PER_CHARACTER) {
      values.push((bits >>> (held - BITS_PER_CHARACTER)) & 31)
    }
    bits &= (1 << held) - 1
  }
  if (held > 0) values.push((bits << (BITS_PER_CHARACTER - held)) & 31)
  const sum = checksum([...expanded(prefix), ...values, 0, 0, 0, 0, 0, 0]) ^ 1
  for (let i = 0; i < CHECKSUM_CHARACTERS; i++) {
    values.push((sum >>> (BITS_PER_CHARACTER * (CHECKSUM_CHARACTERS - 1 - i))) & 31)
  }
  return `${prefix}1${values.map((value) => CHARACTERS[value]).join('')}`
}

/** The checksum of Bech32 (BIP 173). */
function checksum(values: readonly number[]): number {
  let sum = 1
  for (const value of values) {
    const top = sum >>> 25
    sum = ((sum & 0x1ffffff) << 5) ^ value
    GENERATORS.forEach((generator, i) => {
      if ((top >>> i) & 1) sum ^= generator
    })
  }
  return sum
}

function expanded(prefix: string): number[] {
  const codes = [...prefix].map((character) => character.charCodeAt(0))
  return [...codes.map((code) => code >> 5), 0, ...codes.map((code) => code & 31)]
}
