/** Writes ZIP archives for tests, whole ones and hostile ones. */
import { crc32, deflateRawSync } from 'node:zlib'

export interface ZipFile {
  readonly name: string
  readonly content: string | Uint8Array
  /** Replaces what the central directory says. */
  readonly says?: {
    readonly bytes?: number
    readonly packedBytes?: number
    readonly crc?: number
    readonly offset?: number
    readonly flags?: number
    readonly method?: number
    readonly mode?: number
  }
  /** True if the content is not compressed. */
  readonly stored?: boolean
}

/** Returns an archive as tools for streams write it, with sizes in the central directory alone. */
export function zipOf(files: readonly ZipFile[], { zip64 = false } = {}): Uint8Array {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const { name, content, says = {}, stored = false } of files) {
    const bytes = Buffer.from(content)
    const packed = stored ? bytes : deflateRawSync(bytes)
    const head = Buffer.alloc(30)
    head.writeUInt32LE(0x04034b50, 0)
    head.writeUInt16LE(8, 6)
    const nameBytes = Buffer.from(name)
    head.writeUInt16LE(nameBytes.length, 26)
    parts.push(head, nameBytes, packed)
    const numbers = [
      says.bytes ?? bytes.length,
      says.packedBytes ?? packed.length,
      says.offset ?? offset,
    ] as const
    const extra = Buffer.alloc(zip64 ? 28 : 0)
    if (zip64) {
      extra.writeUInt16LE(1, 0)
      extra.writeUInt16LE(24, 2)
      for (const [i, number] of numbers.entries()) extra.writeBigUInt64LE(BigInt(number), 4 + 8 * i)
    }
    const entry = Buffer.alloc(46)
    entry.writeUInt32LE(0x02014b50, 0)
    entry.writeUInt16LE(3 << 8, 4)
    entry.writeUInt16LE(says.flags ?? 8, 8)
    entry.writeUInt16LE(says.method ?? (stored ? 0 : 8), 10)
    entry.writeUInt32LE(says.crc ?? crc32(bytes), 16)
    entry.writeUInt32LE(zip64 ? 0xffffffff : numbers[1], 20)
    entry.writeUInt32LE(zip64 ? 0xffffffff : numbers[0], 24)
    entry.writeUInt16LE(nameBytes.length, 28)
    entry.writeUInt16LE(extra.length, 30)
    entry.writeUInt32LE(((says.mode ?? 0o100644) << 16) >>> 0, 38)
    entry.writeUInt32LE(zip64 ? 0xffffffff : numbers[2], 42)
    directory.push(entry, nameBytes, extra)
    offset += head.length + nameBytes.length + packed.length
  }
  const entries = Buffer.concat(directory)
  const ends: Buffer[] = []
  if (zip64) {
    const end64 = Buffer.alloc(56)
    end64.writeUInt32LE(0x06064b50, 0)
    end64.writeBigUInt64LE(44n, 4)
    end64.writeBigUInt64LE(BigInt(files.length), 24)
    end64.writeBigUInt64LE(BigInt(files.length), 32)
    end64.writeBigUInt64LE(BigInt(entries.length), 40)
    end64.writeBigUInt64LE(BigInt(offset), 48)
    const locator = Buffer.alloc(20)
    locator.writeUInt32LE(0x07064b50, 0)
    locator.writeBigUInt64LE(BigInt(offset + entries.length), 8)
    ends.push(end64, locator)
  }
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(Math.min(files.length, 0xffff), 10)
  end.writeUInt32LE(zip64 ? 0xffffffff : entries.length, 12)
  end.writeUInt32LE(zip64 ? 0xffffffff : offset, 16)
  return Buffer.concat([...parts, entries, ...ends, end])
}
