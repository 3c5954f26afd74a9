/** A target that counts what is written to it, and leaves space free on a disk. */
import { statfs } from 'node:fs/promises'
import { Fault } from '../../errors/fault.ts'
import type { BackupTarget } from '../targets/targets.ts'

/** Bytes that are written between two looks at the free space. */
const LOOK_BYTES = 8 * 1024 * 1024

export interface FreeSpace {
  /** A directory of the disk. */
  readonly directory: string
  readonly floorBytes: number
}

/** `space` is null for a disk that backups may fill. Writes raise UNAVAILABLE below the floor. */
export function guardedTarget(
  target: BackupTarget,
  onWritten: (bytes: number) => void,
  space: FreeSpace | null,
): BackupTarget {
  return {
    location: target.location,
    names: (directory) => target.names(directory),
    sizeOf: (name) => target.sizeOf(name),
    read: (name) => target.read(name),
    remove: (name) => target.remove(name),
    removeDirectory: (name) => target.removeDirectory(name),
    write: (name, bytes) => target.write(name, guarded(bytes, onWritten, space)),
  }
}

async function* guarded(
  bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  onWritten: (bytes: number) => void,
  space: FreeSpace | null,
): AsyncGenerator<Uint8Array> {
  let untilLook = 0
  for await (const piece of bytes) {
    untilLook -= piece.length
    if (untilLook < 0) {
      await requireSpace(space)
      untilLook = LOOK_BYTES
    }
    onWritten(piece.length)
    yield piece
  }
}

async function requireSpace(space: FreeSpace | null): Promise<void> {
  if (space === null) return
  const { bavail, bsize } = await statfs(space.directory)
  if (bavail * bsize - LOOK_BYTES >= space.floorBytes) return
  throw new Fault('UNAVAILABLE', { detail: 'the disk of the Product root has too little space' })
}
