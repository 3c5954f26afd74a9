/**
 * Verifies signatures of minisign: Ed25519 over the BLAKE2b-512 digest of a file. The older kind,
 * which signs the file itself, is rejected. The trusted comment is returned only after its own
 * signature was verified; the untrusted one is never read.
 */
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'

/** The two letters before a public key. */
export const KEY_ALGORITHM = 'Ed'
/** The two letters before a signature over a digest. */
export const PREHASHED = 'ED'
const ALGORITHM_BYTES = 2
export const KEY_ID_BYTES = 8
export const KEY_BYTES = 32
const SIGNATURE_BYTES = 64
/** Header of an Ed25519 key as SubjectPublicKeyInfo (RFC 8410). */
const KEY_HEADER = Buffer.from('302a300506032b6570032100', 'hex')

/** Begins the first line of a file, which no signature covers. */
export const UNTRUSTED = 'untrusted comment: '
/** Begins the line of a signature file that its second signature covers. */
export const TRUSTED = 'trusted comment: '

/** Bounds of the files, of which minisign writes comments of up to 9 KiB. */
export const SIGNATURE_FILE_BYTES_MAX = 16 * 1024
export const KEY_FILE_BYTES_MAX = 16 * 1024

export interface PublicKey {
  /** Sixteen digits, as minisign prints them. */
  readonly id: string
  readonly key: KeyObject
}

/** The reason why a file is not what the owner of the key signed. */
export type SignatureProblem = 'form' | 'legacy' | 'other-key' | 'content' | 'comment'

export type Verified =
  | { readonly trustedComment: string; readonly problem: null }
  | { readonly problem: SignatureProblem }

/**
 * Parses a public key: the base64 text alone, or a file that has it below a comment. Returns null
 * for anything else.
 */
export function parsePublicKey(text: string): PublicKey | null {
  const lines = text.trimEnd().split(/\r?\n/)
  const [first = '', second] = lines
  if (lines.length > 2) return null
  if (second !== undefined && !first.startsWith(UNTRUSTED)) return null
  const bytes = decode(second ?? first, ALGORITHM_BYTES + KEY_ID_BYTES + KEY_BYTES)
  if (bytes === null || algorithmOf(bytes) !== KEY_ALGORITHM) return null
  const raw = bytes.subarray(ALGORITHM_BYTES + KEY_ID_BYTES)
  const der = Buffer.concat([KEY_HEADER, raw])
  return { id: idOf(bytes), key: createPublicKey({ key: der, format: 'der', type: 'spki' }) }
}

/** Verifies the content of a signature file against the bytes of the signed file. */
export function verifySignature(
  { id, key }: PublicKey,
  signature: string,
  content: Uint8Array,
): Verified {
  const lines = signature.replace(/\n$/, '').split('\n')
  const [untrusted = '', first = '', comment = '', second = ''] = lines
  const signed = decode(first, ALGORITHM_BYTES + KEY_ID_BYTES + SIGNATURE_BYTES)
  const global = decode(second, SIGNATURE_BYTES)
  const hasComments = untrusted.startsWith(UNTRUSTED) && comment.startsWith(TRUSTED)
  if (lines.length !== 4 || !hasComments || signed === null || global === null) {
    return { problem: 'form' }
  }
  const algorithm = algorithmOf(signed)
  if (algorithm === KEY_ALGORITHM) return { problem: 'legacy' }
  if (algorithm !== PREHASHED) return { problem: 'form' }
  if (idOf(signed) !== id) return { problem: 'other-key' }
  const own = signed.subarray(ALGORITHM_BYTES + KEY_ID_BYTES)
  if (!verify(null, signedDigest(content), key, own)) return { problem: 'content' }
  const trustedComment = comment.slice(TRUSTED.length)
  if (!verify(null, signedComment(own, trustedComment), key, global)) return { problem: 'comment' }
  return { problem: null, trustedComment }
}

/** Returns what the signature of a content covers. */
export function signedDigest(content: Uint8Array): Buffer {
  return createHash('blake2b512').update(content).digest()
}

/** Returns what the second signature covers: the first one, and the trusted comment. */
export function signedComment(signature: Uint8Array, comment: string): Buffer {
  return Buffer.concat([signature, Buffer.from(comment)])
}

/** Decodes base64 in its one canonical form; null for another form or another length. */
function decode(text: string, length: number): Buffer | null {
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === length && bytes.toString('base64') === text ? bytes : null
}

function algorithmOf(bytes: Buffer): string {
  return bytes.toString('latin1', 0, ALGORITHM_BYTES)
}

/** The identifier is a number in little-endian order. */
function idOf(bytes: Buffer): string {
  const id = Buffer.from(bytes.subarray(ALGORITHM_BYTES, ALGORITHM_BYTES + KEY_ID_BYTES))
  return id.reverse().toString('hex').toUpperCase()
}
