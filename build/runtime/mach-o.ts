/**
 * Ad-hoc code signatures of Mach-O executables. macOS kills a process whose pages do not have the
 * digests of its signature, and the base of an executable was signed before it was changed. An
 * ad-hoc signature names no signer, and without the hardened runtime it needs no entitlement for
 * compiled JavaScript. Sources: loader.h and cs_blobs.h of XNU.
 */
import { createHash } from 'node:crypto'
import { assert } from '../../src/errors/assert.ts'

const MAGIC_64 = 0xfeedfacf
const HEADER_BYTES = 32
const LC_SEGMENT_64 = 0x19
const LC_CODE_SIGNATURE = 0x1d
const SUPER_BLOB = 0xfade0cc0
const CODE_DIRECTORY = 0xfade0c02
/** The CodeDirectory is the only blob, after the head of the super blob and one index entry. */
const CODE_DIRECTORY_AT = 20
const CODE_DIRECTORY_HEAD_BYTES = 88
/** The first version with the segment of the code. */
const CODE_DIRECTORY_VERSION = 0x20400
const AD_HOC = 0x2
const SHA256_TYPE = 2
const SHA256_BYTES = 32
const PAGE_SHIFT = 12
const PAGE_BYTES = 1 << PAGE_SHIFT
/** Alignment of the segments of arm64 executables; those of x64 need 4 KiB. */
const SEGMENT_BYTES = 16 * 1024
const SIGNATURE_ALIGNMENT = 16
const MAIN_BINARY = 1n

export interface CodeSignature {
  /** `CS_*` of cs_blobs.h: 0x2 is ad hoc, 0x10000 the hardened runtime. */
  readonly flags: number
  readonly identifier: string
  /** Number of pages that the signature covers. */
  readonly pages: number
  /** True if the signature covers everything before itself. */
  readonly isComplete: boolean
  /** Pages whose bytes do not have the digest of the signature, in ascending order. */
  readonly brokenPages: readonly number[]
}

export function isMachO(bytes: Buffer): boolean {
  return bytes.length >= HEADER_BYTES && bytes.readUInt32LE(0) === MAGIC_64
}

/** Throws if the executable has no signature of SHA-256 digests. */
export function readSignature(executable: Buffer): CodeSignature {
  const { dataAt, dataBytes } = layoutOf(executable)
  const blob = executable.subarray(dataAt, dataAt + dataBytes)
  assert(blob.readUInt32BE(0) === SUPER_BLOB, 'the signature is no super blob')
  const directory = blob.subarray(directoryAt(blob))
  const [hashesAt, identifierAt] = [directory.readUInt32BE(16), directory.readUInt32BE(20)]
  const [pages, codeLimit] = [directory.readUInt32BE(28), directory.readUInt32BE(32)]
  const format = [directory[36], directory[37], directory[39]]
  assert(
    format.join() === [SHA256_BYTES, SHA256_TYPE, PAGE_SHIFT].join(),
    'the signature does not have SHA-256 digests of 4 KiB pages',
  )
  const recorded = directory.subarray(hashesAt, hashesAt + pages * SHA256_BYTES)
  const computed = pageDigests(executable.subarray(0, codeLimit))
  const range = (page: number) => [page * SHA256_BYTES, (page + 1) * SHA256_BYTES] as const
  return {
    flags: directory.readUInt32BE(12),
    identifier: directory.toString('utf8', identifierAt, directory.indexOf(0, identifierAt)),
    pages,
    isComplete: codeLimit === dataAt && pages === Math.ceil(dataAt / PAGE_BYTES),
    brokenPages: Array.from({ length: pages }, (_, page) => page).filter((page) => {
      return !recorded.subarray(...range(page)).equals(computed.subarray(...range(page)))
    }),
  }
}

/** Returns whether macOS runs the executable: its bytes are those that were signed. */
export function isSignatureValid(executable: Buffer): boolean {
  const { isComplete, brokenPages } = readSignature(executable)
  return isComplete && brokenPages.length === 0
}

/**
 * Returns the executable with an ad-hoc signature in place of its own, whose room grows with the
 * code. Throws if the signature is not the end of the file.
 */
export function signAdHoc(executable: Buffer, identifier: string): Buffer {
  const { dataAt, dataBytes, linkEdit, signatureCommandAt, text } = layoutOf(executable)
  const linkEditAt = Number(executable.readBigUInt64LE(linkEdit + 40))
  const linkEditBytes = Number(executable.readBigUInt64LE(linkEdit + 48))
  const end = dataAt + dataBytes
  assert(
    end === linkEditAt + linkEditBytes && end === executable.length,
    'the signature is not the end of the executable',
  )
  const pages = Math.ceil(dataAt / PAGE_BYTES)
  const name = Buffer.from(`${identifier}\0`)
  const directoryBytes = CODE_DIRECTORY_HEAD_BYTES + name.length + pages * SHA256_BYTES
  const blobBytes = CODE_DIRECTORY_AT + directoryBytes
  const signed = Buffer.alloc(dataAt + aligned(blobBytes, SIGNATURE_ALIGNMENT))
  executable.copy(signed, 0, 0, dataAt)
  // First, because the load commands are in a page that is signed.
  signed.writeUInt32LE(signed.length - dataAt, signatureCommandAt + 12)
  const room = signed.length - linkEditAt
  signed.writeBigUInt64LE(BigInt(aligned(room, SEGMENT_BYTES)), linkEdit + 32)
  signed.writeBigUInt64LE(BigInt(room), linkEdit + 48)

  const blob = signed.subarray(dataAt)
  writeWords(blob, [SUPER_BLOB, blobBytes, 1, 0, CODE_DIRECTORY_AT])
  const directory = blob.subarray(CODE_DIRECTORY_AT)
  const hashesAt = CODE_DIRECTORY_HEAD_BYTES + name.length
  writeWords(directory, [
    CODE_DIRECTORY,
    directoryBytes,
    CODE_DIRECTORY_VERSION,
    AD_HOC,
    hashesAt,
    CODE_DIRECTORY_HEAD_BYTES,
    0,
    pages,
    dataAt,
  ])
  directory.set([SHA256_BYTES, SHA256_TYPE, 0, PAGE_SHIFT], 36)
  // The segment of the code, after fields for scattered code, a team and more than 4 GiB.
  directory.writeBigUInt64BE(executable.readBigUInt64LE(text + 40), 64)
  directory.writeBigUInt64BE(executable.readBigUInt64LE(text + 48), 72)
  directory.writeBigUInt64BE(MAIN_BINARY, 80)
  directory.set(name, CODE_DIRECTORY_HEAD_BYTES)
  directory.set(pageDigests(signed.subarray(0, dataAt)), hashesAt)
  return signed
}

interface Layout {
  /** Offsets of the load commands. */
  readonly text: number
  readonly linkEdit: number
  readonly signatureCommandAt: number
  /** Offset of the signature. */
  readonly dataAt: number
  readonly dataBytes: number
}

function layoutOf(executable: Buffer): Layout {
  assert(isMachO(executable), 'this is no Mach-O executable of 64 bits')
  const found: { [name: string]: number } = {}
  let at = HEADER_BYTES
  for (let i = executable.readUInt32LE(16); i > 0; i--) {
    const command = executable.readUInt32LE(at)
    if (command === LC_SEGMENT_64) {
      found[executable.toString('latin1', at + 8, at + 24).replace(/\0+$/, '')] = at
    }
    if (command === LC_CODE_SIGNATURE) found.signature = at
    at += executable.readUInt32LE(at + 4)
  }
  const { __TEXT: text, __LINKEDIT: linkEdit, signature } = found
  assert(
    text !== undefined && linkEdit !== undefined && signature !== undefined,
    'the executable has no room for a signature',
  )
  return {
    text,
    linkEdit,
    signatureCommandAt: signature,
    dataAt: executable.readUInt32LE(signature + 8),
    dataBytes: executable.readUInt32LE(signature + 12),
  }
}

/** Offset of the CodeDirectory, whose slot has the number 0. */
function directoryAt(blob: Buffer): number {
  for (let entry = 12; entry < 12 + 8 * blob.readUInt32BE(8); entry += 8) {
    if (blob.readUInt32BE(entry) !== 0) continue
    const at = blob.readUInt32BE(entry + 4)
    assert(blob.readUInt32BE(at) === CODE_DIRECTORY, 'the signature has no CodeDirectory')
    return at
  }
  throw new Error('the signature has no CodeDirectory')
}

function pageDigests(code: Buffer): Buffer {
  const digests: Buffer[] = []
  for (let at = 0; at < code.length; at += PAGE_BYTES) {
    digests.push(
      createHash('sha256')
        .update(code.subarray(at, at + PAGE_BYTES))
        .digest(),
    )
  }
  return Buffer.concat(digests)
}

function writeWords(target: Buffer, words: readonly number[]): void {
  for (const [i, word] of words.entries()) target.writeUInt32BE(word, i * 4)
}

function aligned(bytes: number, alignment: number): number {
  return Math.ceil(bytes / alignment) * alignment
}
