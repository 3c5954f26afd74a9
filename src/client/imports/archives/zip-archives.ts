/**
 * Reads ZIP archives by their central directory (APPNOTE 6.3.10, with ZIP64). Archives are
 * untrusted: entries that overlap, links, encrypted entries, names that leave the archive, and
 * contents that differ from what the directory says are rejected.
 */
import { closeSync, createReadStream, fstatSync, openSync, readSync } from 'node:fs'
import { createInflateRaw } from 'node:zlib'
import { withPath } from '../../files.ts'
import { Crc32 } from './crc32.ts'
import { exportInvalid } from './export-fault.ts'
import { EXPORT_FILES_MAX, type ExportFiles } from './export-files.ts'
import { checkedName } from './file-names.ts'

const END_SIGNATURE = 0x06054b50
const END_BYTES = 22
const COMMENT_BYTES_MAX = 65_535
const END64_LOCATOR_SIGNATURE = 0x07064b50
const END64_LOCATOR_BYTES = 20
const END64_SIGNATURE = 0x06064b50
const END64_BYTES = 56
const ENTRY_SIGNATURE = 0x02014b50
const ENTRY_BYTES = 46
const LOCAL_SIGNATURE = 0x04034b50
const LOCAL_BYTES = 30
const ZIP64_FIELD = 1
const UNKNOWN_32 = 0xffffffff
const ENCRYPTED = 1
const STORED = 0
const DEFLATED = 8
const FILE_TYPE = 0o170000
const LINK_TYPE = 0o120000
const DIRECTORY_BYTES_MAX = 512 * 1024 * 1024
/** Bytes that an archive of any size may have when it is unpacked. */
const UNPACKED_BYTES_MIN = 1024 ** 3
/**
 * Text such as JSON lines is seldom compressed to less than a fiftieth.
 * @limit Client: times the size of an archive that its content may have, and 1 GiB in any case
 */
export const UNPACKED_RATIO_MAX = 200

interface Entry {
  readonly name: string
  readonly method: number
  readonly crc: number
  readonly packedBytes: number
  readonly bytes: number
  readonly offset: number
}

/** Opens an archive. Throws CLIENT_FILE_FAILED and CLIENT_EXPORT_INVALID. */
export function openZip(path: string): ExportFiles {
  const file = withPath(path, () => openSync(path, 'r'))
  try {
    const archiveBytes = fstatSync(file).size
    const entries = entriesOf(file, archiveBytes)
    checkSizes(entries, archiveBytes)
    const byName = new Map(entries.map((entry) => [entry.name, entry]))
    return {
      names: [...byName.keys()].sort(),
      has: (name) => byName.has(name),
      sizeOf: (name) => byName.get(name)!.bytes,
      read: (name) => contentOf({ path, file }, byName.get(name)!),
      close: () => closeSync(file),
    }
  } catch (error) {
    closeSync(file)
    throw error
  }
}

function entriesOf(file: number, archiveBytes: number): readonly Entry[] {
  const { count, bytes, offset } = directoryOf(file, archiveBytes)
  if (count > EXPORT_FILES_MAX) {
    throw exportInvalid(`The archive has more than ${EXPORT_FILES_MAX} files.`)
  }
  if (bytes > DIRECTORY_BYTES_MAX || offset + bytes > archiveBytes) throw damaged()
  const directory = readAt(file, offset, bytes)
  const entries: Entry[] = []
  const names = new Set<string>()
  let at = 0
  for (let i = 0; i < count; i++) {
    if (at + ENTRY_BYTES > directory.length) throw damaged()
    if (directory.readUInt32LE(at) !== ENTRY_SIGNATURE) throw damaged()
    const nameBytes = directory.readUInt16LE(at + 28)
    const extraBytes = directory.readUInt16LE(at + 30)
    const end = at + ENTRY_BYTES + nameBytes + extraBytes
    if (end > directory.length) throw damaged()
    const raw = nameIn(directory.subarray(at + ENTRY_BYTES, at + ENTRY_BYTES + nameBytes))
    if (!raw.endsWith('/')) {
      const name = checkedName(raw)
      if (names.has(name)) throw exportInvalid(`The archive has ${name} twice.`)
      names.add(name)
      const extra = directory.subarray(at + ENTRY_BYTES + nameBytes, end)
      entries.push(entryOf(directory.subarray(at, end), extra, name))
    }
    at = end + directory.readUInt16LE(at + 32)
  }
  return entries
}

/** Finds the central directory from the end of the archive. */
function directoryOf(file: number, archiveBytes: number) {
  const tailBytes = Math.min(archiveBytes, END_BYTES + COMMENT_BYTES_MAX)
  const tail = readAt(file, archiveBytes - tailBytes, tailBytes)
  let at = tail.length - END_BYTES
  while (at >= 0 && tail.readUInt32LE(at) !== END_SIGNATURE) at -= 1
  if (at < 0) throw exportInvalid('The file is no ZIP archive, or its end is missing.')
  const end = {
    count: tail.readUInt16LE(at + 10),
    bytes: tail.readUInt32LE(at + 12),
    offset: tail.readUInt32LE(at + 16),
  }
  const locatorAt = archiveBytes - tailBytes + at - END64_LOCATOR_BYTES
  if (locatorAt < 0) return end
  const locator = readAt(file, locatorAt, END64_LOCATOR_BYTES)
  if (locator.readUInt32LE(0) !== END64_LOCATOR_SIGNATURE) return end
  const end64 = readAt(file, numberAt(locator, 8), END64_BYTES)
  if (end64.readUInt32LE(0) !== END64_SIGNATURE) throw damaged()
  return {
    count: numberAt(end64, 32),
    bytes: numberAt(end64, 40),
    offset: numberAt(end64, 48),
  }
}

function entryOf(header: Buffer, extra: Buffer, name: string): Entry {
  const flags = header.readUInt16LE(8)
  const method = header.readUInt16LE(10)
  const isUnix = header.readUInt16LE(4) >> 8 === 3
  const mode = header.readUInt32LE(38) >>> 16
  if (flags & ENCRYPTED) throw exportInvalid(`${name} is encrypted.`)
  if (isUnix && (mode & FILE_TYPE) === LINK_TYPE) throw exportInvalid(`${name} is a link.`)
  if (method !== STORED && method !== DEFLATED) {
    throw exportInvalid(`${name} has the compression method ${method}, which is not supported.`)
  }
  const sizes = [header.readUInt32LE(24), header.readUInt32LE(20), header.readUInt32LE(42)]
  const [bytes, packedBytes, offset] = withZip64(sizes, extra)
  if (method === STORED && bytes !== packedBytes) throw damaged()
  return { name, method, crc: header.readUInt32LE(16), bytes, packedBytes, offset }
}

/** Replaces the numbers that 32 bits cannot hold by those of the ZIP64 field, in its order. */
function withZip64(numbers: readonly number[], extra: Buffer): [number, number, number] {
  let field: Buffer = Buffer.alloc(0)
  for (let at = 0; at + 4 <= extra.length; ) {
    const length = extra.readUInt16LE(at + 2)
    if (extra.readUInt16LE(at) === ZIP64_FIELD) field = extra.subarray(at + 4, at + 4 + length)
    at += 4 + length
  }
  let at = 0
  return numbers.map((number) => {
    if (number !== UNKNOWN_32) return number
    if (at + 8 > field.length) throw damaged()
    at += 8
    return numberAt(field, at - 8)
  }) as [number, number, number]
}

/** Rejects entries that share bytes, which multiply what a small archive unpacks to. */
function checkSizes(entries: readonly Entry[], archiveBytes: number): void {
  let end = 0
  let unpacked = 0
  for (const entry of entries.toSorted((a, b) => a.offset - b.offset)) {
    if (entry.offset < end) throw exportInvalid('Files of the archive overlap.')
    end = entry.offset + LOCAL_BYTES + Buffer.byteLength(entry.name) + entry.packedBytes
    if (end > archiveBytes) throw damaged()
    unpacked += entry.bytes
  }
  if (unpacked > Math.max(UNPACKED_BYTES_MIN, archiveBytes * UNPACKED_RATIO_MAX)) {
    throw exportInvalid(`The archive would unpack to ${unpacked} bytes, which is too much.`)
  }
}

async function* contentOf(
  { path, file }: { readonly path: string; readonly file: number },
  { name, method, crc, packedBytes, bytes, offset }: Entry,
): AsyncGenerator<Uint8Array> {
  const local = readAt(file, offset, LOCAL_BYTES)
  if (local.readUInt32LE(0) !== LOCAL_SIGNATURE) throw damaged()
  const start = offset + LOCAL_BYTES + local.readUInt16LE(26) + local.readUInt16LE(28)
  const sum = new Crc32()
  let read = 0
  if (packedBytes > 0) {
    const packed = createReadStream(path, { start, end: start + packedBytes - 1 })
    const inflate = method === DEFLATED ? createInflateRaw() : null
    if (inflate !== null) {
      packed.on('error', (error) => inflate.destroy(error))
      packed.pipe(inflate)
    }
    try {
      for await (const chunk of (inflate ?? packed) as AsyncIterable<Uint8Array>) {
        read += chunk.length
        if (read > bytes) break
        sum.update(chunk)
        yield chunk
      }
    } catch (error) {
      throw exportInvalid(`${name} is damaged.`, error)
    } finally {
      packed.destroy()
      inflate?.destroy()
    }
  }
  if (read !== bytes || sum.digest() !== crc) {
    throw exportInvalid(`${name} has another content than the archive says.`)
  }
}

function nameIn(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw exportInvalid('The archive has a name that is no UTF-8.', error)
  }
}

/** Reads a number of 64 bits. Throws CLIENT_EXPORT_INVALID beyond 2^53. */
function numberAt(bytes: Buffer, at: number): number {
  const number = Number(bytes.readBigUInt64LE(at))
  if (!Number.isSafeInteger(number)) throw damaged()
  return number
}

function readAt(file: number, at: number, length: number): Buffer {
  const buffer = Buffer.alloc(length)
  for (let done = 0; done < length; ) {
    const count = at < 0 ? 0 : readSync(file, buffer, done, length - done, at + done)
    if (count === 0) throw damaged()
    done += count
  }
  return buffer
}

function damaged() {
  return exportInvalid('The archive is damaged.')
}
