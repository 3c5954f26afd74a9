/**
 * Downloads into a file beside the target, whose name contains the digest of the object. An
 * interrupted download continues where it ended; a file appears under its name whole and verified.
 */
import { createHash } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { Fault } from '../../../errors/fault.ts'
import { FileFailure } from '../../../system/files.ts'
import type { ObjectField } from '../../../wire/files/buckets.ts'
import { explanation } from '../../explanations.ts'
import { errorCode, withPath } from '../../files.ts'
import type { Remote } from '../../roots/remotes.ts'
import { type ObjectPath, readRange } from './requests.ts'

/** Bytes of one request, which is repeated where its connection breaks. */
const RANGE_BYTES = 8 * 1024 * 1024
const READ_BYTES = 1024 * 1024
/** Windows has no flag against symbolic links. */
const FLAGS = constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0)
const WITHOUT_LINKS: readonly (string | undefined)[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']

export interface Download {
  readonly object: ObjectField
  /** Absolute path of the new file. */
  readonly target: string
  readonly onProgress: (done: number) => void
}

/** Throws CLIENT_FILE_FAILED where the target exists, CLIENT_RESPONSE_INVALID, and as requests. */
export async function download(
  remote: Remote,
  path: ObjectPath,
  { object, target, onProgress }: Download,
): Promise<void> {
  const { sha256 } = object
  const size = Number(object.size)
  const part = `${target}.${sha256.slice(0, 16)}.part`
  const file = withPath(part, () => openSync(part, FLAGS, 0o600))
  try {
    const hash = createHash('sha256')
    let done = withPath(part, () => resume(file, size, hash))
    onProgress(done)
    while (done < size) {
      const end = Math.min(done + RANGE_BYTES, size)
      const { status, bytes } = await readRange(remote, path, { start: done, end, sha256 })
      if (status !== 206 || bytes.length !== end - done) throw changed(path.key)
      withPath(part, () => writeAll(file, bytes, done))
      hash.update(bytes)
      done = end
      onProgress(done)
    }
    if (hash.digest('hex') !== sha256) throw damaged(part)
    withPath(part, () => fsyncSync(file))
  } finally {
    closeSync(file)
  }
  if (!withPath(target, () => moveNew(part, target))) throw exists(target)
}

/** Hashes what an earlier download left and returns its length. Throws FileFailure for no file. */
function resume(file: number, size: number, hash: { update(bytes: Uint8Array): unknown }): number {
  const stats = fstatSync(file)
  if (!stats.isFile()) throw new FileFailure('not_regular')
  if (stats.size > size) {
    ftruncateSync(file, 0)
    return 0
  }
  const buffer = new Uint8Array(READ_BYTES)
  for (let done = 0; ; ) {
    const length = readSync(file, buffer, 0, READ_BYTES, done)
    if (length === 0) return done
    hash.update(buffer.subarray(0, length))
    done += length
  }
}

function writeAll(file: number, bytes: Uint8Array, at: number): void {
  for (let written = 0; written < bytes.length; ) {
    written += writeSync(file, bytes, written, bytes.length - written, at + written)
  }
}

/**
 * Gives the file its name; returns false if there is a file of this name. Unlike a rename, a
 * link never replaces another file.
 */
export function moveNew(part: string, target: string): boolean {
  try {
    linkSync(part, target)
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
    if (!WITHOUT_LINKS.includes(errorCode(error))) throw error
    if (existsSync(target)) return false
    renameSync(part, target)
    return true
  }
  rmSync(part)
  return true
}

export function exists(target: string): Fault {
  return new Fault('CLIENT_FILE_FAILED', {
    detail: `${target} exists already, and svc does not overwrite it.`,
    cause: explanation({ next: 'Name another file with --out.' }),
  })
}

function changed(key: string): Fault {
  return new Fault('CLIENT_RESPONSE_INVALID', {
    detail: `The object ${key} was replaced during the download.`,
    cause: explanation({ next: 'Run the command again.' }),
  })
}

function damaged(part: string): Fault {
  rmSync(part, { force: true })
  return new Fault('CLIENT_RESPONSE_INVALID', {
    detail: 'The bytes do not have the digest of the object.',
    cause: explanation({ next: 'Run the command again: it starts from the beginning.' }),
  })
}
