/**
 * A backup in a tar file, as `svc backup download` stores one, or as `tar` makes one of a target
 * directory. Nothing is extracted: a name is the place of its bytes in the file.
 */
import { open } from 'node:fs/promises'
import { Fault } from '../../errors/fault.ts'
import { absent } from './failures.ts'
import type { BackupFiles } from './targets.ts'

const BLOCK_BYTES = 512
const READ_BYTES = 256 * 1024
/** Longest name, and longest record of names: the longest name of a backup has 140 characters. */
const NAME_BYTES_MAX = 4 * 1024
/** The entries of a backup of a million files. */
const ENTRIES_MAX = 4_000_000

interface Entry {
  readonly offset: number
  readonly size: number
}

type FileHandle = Awaited<ReturnType<typeof open>>

export class TarTarget implements BackupFiles {
  readonly location: string
  readonly #entries: ReadonlyMap<string, Entry>
  /** The names directly inside of each directory. */
  readonly #directories = new Map<string, Set<string>>()

  private constructor(location: string, entries: ReadonlyMap<string, Entry>) {
    this.location = location
    this.#entries = entries
    for (const path of entries.keys()) {
      for (let end = path.length; end > 0; ) {
        const at = path.lastIndexOf('/', end - 1)
        const directory = at < 0 ? '' : path.slice(0, at)
        const names = this.#directories.get(directory) ?? new Set()
        this.#directories.set(directory, names)
        names.add(path.slice(at + 1, end))
        end = at
      }
    }
  }

  /** Reads the names of all entries. Raises BACKUP_CORRUPT and UNAVAILABLE. */
  static async open(path: string): Promise<TarTarget> {
    const handle = await guarded(() => open(path, 'r'))
    try {
      return new TarTarget(path, await readEntries(handle))
    } finally {
      await handle.close()
    }
  }

  async names(directory: string): Promise<string[]> {
    return [...(this.#directories.get(directory) ?? [])].sort()
  }

  async sizeOf(name: string): Promise<number | null> {
    return this.#entries.get(name)?.size ?? null
  }

  async *read(name: string): AsyncGenerator<Uint8Array> {
    const entry = this.#entries.get(name)
    if (entry === undefined) throw absent(name)
    const handle = await guarded(() => open(this.location, 'r'))
    try {
      for (let at = 0; at < entry.size; ) {
        const bytes = new Uint8Array(Math.min(READ_BYTES, entry.size - at))
        const { bytesRead } = await guarded(() =>
          handle.read(bytes, 0, bytes.length, entry.offset + at),
        )
        if (bytesRead === 0) throw truncated()
        yield bytes.subarray(0, bytesRead)
        at += bytesRead
      }
    } finally {
      await handle.close()
    }
  }
}

async function readEntries(handle: FileHandle): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>()
  const { size: end } = await guarded(() => handle.stat())
  let named: string | null = null
  for (let offset = 0; ; ) {
    const header = await readAt(handle, offset, BLOCK_BYTES)
    // A file that was cut off has no empty block at its end.
    if (header === null) throw truncated()
    if (header.every((byte) => byte === 0)) return entries
    const { name, size, type } = parseHeader(header)
    const content = offset + BLOCK_BYTES
    offset = content + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES
    if (content + size > end) throw truncated()
    if (type === 'x' || type === 'L') {
      if (size > NAME_BYTES_MAX) throw corruptTar('a name is too long')
      const bytes = (await readAt(handle, content, size)) ?? Buffer.alloc(0)
      named = type === 'x' ? extendedName(bytes) : bytes.toString('utf8').replace(/\0.*$/s, '')
      continue
    }
    const path = (named ?? name).replace(/^(?:\.\/)+/, '')
    named = null
    if (type !== '0' && type !== '\0') continue
    if (entries.size === ENTRIES_MAX) throw corruptTar('it has too many entries')
    entries.set(path, { offset: content, size })
  }
}

function parseHeader(header: Buffer): { name: string; size: number; type: string } {
  const text = (from: number, length: number) =>
    header.toString('utf8', from, from + length).replace(/\0.*$/s, '')
  const sum = Number.parseInt(text(148, 8).trim(), 8)
  let actual = 0
  for (let i = 0; i < BLOCK_BYTES; i++) actual += i >= 148 && i < 156 ? 0x20 : header[i]!
  if (sum !== actual) throw corruptTar('a header has another checksum')
  const prefix = text(257, 5) === 'ustar' ? text(345, 155) : ''
  const name = prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`
  return { name, size: sizeOf(header), type: header.toString('latin1', 156, 157) }
}

/** The size in octal digits, or as a number of 95 bits where the first bit is set. */
function sizeOf(header: Buffer): number {
  const digits = header.toString('latin1', 124, 136).replace(/[\0 ].*$/s, '')
  const isBinary = header[124] === 0x80
  const size = isBinary ? Number(header.readBigUInt64BE(128)) : Number.parseInt(digits, 8)
  if (!Number.isSafeInteger(size) || size < 0) throw corruptTar('an entry has no length')
  return size
}

/** Returns the path of a record of POSIX 1003.1-2001: lines of "<length> <name>=<value>". */
function extendedName(bytes: Buffer): string | null {
  return /(?:^|\n)\d+ path=([^\n]*)\n/.exec(bytes.toString('utf8'))?.[1] ?? null
}

async function readAt(handle: FileHandle, offset: number, length: number): Promise<Buffer | null> {
  const bytes = Buffer.alloc(length)
  const { bytesRead } = await guarded(() => handle.read(bytes, 0, length, offset))
  return bytesRead === length ? bytes : null
}

function truncated(): Fault {
  return corruptTar('it ends within an entry')
}

function corruptTar(reason: string): Fault {
  return new Fault('BACKUP_CORRUPT', { detail: `the tar file: ${reason}` })
}

async function guarded<T>(access: () => Promise<T>): Promise<T> {
  try {
    return await access()
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    if (typeof code !== 'string') throw cause
    throw new Fault('UNAVAILABLE', { cause, detail: `the tar file: ${code}` })
  }
}
