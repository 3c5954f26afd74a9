/**
 * Decodes bodies with `Content-Encoding: aws-chunked`: signed or unsigned chunks, and trailers
 * after the last one. An error may occur at any byte, so the consumer must discard the earlier
 * bytes of a failed body. A body is stored only after its end.
 */
import { sha256Stream } from '../../../../system/digests.ts'
import { inSlices, nextTurn } from '../../../../system/event-loop.ts'
import { S3Fault } from '../errors.ts'
import type { ChunkSignatures } from '../signature/signatures.ts'

export interface ChunkedOptions {
  /** The verifier of signatures; null for unsigned chunks. */
  readonly signatures: Pick<ChunkSignatures, 'isNextChunk' | 'isTrailer'> | null
  readonly hasTrailers: boolean
  /** Receives a trailer. Its name is in lower case. */
  readonly onTrailer: (name: string, value: string) => void
}

/** The head of a chunk has at most 91 characters, and a trailer with its name about 320. */
const LINE_BYTES_MAX = 1_024
const TRAILERS_MAX = 8
/**
 * Least average size of chunks. Each chunk takes some microseconds, however small it is, so tiny
 * chunks would cost far more than their bytes.
 * @limit Stored files: bytes of the chunks of a signed or `aws-chunked` body, at least, on average
 */
export const CHUNK_BYTES_MIN = 64
/** Number of chunks that are exempt from the least average size. */
const SMALL_CHUNKS_MAX = 64
/** Number of chunks after which the event loop runs other requests. */
const CHUNKS_PER_TURN = 256
/** Size to which small chunks are joined, so that later steps process few pieces. */
const GATHERED_BYTES = 64 * 1024
/** The size of a chunk, at most 1 TiB. The reader bounds the sum of all chunks. */
const CHUNK_HEAD = /^([0-9a-fA-F]{1,10})(?:;chunk-signature=([0-9a-f]{64}))?$/
const TRAILER = /^([A-Za-z0-9-]{1,64}):[ \t]*([\x21-\x7e]{0,256})[ \t]*$/
const TRAILER_SIGNATURE = 'x-amz-trailer-signature'

/**
 * Yields the bytes of the chunks. Closes the source at the end, also if the consumer stops early.
 * Throws IncompleteBody and SignatureDoesNotMatch.
 */
export async function* decodeChunks(
  source: AsyncIterable<Uint8Array>,
  options: ChunkedOptions,
): AsyncGenerator<Uint8Array> {
  const reader = new ByteReader(source)
  try {
    yield* readChunks(reader, options)
    if (options.hasTrailers) await readTrailers(reader, options)
    await requireEnd(reader)
  } finally {
    await reader.close()
  }
}

/** Yields the bytes up to the last chunk, which is empty. */
async function* readChunks(
  reader: ByteReader,
  { signatures }: ChunkedOptions,
): AsyncGenerator<Uint8Array> {
  const gathered = new GatheredBytes()
  let received = 0
  for (let chunks = 1; ; chunks++) {
    if (chunks % CHUNKS_PER_TURN === 0) await nextTurn()
    const head = CHUNK_HEAD.exec(await reader.line())
    const signature = head?.[2]
    if (head === null || (signature === undefined) !== (signatures === null)) {
      throw new S3Fault('IncompleteBody', 'the head of a chunk')
    }
    const size = Number.parseInt(head[1]!, 16)
    received += size
    if (chunks > SMALL_CHUNKS_MAX + received / CHUNK_BYTES_MIN) {
      throw new S3Fault('InvalidRequest', `chunks of less than ${CHUNK_BYTES_MIN} bytes`)
    }
    const digest = signatures === null ? null : sha256Stream()
    for (let left = size; left > 0; ) {
      const bytes = await reader.take(left)
      left -= bytes.length
      if (digest !== null) await inSlices(bytes, (slice) => void digest.update(slice))
      yield* gathered.add(bytes)
    }
    const sha256 = digest?.digest().toString('hex')
    if (signatures !== null && !signatures.isNextChunk(signature!, sha256!)) {
      throw new S3Fault('SignatureDoesNotMatch', 'the signature of a chunk')
    }
    if (size === 0) {
      yield* gathered.rest()
      return
    }
    if ((await reader.line()) !== '') throw new S3Fault('IncompleteBody', 'the end of a chunk')
  }
}

/**
 * Reads the trailers. Lines end with CR LF, or with LF as in the documentation of AWS, where an
 * empty line precedes the signature.
 */
async function readTrailers(
  reader: ByteReader,
  { signatures, onTrailer }: ChunkedOptions,
): Promise<void> {
  let signed = ''
  let isSignatureNext = false
  for (let count = 0; count <= TRAILERS_MAX; count++) {
    const line = await reader.line({ allowsLineFeed: true })
    if (line === '') {
      if (signatures === null) return
      if (isSignatureNext || (await reader.isAtEnd())) {
        throw new S3Fault('SignatureDoesNotMatch', 'unsigned trailers')
      }
      isSignatureNext = true
      continue
    }
    const [, name, value] = TRAILER.exec(line) ?? []
    if (name === undefined) break
    if (name.toLowerCase() === TRAILER_SIGNATURE) {
      if (signatures?.isTrailer(value!, signed) === true) return
      throw new S3Fault('SignatureDoesNotMatch', 'the signature of the trailers')
    }
    signed += `${name.toLowerCase()}:${value}\n`
    onTrailer(name.toLowerCase(), value!)
  }
  throw new S3Fault('IncompleteBody', 'a trailer')
}

/** Throws IncompleteBody unless the body ends here, after up to two empty lines of some clients. */
async function requireEnd(reader: ByteReader): Promise<void> {
  for (let lines = 0; lines < 2; lines++) {
    if (await reader.isAtEnd()) return
    if ((await reader.line()) !== '') break
  }
  if (!(await reader.isAtEnd())) throw new S3Fault('IncompleteBody', 'bytes after the last chunk')
}

/** Joins small pieces. */
class GatheredBytes {
  #buffer = new Uint8Array(0)
  #length = 0;

  /** Yields complete pieces. Large pieces pass unchanged. */
  *add(bytes: Uint8Array): Generator<Uint8Array> {
    if (this.#length + bytes.length >= GATHERED_BYTES) {
      yield* this.rest()
      yield bytes
      return
    }
    if (this.#length === 0) this.#buffer = new Uint8Array(GATHERED_BYTES)
    this.#buffer.set(bytes, this.#length)
    this.#length += bytes.length
  }

  /** Yields the rest. */
  *rest(): Generator<Uint8Array> {
    if (this.#length > 0) yield this.#buffer.subarray(0, this.#length)
    this.#length = 0
  }
}

class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>
  #bytes: Uint8Array = new Uint8Array(0)

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  /** Closes the source, even if it was not read to its end. */
  async close(): Promise<void> {
    await this.#source.return?.()
  }

  /** Returns 1 to `max` bytes. Throws IncompleteBody at the end. */
  async take(max: number): Promise<Uint8Array> {
    if (await this.isAtEnd()) throw new S3Fault('IncompleteBody', 'the body ends inside a chunk')
    const taken = this.#bytes.subarray(0, max)
    this.#bytes = this.#bytes.subarray(taken.length)
    return taken
  }

  /** Returns the text up to its CR LF, or an allowed LF, and skips both. Throws IncompleteBody. */
  async line({ allowsLineFeed = false } = {}): Promise<string> {
    let text = ''
    for (;;) {
      const bytes = await this.take(LINE_BYTES_MAX)
      const newline = bytes.indexOf(0x0a)
      const part = newline < 0 ? bytes : bytes.subarray(0, newline)
      text += Buffer.from(part).toString('latin1')
      if (text.length > LINE_BYTES_MAX) throw new S3Fault('IncompleteBody', 'a line of a chunk')
      if (newline < 0) continue
      this.#unread(bytes.subarray(newline + 1))
      if (text.endsWith('\r')) return text.slice(0, -1)
      if (allowsLineFeed) return text
      throw new S3Fault('IncompleteBody', 'a line without CR LF')
    }
  }

  async isAtEnd(): Promise<boolean> {
    while (this.#bytes.length === 0) {
      const { done, value } = await this.#source.next()
      if (done === true) return true
      this.#bytes = value
    }
    return false
  }

  /** Puts back the bytes that `take` returned last, before all unread bytes. */
  #unread(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    const rest = this.#bytes
    const whole = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length + rest.length)
    this.#bytes = whole
  }
}
