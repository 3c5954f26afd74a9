/** Writes deterministic tar archives: the same files give the same bytes on every machine. */
import { gzipSync } from 'node:zlib'
import { assert } from '../src/errors/assert.ts'

export interface Entry {
  /** The path, with slashes: at most 100 ASCII characters. */
  readonly path: string
  readonly bytes: Uint8Array
  readonly executable: boolean
}

/** One member of a tar archive, with everything that its header says. */
export interface Member {
  readonly type: 'file' | 'directory' | 'symlink' | 'hardlink'
  /** The path, with slashes: at most 100 ASCII characters. */
  readonly path: string
  readonly mode: number
  /** Number of the owner and of its group; 0 for root. */
  readonly owner: number
  /** Content of a file; empty for others. */
  readonly bytes: Uint8Array
  /** Target of a link; empty for others. */
  readonly target: string
}

const BLOCK = 512
const TYPES = { file: '0', hardlink: '1', symlink: '2', directory: '5' } as const

export function tarGzip(entries: readonly Entry[]): Buffer {
  const members = entries.map(({ path, bytes, executable }) =>
    file(path, bytes, executable ? 0o755 : 0o644),
  )
  return gzip(
    tar(
      members.sort((a, b) => (a.path < b.path ? -1 : 1)),
      0,
    ),
  )
}

/** Returns a regular file of root. */
export function file(path: string, bytes: Uint8Array | string, mode = 0o644): Member {
  return { type: 'file', path, mode, owner: 0, bytes: Buffer.from(bytes), target: '' }
}

/** Returns an archive with the members in their order, all modified at `time` (Unix seconds). */
export function tar(members: readonly Member[], time: number): Buffer {
  const parts = members.flatMap((member) => {
    const padding = (BLOCK - (member.bytes.length % BLOCK)) % BLOCK
    return [header(member, time), Buffer.from(member.bytes), Buffer.alloc(padding)]
  })
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)])
}

export function gzip(bytes: Uint8Array): Buffer {
  const packed = gzipSync(bytes, { level: 9 })
  // The byte that names the packing operating system. It is the only one that differs by machine.
  packed[9] = 255
  return packed
}

/** Returns a ustar header. */
function header(member: Member, time: number): Buffer {
  const { path, target, owner } = member
  assert(/^[\x21-\x7e]{1,100}$/.test(path), `${path} does not fit a tar header`)
  assert(/^[\x21-\x7e]{0,100}$/.test(target), `${target} does not fit a tar header`)
  const block = Buffer.alloc(BLOCK)
  const octal = (value: number, at: number, width: number): void => {
    block.write(`${value.toString(8).padStart(width - 1, '0')}\0`, at, 'latin1')
  }
  block.write(path, 0, 'latin1')
  octal(member.mode, 100, 8)
  octal(owner, 108, 8)
  octal(owner, 116, 8)
  octal(member.bytes.length, 124, 12)
  octal(time, 136, 12)
  block.write('        ', 148, 'latin1')
  block.write(TYPES[member.type], 156, 'latin1')
  block.write(target, 157, 'latin1')
  block.write('ustar\x0000', 257, 'latin1')
  // Names win over numbers when an archive is unpacked, so only root has one.
  if (owner === 0) for (const at of [265, 297]) block.write('root', at, 'latin1')
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return block
}
