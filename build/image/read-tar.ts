/** Reads tar archives that dpkg-deb and build/archives.ts write. */
import { assert } from '../../src/errors/assert.ts'
import type { Member } from '../archives.ts'

const BLOCK = 512
const TYPES: Readonly<Record<string, Member['type']>> = {
  '\0': 'file',
  '0': 'file',
  '1': 'hardlink',
  '2': 'symlink',
  '5': 'directory',
}
/** Types of GNU tar: the block is the name, or the target, of the member that follows. */
const LONG_NAME = 'L'
const LONG_TARGET = 'K'

/** Returns the members in their order. Throws for types that neither program writes. */
export function readTar(archive: Uint8Array): Member[] {
  const buffer = Buffer.from(archive.buffer, archive.byteOffset, archive.byteLength)
  const members: Member[] = []
  let longName = ''
  let longTarget = ''
  for (let at = 0; at + BLOCK <= buffer.length && buffer[at] !== 0; ) {
    const text = (from: number, length: number): string => {
      const bytes = buffer.subarray(at + from, at + from + length)
      const end = bytes.indexOf(0)
      return bytes.toString('latin1', 0, end === -1 ? length : end)
    }
    const octal = (from: number, length: number) => Number.parseInt(text(from, length), 8)
    const size = octal(124, 12)
    const bytes = buffer.subarray(at + BLOCK, at + BLOCK + size)
    const code = String.fromCharCode(buffer[at + 156]!)
    const long = (): string => bytes.toString('latin1').replace(/\0+$/, '')
    if (code === LONG_NAME) longName = long()
    else if (code === LONG_TARGET) longTarget = long()
    else {
      const type = TYPES[code]
      assert(type !== undefined, `a tar member has the unknown type ${JSON.stringify(code)}`)
      const path = longName || text(0, 100)
      const target = longTarget || text(157, 100)
      members.push({ type, path, mode: octal(100, 8), owner: octal(108, 8), bytes, target })
      longName = ''
      longTarget = ''
    }
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK
  }
  return members
}
