/** The files of a backup as one tar archive (POSIX ustar), encrypted as they are. */

import { collect } from '../format/age-files.ts'
import { blobPath, type HistoryAddress, segmentPath } from '../format/chain.ts'
import { corrupt } from '../format/segments.ts'
import type { BackupFiles } from '../targets/targets.ts'

const BLOCK_BYTES = 512
/** Bytes of a piece, unless a chunk of a file is longer. */
const PIECE_BYTES = 128 * 1024
/** The fields of a name: the directories in the second one, without the slash between. */
const NAME_BYTES = 100
const PREFIX_BYTES = 155

export interface ArchivedBackup extends HistoryAddress {
  readonly firstSegment: number
  readonly lastSegment: number
}

/**
 * Yields the archive in pieces. It has the segments from the first to the last, of which some may
 * belong to other backups, as the chain needs them, and the blobs that they name. Raises
 * UNAVAILABLE, and BACKUP_CORRUPT for a file that is missing.
 */
export async function* archiveOf(
  target: BackupFiles,
  backup: ArchivedBackup,
): AsyncGenerator<Uint8Array> {
  let gathered: Uint8Array[] = []
  let length = 0
  for await (const chunk of blocksOf(target, backup)) {
    gathered.push(chunk)
    length += chunk.length
    if (length < PIECE_BYTES) continue
    yield Buffer.concat(gathered)
    gathered = []
    length = 0
  }
  // Two empty blocks end an archive: one that was cut off has none.
  yield Buffer.concat([...gathered, new Uint8Array(2 * BLOCK_BYTES)])
}

async function* blocksOf(target: BackupFiles, backup: ArchivedBackup): AsyncGenerator<Uint8Array> {
  for await (const name of namesOf(target, backup)) {
    const size = await target.sizeOf(name)
    if (size === null) throw corrupt(name, 'it is missing')
    yield headerOf(name, size)
    let length = 0
    for await (const chunk of target.read(name)) {
      length += chunk.length
      if (length > size) break
      yield chunk
    }
    // The header has promised the length.
    if (length !== size) throw corrupt(name, 'its length has changed')
    yield new Uint8Array(-size & (BLOCK_BYTES - 1))
  }
}

async function* namesOf(target: BackupFiles, backup: ArchivedBackup): AsyncGenerator<string> {
  const blobs = new Set<string>()
  for (let number = backup.firstSegment; number <= backup.lastSegment; number += 1) {
    const path = segmentPath(backup, number)
    yield `${path}.age`
    if ((await target.sizeOf(`${path}.blobs`)) !== null) {
      yield `${path}.blobs`
      const text = Buffer.from(await collect(target.read(`${path}.blobs`))).toString('latin1')
      for (const name of text.split('\n')) if (name !== '') blobs.add(name)
    }
    yield `${path}.json`
  }
  for (const name of blobs) yield blobPath(backup, name)
}

/** Has no owner and no time: the archive of a backup is always the same. */
function headerOf(name: string, size: number): Uint8Array {
  const header = Buffer.alloc(BLOCK_BYTES)
  const slash = name.lastIndexOf('/')
  const prefix = name.slice(0, slash)
  header.write(name.slice(slash + 1), 0, NAME_BYTES, 'latin1')
  header.write('0000600\0', 100, 'latin1')
  header.write('0000000\0', 108, 'latin1')
  header.write('0000000\0', 116, 'latin1')
  header.write(`${size.toString(8).padStart(11, '0')}\0`, 124, 'latin1')
  header.write('00000000000\0', 136, 'latin1')
  header.write('        0', 148, 'latin1')
  header.write('ustar\x0000', 257, 'latin1')
  header.write(prefix, 345, PREFIX_BYTES, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return header
}
