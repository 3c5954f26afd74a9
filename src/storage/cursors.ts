/**
 * Cursors of lists as callers hold them: the key of a document in an index, sealed, so that no
 * caller can read the document's values in it or forge a cursor that starts elsewhere.
 *
 * Sealing is deterministic: a Query returns the same bytes each time, or its cached result and that
 * of a subscription would differ from a fresh one. A random nonce cannot provide that, so the nonce
 * is the MAC of the sealed content (the construction of RFC 5297, SIV, with HMAC-SHA-256 and
 * AES-256-CTR): it repeats only where the whole content repeats.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  timingSafeEqual,
} from 'node:crypto'
import { decodeBase64Url, encodeBase64Url } from '../value/base64url.ts'
import { ValidationError } from '../value/validation-error.ts'
import type { Keyring } from './keyring.ts'

const CIPHER = 'aes-256-ctr'
const NONCE_BYTES = 16
/** Keys of an index have at most 2,560 bytes. */
const CURSOR_CHARACTERS_MAX = 4_096

interface Keys {
  readonly digest: KeyObject
  readonly cipher: KeyObject
}

export class Cursors {
  readonly #active: Keys
  /** All keys, the active ones first, as nearly every cursor was sealed under them. */
  readonly #all: readonly Keys[]

  /** The keyring derives keys for its Environment, so that no cursor opens in another one. */
  constructor(keyring: Keyring) {
    const keysOf = (keyId: string): Keys => ({
      digest: createSecretKey(keyring.derive(keyId, 'cursor-digest')),
      cipher: createSecretKey(keyring.derive(keyId, 'cursor-cipher')),
    })
    this.#active = keysOf(keyring.activeId)
    const others = keyring.ids.filter((keyId) => keyId !== keyring.activeId)
    this.#all = [this.#active, ...others.map(keysOf)]
  }

  /**
   * Seals a key. `list` is JSON text that names the list; `key` is a binary string, one character
   * up to U+00FF for each byte.
   */
  seal(list: string, key: string): string {
    const bytes = Buffer.from(key, 'latin1')
    const nonce = nonceOf(this.#active, list, bytes)
    const cipher = createCipheriv(CIPHER, this.#active.cipher, nonce)
    return encodeBase64Url(Buffer.concat([nonce, cipher.update(bytes), cipher.final()]))
  }

  /** Returns the key; null for a text that was not sealed for this list under this keyring. */
  open(list: string, cursor: string): string | null {
    const sealed = sealedBytes(cursor)
    if (sealed === null) return null
    const nonce = sealed.subarray(0, NONCE_BYTES)
    for (const keys of this.#all) {
      const decipher = createDecipheriv(CIPHER, keys.cipher, nonce)
      const bytes = Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES)), decipher.final()])
      if (timingSafeEqual(nonceOf(keys, list, bytes), nonce)) return bytes.toString('latin1')
    }
    return null
  }
}

/** Returns the MAC of list and key. NUL separates them, as JSON text contains none. */
function nonceOf({ digest }: Keys, list: string, key: Buffer): Buffer {
  const mac = createHmac('sha256', digest).update(`${list}\0`).update(key).digest()
  return mac.subarray(0, NONCE_BYTES)
}

function sealedBytes(cursor: string): Uint8Array | null {
  if (cursor.length > CURSOR_CHARACTERS_MAX) return null
  try {
    const bytes = decodeBase64Url(cursor)
    return bytes.length >= NONCE_BYTES ? bytes : null
  } catch (error) {
    if (error instanceof ValidationError) return null
    throw error
  }
}
