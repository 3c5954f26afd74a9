/**
 * Unpacks the archive of a release, whose digest the caller has verified. It holds regular files
 * alone: a link, a directory, a device, or a name that leads out of the archive rejects all of it.
 */
import { createReadStream } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { mkdir, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { untrusted } from './faults.ts'

const BLOCK = 512
/** The member that is the executable. */
export const EXECUTABLE = 'svc-server'
/** Members of an archive. */
const MEMBERS_MAX = 1_000
/** Bytes of the executable. */
const EXECUTABLE_BYTES_MAX = 512 * 1024 * 1024
/** Bytes of all other members together. */
const OTHER_BYTES_MAX = 64 * 1024 * 1024
/** Zero bytes that end an archive; programs pad it to a multiple of 10 KiB. */
const END_BYTES_MAX = 64 * 1024

const NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/

export interface UnpackTo {
  /** The file that becomes the executable; it must not exist. */
  readonly executable: string
  /** The directory of all other members; null to leave them out. */
  readonly others: string | null
}

/** Throws CLIENT_UPGRADE_UNTRUSTED for an archive that is cut or has another form. */
export async function unpackRelease(archive: string, to: UnpackTo): Promise<void> {
  const reader = new TarReader(to)
  try {
    await pipeline(createReadStream(archive), createGunzip(), async (source) => {
      for await (const chunk of source) await reader.read(chunk as Buffer)
    })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code?.startsWith('Z_')) throw untrusted('The archive is damaged or cut.', error)
    throw error
  } finally {
    await reader.close()
  }
  reader.requireEnd()
}

interface OpenMember {
  readonly file: FileHandle | null
  remaining: number
  padding: number
}

class TarReader {
  readonly #to: UnpackTo
  readonly #names = new Set<string>()
  #pending = Buffer.alloc(0)
  #member: OpenMember | null = null
  #otherBytes = 0
  #endBytes = 0

  constructor(to: UnpackTo) {
    this.#to = to
  }

  async read(chunk: Buffer): Promise<void> {
    let rest = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    while (rest.length > 0) {
      const used = this.#member === null ? await this.#header(rest) : await this.#content(rest)
      if (used === 0) break
      rest = rest.subarray(used)
    }
    this.#pending = Buffer.from(rest)
  }

  async close(): Promise<void> {
    const member = this.#member
    this.#member = null
    await member?.file?.close()
  }

  /** Throws unless the archive ended as a whole, with the executable in it. */
  requireEnd(): void {
    if (this.#pending.length > 0 || this.#endBytes < 2 * BLOCK) {
      throw untrusted('The archive is cut.')
    }
    if (!this.#names.has(EXECUTABLE)) throw untrusted(`The archive has no ${EXECUTABLE}.`)
  }

  async #header(bytes: Buffer): Promise<number> {
    if (bytes.length < BLOCK) return 0
    const block = bytes.subarray(0, BLOCK)
    if (block.every((byte) => byte === 0)) {
      this.#endBytes += BLOCK
      if (this.#endBytes > END_BYTES_MAX) throw untrusted('The archive does not end.')
      return BLOCK
    }
    if (this.#endBytes > 0) throw untrusted('The archive continues behind its end.')
    const { name, size } = this.#entry(block)
    const file = await this.#create(name)
    this.#member = { file, remaining: size, padding: (BLOCK - (size % BLOCK)) % BLOCK }
    if (size === 0) await this.close()
    return BLOCK
  }

  #entry(block: Buffer): { readonly name: string; readonly size: number } {
    const name = textOf(block, 0, 100)
    const size = numberOf(block, 124, 12)
    // A prefix would be a second place for a part of the name.
    const isPlain = block[156] === 0x30 && textOf(block, 345, 155) === ''
    if (!isPlain || size === null || numberOf(block, 148, 8) !== checksumOf(block)) {
      throw untrusted('The archive has a member that is not a regular file.')
    }
    if (!NAME.test(name)) throw untrusted('The archive has a member with a name that is not safe.')
    if (this.#names.has(name)) throw untrusted(`The archive has ${name} twice.`)
    this.#names.add(name)
    if (name !== EXECUTABLE) this.#otherBytes += size
    const isTooLarge = name === EXECUTABLE && size > EXECUTABLE_BYTES_MAX
    if (isTooLarge || this.#otherBytes > OTHER_BYTES_MAX || this.#names.size > MEMBERS_MAX) {
      throw untrusted('The archive is larger than a release can be.')
    }
    return { name, size }
  }

  async #create(name: string): Promise<FileHandle | null> {
    const { executable, others } = this.#to
    if (name === EXECUTABLE) return open(executable, 'wx', 0o700)
    if (others === null) return null
    const path = join(others, name)
    await mkdir(dirname(path), { recursive: true })
    return open(path, 'wx', 0o644)
  }

  async #content(bytes: Buffer): Promise<number> {
    const member = this.#member!
    const length = Math.min(member.remaining, bytes.length)
    for (let at = 0; member.file !== null && at < length; ) {
      at += (await member.file.write(bytes, at, length - at)).bytesWritten
    }
    member.remaining -= length
    const skipped = Math.min(member.padding, bytes.length - length)
    if (member.remaining === 0) member.padding -= skipped
    if (member.remaining === 0 && member.padding === 0) {
      await member.file?.sync()
      await this.close()
    }
    return length + (member.remaining === 0 ? skipped : 0)
  }
}

function textOf(block: Buffer, at: number, length: number): string {
  const field = block.toString('latin1', at, at + length)
  const end = field.indexOf('\0')
  return end === -1 ? field : field.slice(0, end)
}

/** Reads an octal number; null for another form, such as the binary one of large files. */
function numberOf(block: Buffer, at: number, length: number): number | null {
  const text = textOf(block, at, length).trim()
  return /^[0-7]{1,11}$/.test(text) ? Number.parseInt(text, 8) : null
}

/** The sum of a header, in which the field of the sum itself counts as spaces. */
function checksumOf(block: Buffer): number {
  return block.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0)
}
