/**
 * Adds the signature of an OpenPGP key to an RPM, in the header of signatures, where `rpm --import`
 * and `rpm -K` expect it. It covers the header of the package, which has the digest of the payload.
 * A signature has its time, so that a rebuild takes it from the published package.
 */
import { assert } from '../../src/errors/assert.ts'

const LEAD_BYTES = 96
const LEAD_MAGIC = 0xedabeedb
/** The magic of a header, with its version. */
const HEADER_MAGIC = 0x8eade801
const INTRO_BYTES = 16
const ENTRY_BYTES = 16
/** The signature header is padded to a multiple of it. */
const ALIGNMENT = 8
/** The entry that covers all others of a signature header. */
const REGION_TAG = 62
const BINARY = 7
/** Tags of signatures over the header: of RSA, and of all other algorithms. */
const RSA_TAG = 268
const OTHER_TAG = 267
const RSA_ALGORITHM = 1
/** Bytes of one value by type; the others are texts that end with NUL. */
const SIZES: Readonly<Record<number, number>> = { 1: 1, 2: 1, 3: 2, 4: 4, 5: 8, [BINARY]: 1 }

interface Entry {
  readonly tag: number
  readonly type: number
  readonly count: number
  readonly data: Buffer
}

interface Signatures {
  readonly entries: readonly Entry[]
  /** Offset of the header of the package, which begins after the padding. */
  readonly end: number
}

/** Returns the part of a package that a signature covers. */
export function signedPart(archive: Buffer): Buffer {
  const { end } = readSignatures(archive)
  return archive.subarray(end, end + headerBytes(archive, end))
}

/** Returns the signature of a package; null if it has none. */
export function signatureOf(archive: Buffer): Buffer | null {
  return readSignatures(archive).entries.find(isSignature)?.data ?? null
}

/** Returns the package with a signature in place of the one that it may have. */
export function withSignature(archive: Buffer, signature: Buffer): Buffer {
  const { entries, end } = readSignatures(archive)
  const own = { tag: signatureTag(signature), type: BINARY, count: signature.length }
  const all = [...entries.filter((each) => !isSignature(each)), { ...own, data: signature }]
  return Buffer.concat([
    archive.subarray(0, LEAD_BYTES),
    writeSignatures(all.sort((a, b) => a.tag - b.tag)),
    archive.subarray(end),
  ])
}

function isSignature({ tag }: Entry): boolean {
  return tag === RSA_TAG || tag === OTHER_TAG
}

/** Returns the tag for the algorithm that a packet of a signature of version 4 names. */
function signatureTag(packet: Buffer): number {
  const first = packet[0] ?? 0
  // The new format has the length in one byte below 192 and in two below 224; the old one says how
  // many bytes it has.
  const isNew = (first & 0x40) !== 0
  const lengthBytes = isNew ? ((packet[1] ?? 0) < 192 ? 1 : 2) : 2 ** (first & 3)
  const [version, , algorithm] = packet.subarray(1 + lengthBytes)
  const type = isNew ? first & 0x3f : (first >> 2) & 0xf
  assert(type === 2 && version === 4, 'this is no OpenPGP signature of version 4')
  return algorithm === RSA_ALGORITHM ? RSA_TAG : OTHER_TAG
}

function headerBytes(archive: Buffer, at: number): number {
  const isHeader = archive.length >= at + INTRO_BYTES && archive.readUInt32BE(at) === HEADER_MAGIC
  assert(isHeader, 'this is no RPM: a header is missing')
  return INTRO_BYTES + archive.readUInt32BE(at + 8) * ENTRY_BYTES + archive.readUInt32BE(at + 12)
}

function readSignatures(archive: Buffer): Signatures {
  const isRpm = archive.length > LEAD_BYTES && archive.readUInt32BE(0) === LEAD_MAGIC
  assert(isRpm, 'this is no RPM: its lead is missing')
  const length = headerBytes(archive, LEAD_BYTES)
  const header = archive.subarray(LEAD_BYTES, LEAD_BYTES + length)
  const count = header.readUInt32BE(8)
  const data = header.subarray(INTRO_BYTES + count * ENTRY_BYTES)
  const entries: Entry[] = []
  for (let index = 0; index < count; index++) {
    const at = INTRO_BYTES + index * ENTRY_BYTES
    const [tag, type] = [header.readUInt32BE(at), header.readUInt32BE(at + 4)]
    const [offset, values] = [header.readUInt32BE(at + 8), header.readUInt32BE(at + 12)]
    if (tag === REGION_TAG) continue
    const end = valuesEnd(data, offset, type, values)
    assert(end <= data.length, `the entry ${tag} of the signatures is not whole`)
    entries.push({ tag, type, count: values, data: data.subarray(offset, end) })
  }
  return { entries, end: LEAD_BYTES + length + padding(length) }
}

function valuesEnd(data: Buffer, offset: number, type: number, count: number): number {
  const size = SIZES[type]
  if (size !== undefined) return offset + size * count
  let end = offset
  for (let text = 0; text < count; text++) {
    const terminator = data.indexOf(0, end)
    assert(terminator !== -1, 'a text of the signatures has no end')
    end = terminator + 1
  }
  return end
}

function padding(length: number): number {
  return (ALIGNMENT - (length % ALIGNMENT)) % ALIGNMENT
}

/** Writes the header with the region first, whose trailer stands after all other data. */
function writeSignatures(entries: readonly Entry[]): Buffer {
  const count = entries.length + 1
  const parts: Buffer[] = []
  let length = 0
  const append = (data: Buffer, alignment: number): number => {
    const gap = (alignment - (length % alignment)) % alignment
    parts.push(Buffer.alloc(gap), data)
    length += gap + data.length
    return length - data.length
  }
  const rows = entries.map(({ tag, type, count: values, data }) =>
    row(tag, type, append(data, SIZES[type] ?? 1), values),
  )
  const trailer = row(REGION_TAG, BINARY, -count * ENTRY_BYTES, ENTRY_BYTES)
  const region = row(REGION_TAG, BINARY, append(trailer, 1), ENTRY_BYTES)
  const intro = Buffer.alloc(INTRO_BYTES)
  intro.writeUInt32BE(HEADER_MAGIC, 0)
  intro.writeUInt32BE(count, 8)
  intro.writeUInt32BE(length, 12)
  const header = Buffer.concat([intro, region, ...rows, ...parts])
  return Buffer.concat([header, Buffer.alloc(padding(header.length))])
}

function row(tag: number, type: number, offset: number, count: number): Buffer {
  const bytes = Buffer.alloc(ENTRY_BYTES)
  bytes.writeUInt32BE(tag, 0)
  bytes.writeUInt32BE(type, 4)
  bytes.writeInt32BE(offset, 8)
  bytes.writeUInt32BE(count, 12)
  return bytes
}
