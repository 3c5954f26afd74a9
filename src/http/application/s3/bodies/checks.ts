/** Checks received bytes against the lengths and digests that the client announced. */
import {
  type ChecksumAlgorithm,
  type ChecksumStream,
  checksumStream,
} from '../../../../system/checksums.ts'
import { digestEquals } from '../../../../system/digests.ts'
import { algorithmOfHeader, CHECKSUMS, type Checksums } from '../checksums.ts'
import { S3Fault } from '../errors.ts'

const SHA256_HEX = /^[0-9a-f]{64}$/

/** A checksum whose value the client sends before or after the body. */
interface Expected {
  readonly algorithm: ChecksumAlgorithm
  readonly stream: ChecksumStream
  readonly bytes: number
  value: string | null
}

export class BodyChecks {
  readonly #md5 = checksumStream('md5')
  readonly #contentMd5: Uint8Array | null
  readonly #sha256: { readonly stream: ChecksumStream; readonly expected: Uint8Array } | null
  readonly #expected = new Map<string, Expected>()
  /** Length of the body that the headers announce; null if they announce none. */
  readonly length: number | null
  #received = 0

  /** Parses the announced values. Throws InvalidDigest, InvalidArgument and InvalidRequest. */
  constructor(headers: Headers, payload: string) {
    const md5 = headers.get('content-md5')
    this.#contentMd5 = md5 === null ? null : decodeBase64(md5, 16)
    this.#sha256 = SHA256_HEX.test(payload)
      ? { stream: checksumStream('sha256'), expected: Uint8Array.fromHex(payload) }
      : null
    this.length = announcedLength(headers, payload)
    for (const [name, value] of headers) {
      if (algorithmOfHeader(name) !== null) this.#expect(name, value)
    }
    const trailers = headers.get('x-amz-trailer')?.split(',') ?? []
    for (const name of trailers) this.#expect(name.trim().toLowerCase(), null)
  }

  #expect(name: string, value: string | null): void {
    const algorithm = algorithmOfHeader(name)
    if (algorithm === null) throw new S3Fault('InvalidRequest', 'an unknown trailer')
    const { bytes } = CHECKSUMS.get(algorithm)!
    if (value !== null) decodeBase64(value, bytes)
    this.#expected.set(name, { algorithm, stream: checksumStream(algorithm), bytes, value })
  }

  update(bytes: Uint8Array): void {
    this.#received += bytes.length
    this.#md5.update(bytes)
    this.#sha256?.stream.update(bytes)
    for (const { stream } of this.#expected.values()) stream.update(bytes)
  }

  /** Receives a trailer. Throws InvalidRequest for one that was not announced. */
  trailer(name: string, value: string): void {
    const expected = this.#expected.get(name)
    if (expected === undefined || expected.value !== null) {
      throw new S3Fault('InvalidRequest', 'a trailer that was not announced')
    }
    decodeBase64(value, expected.bytes)
    expected.value = value
  }

  /**
   * Returns the MD5 in hexadecimal, and the verified checksums. Throws BadDigest, IncompleteBody
   * and XAmzContentSHA256Mismatch.
   */
  finish(): { readonly md5: string; readonly checksums: Checksums } {
    if (this.length !== null && this.#received !== this.length) throw new S3Fault('IncompleteBody')
    const md5 = this.#md5.digest()
    if (this.#contentMd5 !== null && !digestEquals(md5, this.#contentMd5)) {
      throw new S3Fault('BadDigest', 'Content-MD5')
    }
    if (this.#sha256 !== null) {
      const isEqual = digestEquals(this.#sha256.stream.digest(), this.#sha256.expected)
      if (!isEqual) throw new S3Fault('XAmzContentSHA256Mismatch')
    }
    const checksums = new Map<string, string>()
    for (const [name, { algorithm, stream, bytes, value }] of this.#expected) {
      if (value === null) throw new S3Fault('IncompleteBody', `the trailer ${name} is missing`)
      const isEqual = digestEquals(stream.digest(), decodeBase64(value, bytes))
      if (!isEqual) throw new S3Fault('BadDigest', name)
      checksums.set(algorithm, value)
    }
    return { md5: md5.toHex(), checksums }
  }
}

function announcedLength(headers: Headers, payload: string): number | null {
  const isStreaming = payload.startsWith('STREAMING-')
  const text = headers.get(isStreaming ? 'x-amz-decoded-content-length' : 'content-length')
  if (text === null && !isStreaming) return null
  if (text === null || !/^\d{1,15}$/.test(text)) {
    throw new S3Fault('InvalidArgument', 'x-amz-decoded-content-length')
  }
  return Number(text)
}

function decodeBase64(text: string, length: number): Uint8Array {
  try {
    const bytes = Uint8Array.fromBase64(text, { lastChunkHandling: 'strict' })
    if (bytes.length === length) return bytes
  } catch {}
  throw new S3Fault('InvalidDigest')
}
