/**
 * The two containers of a publication (contract/wire.md, Workspace package). The package is sent:
 * magic, two lengths, manifest, artifact, SHA-256 of all before. The artifact is stored: magic,
 * index length, canonical index, contents. A source has exactly one encoding of each. The caller
 * supplies the digest function, since client and server use different ones.
 */
import { canonicalJson } from '../canonical-json.ts'
import { isJsonObject, type Json, parseStrictJson } from '../strict-json.ts'
import { ValidationError } from '../validation-error.ts'

/** Returns the 32 bytes of the digest. */
export type Sha256 = (bytes: Uint8Array) => Uint8Array

export const PACKAGE_MEDIA_TYPE = 'application/vnd.service.workspace-package.v1'
/** @limit Workspaces and Releases: the manifest of a package */
export const MANIFEST_BYTES_MAX = 4 * 1024 * 1024
/** @limit Workspaces and Releases: a Workspace package */
export const PACKAGE_BYTES_MAX = 64 * 1024 * 1024

const PACKAGE_MAGIC = 'SVCPKG\0\x01'
const ARTIFACT_MAGIC = 'SVCART\0\x01'
const MAGIC_BYTES = 8
export const PACKAGE_HEAD_BYTES = MAGIC_BYTES + 8
export const ARTIFACT_HEAD_BYTES = MAGIC_BYTES + 4
export const DIGEST_BYTES = 32
const INDEX_BYTES_MAX = 4_096
const SCRIPT = 'bundle.js'
const SOURCE_MAP = 'bundle.js.map'

export interface WorkspacePackage {
  /** Canonical JSON text. */
  readonly manifest: string
  /** Artifact bytes, as encodeArtifact returns them. */
  readonly artifact: Uint8Array
}

export interface DecodedPackage extends WorkspacePackage {
  /** `sha256:<hex>`, of everything before the trailing digest. */
  readonly packageDigest: string
}

export interface WorkspaceArtifact {
  /** One script that a runner loads. */
  readonly source: string
  /** JSON text; null for no source map. */
  readonly sourceMap: string | null
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Returns the text form of a digest: `sha256:` and 64 hex characters. */
export function digestName(digest: Uint8Array): string {
  // Uint8Array.prototype.toHex is missing in some runtimes of the bundled client.
  return `sha256:${Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

/** Throws ValidationError where a part exceeds its bound. */
export function encodePackage(input: WorkspacePackage, sha256: Sha256): Uint8Array {
  const manifest = encoder.encode(input.manifest)
  const length = PACKAGE_HEAD_BYTES + manifest.length + input.artifact.length + DIGEST_BYTES
  checkPackageBounds(manifest.length, length)
  const frame = new Uint8Array(length)
  writeMagic(frame, PACKAGE_MAGIC)
  const view = new DataView(frame.buffer)
  view.setUint32(MAGIC_BYTES, manifest.length)
  view.setUint32(MAGIC_BYTES + 4, input.artifact.length)
  frame.set(manifest, PACKAGE_HEAD_BYTES)
  frame.set(input.artifact, PACKAGE_HEAD_BYTES + manifest.length)
  frame.set(sha256(frame.subarray(0, length - DIGEST_BYTES)), length - DIGEST_BYTES)
  return frame
}

/** Throws ValidationError for anything but one whole frame. `artifact` is a view into `frame`. */
export function decodePackage(frame: Uint8Array, sha256: Sha256): DecodedPackage {
  if (frame.length > PACKAGE_BYTES_MAX) {
    throw new ValidationError(`at most ${PACKAGE_BYTES_MAX} bytes`, 'package')
  }
  const { manifestBytes, artifactBytes } = packageHead(frame)
  const length = PACKAGE_HEAD_BYTES + manifestBytes + artifactBytes + DIGEST_BYTES
  if (frame.length !== length)
    throw new ValidationError('the length that its head states', 'package')
  const digest = sha256(frame.subarray(0, length - DIGEST_BYTES))
  if (!bytesEqual(digest, frame.subarray(length - DIGEST_BYTES))) {
    throw new ValidationError('contents that fit the digest', 'package')
  }
  const artifactAt = PACKAGE_HEAD_BYTES + manifestBytes
  return {
    manifest: utf8(frame.subarray(PACKAGE_HEAD_BYTES, artifactAt), 'manifest'),
    artifact: frame.subarray(artifactAt, artifactAt + artifactBytes),
    packageDigest: digestName(digest),
  }
}

export function encodeArtifact(input: WorkspaceArtifact, sha256: Sha256): Uint8Array {
  const entries = [{ path: SCRIPT, content: encoder.encode(input.source) }]
  if (input.sourceMap !== null) {
    entries.push({ path: SOURCE_MAP, content: encoder.encode(input.sourceMap) })
  }
  const index = encoder.encode(
    canonicalJson(
      entries.map(({ path, content }) => ({
        path,
        bytes: content.length,
        digest: digestName(sha256(content)),
      })),
    ),
  )
  const contents = entries.reduce((sum, { content }) => sum + content.length, 0)
  const artifact = new Uint8Array(ARTIFACT_HEAD_BYTES + index.length + contents)
  writeMagic(artifact, ARTIFACT_MAGIC)
  new DataView(artifact.buffer).setUint32(MAGIC_BYTES, index.length)
  artifact.set(index, ARTIFACT_HEAD_BYTES)
  let at = ARTIFACT_HEAD_BYTES + index.length
  for (const { content } of entries) {
    artifact.set(content, at)
    at += content.length
  }
  return artifact
}

/** Throws ValidationError for any bytes that encodeArtifact would not write. */
export function decodeArtifact(artifact: Uint8Array, sha256: Sha256): WorkspaceArtifact {
  let at = ARTIFACT_HEAD_BYTES + artifactHead(artifact)
  if (at > artifact.length) throw new ValidationError('an index inside the artifact', 'artifact')
  const contents: string[] = []
  for (const entry of readIndex(artifact.subarray(ARTIFACT_HEAD_BYTES, at))) {
    const content = artifact.subarray(at, at + entry.bytes)
    at += entry.bytes
    if (at > artifact.length || digestName(sha256(content)) !== entry.digest) {
      throw new ValidationError('contents that fit the index', entry.path)
    }
    contents.push(utf8(content, entry.path))
  }
  if (at !== artifact.length) throw new ValidationError('nothing behind the contents', 'artifact')
  return { source: contents[0]!, sourceMap: contents[1] ?? null }
}

export interface IndexEntry {
  readonly path: string
  readonly bytes: number
  readonly digest: string
}

/** Parses an index of the script and, optionally, its source map, in the order of their paths. */
export function readIndex(bytes: Uint8Array): IndexEntry[] {
  const text = utf8(bytes, 'index')
  const json = parseStrictJson(text)
  if (canonicalJson(json) !== text) throw new ValidationError('canonical JSON', 'index')
  if (!Array.isArray(json) || json.length === 0 || json.length > 2) {
    throw new ValidationError('one or two entries', 'index')
  }
  return json.map((item, i) => indexEntry(item, i === 0 ? SCRIPT : SOURCE_MAP))
}

function indexEntry(json: Json, path: string): IndexEntry {
  if (!isJsonObject(json)) throw new ValidationError('an entry', 'index')
  const { bytes, digest } = json
  const fits =
    Object.keys(json).length === 3 &&
    json.path === path &&
    typeof digest === 'string' &&
    typeof bytes === 'number' &&
    Number.isSafeInteger(bytes) &&
    bytes >= 0
  if (!fits) throw new ValidationError(`the entry ${path}`, 'index')
  return { path, bytes, digest }
}

/** Parses the head of a package. Throws ValidationError unless its lengths are in bounds. */
export function packageHead(frame: Uint8Array): { manifestBytes: number; artifactBytes: number } {
  if (frame.length < PACKAGE_HEAD_BYTES || !hasMagic(frame, PACKAGE_MAGIC)) {
    throw new ValidationError('a Workspace package', 'package')
  }
  const manifestBytes = uint32(frame, MAGIC_BYTES)
  const artifactBytes = uint32(frame, MAGIC_BYTES + 4)
  checkPackageBounds(
    manifestBytes,
    PACKAGE_HEAD_BYTES + manifestBytes + artifactBytes + DIGEST_BYTES,
  )
  return { manifestBytes, artifactBytes }
}

/** Returns the length of the index in bytes. Throws ValidationError for another magic. */
export function artifactHead(artifact: Uint8Array): number {
  if (artifact.length < ARTIFACT_HEAD_BYTES || !hasMagic(artifact, ARTIFACT_MAGIC)) {
    throw new ValidationError('a Workspace artifact', 'artifact')
  }
  const indexBytes = uint32(artifact, MAGIC_BYTES)
  if (indexBytes > INDEX_BYTES_MAX)
    throw new ValidationError('an index inside the artifact', 'artifact')
  return indexBytes
}

function checkPackageBounds(manifestBytes: number, length: number): void {
  if (manifestBytes > MANIFEST_BYTES_MAX) {
    throw new ValidationError(`at most ${MANIFEST_BYTES_MAX} bytes`, 'manifest')
  }
  if (length > PACKAGE_BYTES_MAX) {
    throw new ValidationError(`at most ${PACKAGE_BYTES_MAX} bytes`, 'package')
  }
}

function writeMagic(bytes: Uint8Array, magic: string): void {
  for (let i = 0; i < MAGIC_BYTES; i++) bytes[i] = magic.charCodeAt(i)
}

function hasMagic(bytes: Uint8Array, magic: string): boolean {
  for (let i = 0; i < MAGIC_BYTES; i++) if (bytes[i] !== magic.charCodeAt(i)) return false
  return true
}

function uint32(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(at)
}

export function bytesEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}

export function utf8(bytes: Uint8Array, path: string): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw new ValidationError('UTF-8 text', path)
  }
}
