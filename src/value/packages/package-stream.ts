/**
 * Reads a package while it arrives, without holding the artifact in memory. It accepts exactly the
 * packages that decodePackage and decodeArtifact accept.
 */
import { ValidationError } from '../validation-error.ts'
import {
  ARTIFACT_HEAD_BYTES,
  artifactHead,
  bytesEqual,
  DIGEST_BYTES,
  digestName,
  PACKAGE_HEAD_BYTES,
  packageHead,
  readIndex,
  utf8,
} from './workspace-package.ts'

/** An incremental SHA-256. */
export interface Hash {
  update(bytes: Uint8Array): unknown
  digest(): Uint8Array
}

export type Chunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

export interface StreamedPackage {
  /** Canonical JSON text. */
  readonly manifest: string
  /** `sha256:<hex>`, of everything before the trailing digest. */
  readonly packageDigest: string
  readonly artifact: { readonly digest: string; readonly bytes: number }
}

export interface PackageSink {
  hash(): Hash
  /** Receives the next bytes of the artifact. Reading continues when it resolves. */
  writeArtifact(bytes: Uint8Array): Promise<void>
}

/** Throws ValidationError, and errors of `chunks` and `sink`. Discard the written bytes then. */
export async function readPackage(chunks: Chunks, sink: PackageSink): Promise<StreamedPackage> {
  const whole = sink.hash()
  const frame = new ByteReader(chunks, (bytes) => void whole.update(bytes))
  try {
    return await readFrame(frame, whole, sink)
  } finally {
    // Stops a client that still sends the rest of a rejected package.
    await frame.close()
  }
}

async function readFrame(
  frame: ByteReader,
  whole: Hash,
  sink: PackageSink,
): Promise<StreamedPackage> {
  const { manifestBytes, artifactBytes } = packageHead(await frame.upTo(PACKAGE_HEAD_BYTES))
  const manifest = await frame.take(manifestBytes)
  const artifact = await readArtifact(frame, artifactBytes, sink)
  const packageDigest = whole.digest()
  frame.tee = () => undefined
  const stated = await frame.take(DIGEST_BYTES)
  if ((await frame.upTo(1)).length !== 0) throw wrongLength()
  if (!bytesEqual(packageDigest, stated)) {
    throw new ValidationError('contents that fit the digest', 'package')
  }
  return {
    manifest: utf8(manifest, 'manifest'),
    packageDigest: digestName(packageDigest),
    artifact: { digest: artifact, bytes: artifactBytes },
  }
}

/** Copies the artifact to the sink. Returns its digest. */
async function readArtifact(
  frame: ByteReader,
  bytes: number,
  { hash, writeArtifact }: PackageSink,
): Promise<string> {
  const whole = hash()
  const pass = async (part: Uint8Array): Promise<Uint8Array> => {
    whole.update(part)
    await writeArtifact(part)
    return part
  }
  const head = await pass(await frame.take(Math.min(bytes, ARTIFACT_HEAD_BYTES)))
  const indexBytes = artifactHead(head)
  let left = bytes - ARTIFACT_HEAD_BYTES - indexBytes
  if (left < 0) throw new ValidationError('an index inside the artifact', 'artifact')
  for (const entry of readIndex(await pass(await frame.take(indexBytes)))) {
    left -= entry.bytes
    if (left < 0) throw new ValidationError('contents that fit the index', entry.path)
    const content = hash()
    const text = new TextChecker(entry.path)
    for await (const part of frame.parts(entry.bytes)) {
      content.update(part)
      text.push(part)
      await pass(part)
    }
    text.end()
    if (digestName(content.digest()) !== entry.digest) {
      throw new ValidationError('contents that fit the index', entry.path)
    }
  }
  if (left !== 0) throw new ValidationError('nothing behind the contents', 'artifact')
  return digestName(whole.digest())
}

/** Checks UTF-8 text whose characters may be split between parts. */
class TextChecker {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  push(part: Uint8Array): void {
    this.#decode(() => this.#decoder.decode(part, { stream: true }))
  }

  end(): void {
    this.#decode(() => this.#decoder.decode())
  }

  #decode(work: () => string): void {
    try {
      work()
    } catch {
      throw new ValidationError('UTF-8 text', this.#path)
    }
  }
}

function wrongLength(): ValidationError {
  return new ValidationError('the length that its head states', 'package')
}

/** Reads exact numbers of bytes from chunks of any size. */
class ByteReader {
  /** Called with all bytes that are read, in order. */
  tee: (bytes: Uint8Array) => void
  readonly #chunks: AsyncIterator<Uint8Array> | Iterator<Uint8Array>
  #rest: Uint8Array = new Uint8Array(0)

  constructor(chunks: Chunks, tee: (bytes: Uint8Array) => void) {
    this.tee = tee
    this.#chunks =
      Symbol.asyncIterator in chunks ? chunks[Symbol.asyncIterator]() : chunks[Symbol.iterator]()
  }

  /** Reads `count` bytes into memory, or fewer at the end. */
  async upTo(count: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = []
    let size = 0
    while (size < count) {
      const part = await this.#next(count - size)
      if (part === null) break
      parts.push(part)
      size += part.length
    }
    const bytes = new Uint8Array(size)
    let at = 0
    for (const part of parts) {
      bytes.set(part, at)
      at += part.length
    }
    return bytes
  }

  /** Reads exactly `count` bytes. Throws ValidationError at the end. */
  async take(count: number): Promise<Uint8Array> {
    const bytes = await this.upTo(count)
    if (bytes.length < count) throw wrongLength()
    return bytes
  }

  /** Yields the next `count` bytes as they arrive. Throws ValidationError at the end. */
  async *parts(count: number): AsyncGenerator<Uint8Array> {
    for (let left = count; left > 0; ) {
      const part = await this.#next(left)
      if (part === null) throw wrongLength()
      left -= part.length
      yield part
    }
  }

  async close(): Promise<void> {
    await this.#chunks.return?.()
  }

  async #next(most: number): Promise<Uint8Array | null> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#chunks.next()
      if (done === true) return null
      this.#rest = value
    }
    const part = this.#rest.subarray(0, most)
    this.#rest = this.#rest.subarray(part.length)
    this.tee(part)
    return part
  }
}
