/** Writes deterministic .tar.gz archives: the same files give the same bytes on every machine. */
import { gzipSync } from 'node:zlib'
import { assert } from '../src/errors/assert.ts'

export interface Entry {
  /** The path, with slashes: at most 100 ASCII characters. */
  readonly path: string
  readonly bytes: Uint8Array
  readonly executable: boolean
}

const BLOCK = 512

export function tarGzip(entries: readonly Entry[]): Buffer {
  const sorted = [...entries].sort((a, b) => (a.path < b.path ? -1 : 1))
  const parts = sorted.flatMap((entry) => {
    const padding = (BLOCK - (entry.bytes.length % BLOCK)) % BLOCK
    return [header(entry), Buffer.from(entry.bytes), Buffer.alloc(padding)]
  })
  const packed = gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]), { level: 9 })
  // The byte that names the packing operating system. It is the only one that differs by machine.
  packed[9] = 255
  return packed
}

/** Returns a ustar header with owner root and modification time 0. */
function header(entry: Entry): Buffer {
  assert(/^[\x21-\x7e]{1,100}$/.test(entry.path), `${entry.path} does not fit a tar header`)
  const block = Buffer.alloc(BLOCK)
  const octal = (value: number, at: number, width: number): void => {
    block.write(`${value.toString(8).padStart(width - 1, '0')}\0`, at, 'latin1')
  }
  block.write(entry.path, 0, 'latin1')
  octal(entry.executable ? 0o755 : 0o644, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(entry.bytes.length, 124, 12)
  octal(0, 136, 12)
  block.write('        ', 148, 'latin1')
  block.write('0', 156, 'latin1')
  block.write('ustar\x0000root', 257, 'latin1')
  block.write('root', 297, 'latin1')
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return block
}
