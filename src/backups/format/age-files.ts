/**
 * Encrypted files in the format age-encryption.org/v1. The library makes and reads the header, with
 * the stanzas of the recipients. The payload, 64 KiB chunks of ChaCha20-Poly1305, is encrypted by
 * the runtime: that takes a thirtieth of the time of the library, on another thread.
 */
import { hkdfSync, randomBytes } from 'node:crypto'
import { Decrypter, Encrypter, generateX25519Identity, identityToRecipient } from 'age-encryption'
import { assert } from '../../errors/assert.ts'

/** The bytes do not belong to an age file, or were altered, or no identity opens the file. */
export class AgeFailure extends Error {
  constructor(reason: string, cause?: unknown) {
    super(reason, { cause })
    this.name = 'AgeFailure'
  }
}

export type Bytes = Uint8Array<ArrayBuffer>

const CHUNK_BYTES = 64 * 1024
const TAG_BYTES = 16
const SALT_BYTES = 16
const KEY_BYTES = 32
const NONCE_BYTES = 12
/** Chunks that are encrypted or decrypted at the same time. */
const CHUNKS_AT_ONCE = 4
/** A header has a line of about 100 bytes for each recipient; a post-quantum one has 1.5 KiB. */
const HEADER_BYTES_MAX = 64 * 1024
const CIPHER = 'ChaCha20-Poly1305'
/** The last line of a header, which has its MAC. */
const LAST_LINE = '\n--- '

/** Encrypts to recipients. What it encrypts only the identity of one of them opens. */
export class Sealer {
  readonly #recipients: readonly string[]
  /** Depends on the kinds of the recipients alone. */
  #headerBytes: number | null = null

  /** Throws AgeFailure where a recipient is not valid, or where there is none. */
  constructor(recipients: readonly string[]) {
    if (recipients.length === 0) throw new AgeFailure('at least one recipient')
    for (const recipient of recipients) {
      try {
        new Encrypter().addRecipient(recipient)
      } catch (cause) {
        throw new AgeFailure('a recipient that begins with age1', cause)
      }
    }
    this.#recipients = recipients
  }

  /** Yields the encrypted file of the bytes. Holds a few chunks in memory. */
  async *seal(plain: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Bytes> {
    const { header, fileKey } = await this.#begin()
    const salt = randomBytes(SALT_BYTES)
    yield Buffer.concat([header, salt])
    const key = await payloadKey(fileKey, salt, 'encrypt')
    const source = new ByteQueue(plain)
    try {
      yield* inChunks(source, CHUNK_BYTES, (chunk, iv) =>
        crypto.subtle.encrypt({ name: CIPHER, iv } as AesGcmParams, key, chunk),
      )
    } finally {
      await source.close()
    }
  }

  /** Returns the length of the encrypted file of `bytes` plain bytes. */
  async sealedLength(bytes: number): Promise<number> {
    this.#headerBytes ??= (await this.#begin()).header.length
    const chunks = Math.max(1, Math.ceil(bytes / CHUNK_BYTES))
    return this.#headerBytes + SALT_BYTES + bytes + chunks * TAG_BYTES
  }

  /** Makes a header of the library, and takes its file key from the place of a recipient. */
  async #begin(): Promise<{ readonly header: Uint8Array; readonly fileKey: Uint8Array }> {
    let fileKey: Uint8Array | null = null
    const encrypter = new Encrypter()
    for (const recipient of this.#recipients) encrypter.addRecipient(recipient)
    encrypter.addRecipient({
      wrapFileKey(key) {
        fileKey = key
        return []
      },
    })
    const empty = await encrypter.encrypt(new Uint8Array())
    assert(fileKey !== null, 'the library wraps its file key for every recipient')
    return { header: empty.subarray(0, empty.length - SALT_BYTES - TAG_BYTES), fileKey }
  }
}

/** Decrypts with identities, the secret keys of recipients. */
export class Opener {
  readonly #decrypter = new Decrypter()

  /** Throws AgeFailure where an identity is not valid, or where there is none. */
  constructor(identities: readonly string[]) {
    if (identities.length === 0) throw new AgeFailure('at least one identity')
    for (const identity of identities) {
      try {
        this.#decrypter.addIdentity(identity)
      } catch {
        // The cause may quote the identity, which is a secret.
        throw new AgeFailure('an identity that begins with AGE-SECRET-KEY-')
      }
    }
  }

  /** Yields the plain bytes, each chunk after it was authenticated. Throws AgeFailure. */
  async *open(file: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Bytes> {
    const source = new ByteQueue(file)
    try {
      yield* this.#open(source)
    } finally {
      await source.close()
    }
  }

  async *#open(source: ByteQueue): AsyncGenerator<Bytes> {
    const header = await readHeader(source)
    let fileKey: Uint8Array
    try {
      fileKey = await this.#decrypter.decryptHeader(Buffer.from(header, 'latin1'))
    } catch (cause) {
      throw new AgeFailure('the identity does not open it, or its header is altered', cause)
    }
    const salt = await source.take(SALT_BYTES)
    if (salt.length < SALT_BYTES) throw new AgeFailure('it ends in its header')
    const key = await payloadKey(fileKey, salt, 'decrypt')
    let chunks = 0
    const opened = inChunks(source, CHUNK_BYTES + TAG_BYTES, async (chunk, iv) => {
      try {
        return await crypto.subtle.decrypt({ name: CIPHER, iv } as AesGcmParams, key, chunk)
      } catch (cause) {
        throw new AgeFailure('its content is altered or cut off', cause)
      }
    })
    for await (const chunk of opened) {
      // Only an empty file has an empty chunk.
      if (chunk.length === 0 && chunks > 0) throw new AgeFailure('its last chunk is empty')
      chunks += 1
      yield chunk
    }
  }
}

/** Returns a new identity, the secret key of a recipient. */
export function makeIdentity(): Promise<string> {
  return generateX25519Identity()
}

/** Returns the recipient of an identity. Throws AgeFailure. */
export async function recipientOf(identity: string): Promise<string> {
  try {
    return await identityToRecipient(identity)
  } catch {
    throw new AgeFailure('an identity that begins with AGE-SECRET-KEY-')
  }
}

/** Returns all bytes of a source. */
export async function collect(source: AsyncIterable<Uint8Array>): Promise<Bytes> {
  const parts: Uint8Array[] = []
  for await (const part of source) parts.push(part)
  return Buffer.concat(parts)
}

async function payloadKey(
  fileKey: Uint8Array,
  salt: Uint8Array,
  usage: 'encrypt' | 'decrypt',
): Promise<CryptoKey> {
  const key = new Uint8Array(hkdfSync('sha256', fileKey, salt, 'payload', KEY_BYTES))
  // The types of the DOM do not have this format and this cipher yet.
  return crypto.subtle.importKey('raw-secret' as 'raw', key, CIPHER, false, [usage])
}

/**
 * Cuts the bytes into chunks of `length`, of which only the last may be shorter, and yields what
 * `transform` makes of them. There is at least one chunk.
 */
async function* inChunks(
  queue: ByteQueue,
  length: number,
  transform: (chunk: Bytes, nonce: Bytes) => Promise<ArrayBuffer>,
): AsyncGenerator<Bytes> {
  const running: Promise<ArrayBuffer>[] = []
  let number = 0
  for (let chunk = await queue.take(length); ; ) {
    const next = await queue.take(length)
    const isLast = next.length === 0
    const result = transform(chunk, nonceOf(number++, isLast))
    // The rejection is thrown where the result is awaited.
    result.catch(() => undefined)
    running.push(result)
    if (running.length === CHUNKS_AT_ONCE) yield new Uint8Array(await running.shift()!)
    if (isLast) break
    chunk = next
  }
  for (const result of running) yield new Uint8Array(await result)
}

/** The number of a chunk as 11 bytes, and 1 for the last chunk. */
function nonceOf(number: number, isLast: boolean): Bytes {
  const nonce = new Uint8Array(NONCE_BYTES)
  const view = new DataView(nonce.buffer)
  // Bytes 3 to 10: the three before them would take 2^64 chunks.
  view.setBigUint64(3, BigInt(number))
  nonce[NONCE_BYTES - 1] = isLast ? 1 : 0
  return nonce
}

/** Reads the header up to the end of the line with its MAC. */
async function readHeader(source: ByteQueue): Promise<string> {
  let header = ''
  for (;;) {
    const line = await source.takeLine(HEADER_BYTES_MAX - header.length)
    if (line === null) throw new AgeFailure('it does not begin with the header of age')
    header += line
    if (`\n${line}`.startsWith(LAST_LINE)) return header
  }
}

/** Bytes that arrive in pieces of any length. */
class ByteQueue {
  readonly #source: AsyncIterator<Uint8Array> | Iterator<Uint8Array>
  #pieces: Uint8Array[] = []
  #length = 0
  #ended = false

  constructor(source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>) {
    this.#source =
      Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]()
  }

  /** Removes `length` bytes, or fewer at the end of the source. */
  async take(length: number): Promise<Bytes> {
    while (this.#length < length && (await this.#fill()));
    const taken = new Uint8Array(Math.min(length, this.#length))
    for (let at = 0; at < taken.length; ) {
      const piece = this.#pieces[0]!
      const part = piece.subarray(0, taken.length - at)
      taken.set(part, at)
      at += part.length
      if (part.length === piece.length) this.#pieces.shift()
      else this.#pieces[0] = piece.subarray(part.length)
    }
    this.#length -= taken.length
    return taken
  }

  /** Removes a line with its end, as ASCII; null if it is longer or has no end. */
  async takeLine(bytesMax: number): Promise<string | null> {
    for (;;) {
      let at = 0
      for (const piece of this.#pieces) {
        const end = piece.indexOf(0x0a)
        if (end >= 0) {
          const length = at + end + 1
          if (length > bytesMax) return null
          return Buffer.from(await this.take(length)).toString('latin1')
        }
        at += piece.length
      }
      if (at > bytesMax || !(await this.#fill())) return null
    }
  }

  /** Ends the source, which may hold a descriptor. */
  async close(): Promise<void> {
    this.#ended = true
    await this.#source.return?.()
  }

  async #fill(): Promise<boolean> {
    if (this.#ended) return false
    const { done, value } = await this.#source.next()
    if (done === true) {
      this.#ended = true
      return false
    }
    if (value.length > 0) this.#pieces.push(value)
    this.#length += value.length
    return true
  }
}
