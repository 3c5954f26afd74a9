/** The changes of files that an upgrade makes. Tests end the process before and after each. */
import {
  closeSync,
  copyFileSync,
  cpSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { writeFileAtomic } from '../../system/files.ts'
import { errorCode, withPath } from '../files.ts'

export interface Disk {
  /** Gives a file a second name, or copies it where the file system has no links. */
  link(from: string, to: string): void
  /** Renames durably, over what has the name. */
  rename(from: string, to: string): void
  /** Writes a file atomically. */
  write(path: string, bytes: Uint8Array | string, mode: number): void
  /** Copies a directory with all that it holds. */
  copy(from: string, to: string): void
  /** Removes a file or a directory, if it is there. */
  remove(path: string): void
}

export const REAL_DISK: Disk = {
  link: (from, to) =>
    withPath(to, () => {
      try {
        linkSync(from, to)
      } catch (error) {
        if (errorCode(error) === 'EEXIST') throw error
        copyFileSync(from, to)
        sync(to)
      }
    }),
  rename: (from, to) =>
    withPath(to, () => {
      renameSync(from, to)
      sync(dirname(to))
    }),
  write: (path, bytes, mode) => withPath(path, () => writeFileAtomic(path, bytes, { mode })),
  copy: (from, to) => withPath(to, () => cpSync(from, to, { recursive: true })),
  remove: (path) => withPath(path, () => rmSync(path, { recursive: true, force: true })),
}

function sync(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/**
 * Makes `to` another name of the file `from`, in one step: programs see the old or the new file,
 * and one that runs keeps the file that it was started from.
 */
export function putFile(disk: Disk, from: string, to: string): void {
  // A rename of one name of a file over another name of the same file leaves both.
  if (isOneFile(from, to)) return
  const fresh = join(dirname(to), `.${basename(to)}.fresh`)
  disk.remove(fresh)
  disk.link(from, fresh)
  disk.rename(fresh, to)
}

function isOneFile(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }))
  return a !== undefined && a.ino === b?.ino && a.dev === b.dev
}
