/**
 * Files that grow while bytes arrive. They are in the directory `temporary` until they are complete
 * and durable, and a process that died leaves them there alone. Steps that reach no further than
 * the memory of the system are done at once: the way to another thread and back takes longer.
 */
import {
  closeSync,
  constants,
  fdatasync,
  fsync,
  openSync,
  renameSync,
  statfsSync,
  write,
  writeSync,
} from 'node:fs'
import { access, mkdir, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Fault } from '../../errors/fault.ts'
import { inSlices } from '../../system/event-loop.ts'
import type { Content, StagedBlob } from './blobs.ts'

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
/** Size of a file up to which its bytes are written at once, in 10 us. */
const SHORT_BYTES = 64 * 1024
/** Bytes between two checks of the free space, and between two flushes to the disk. */
const CHECKED_BYTES = 16 * 1024 * 1024
/** Conditions of a disk or of this process that pass, or that an operator ends. */
const TEMPORARY =
  /^(ENOSPC|EDQUOT|EROFS|EIO|EACCES|EPERM|EMFILE|ENFILE|ENOMEM|EBUSY|ETIMEDOUT|ESTALE)$/

const writeAside = promisify(write)
const datasyncAside = promisify(fdatasync)
const syncAside = promisify(fsync)

export interface StagingOptions {
  readonly directory: string
  /** Bytes that must stay free on the disk. */
  readonly freeFloorBytes: number
}

export class Staging {
  readonly #options: StagingOptions
  #count = 0

  constructor(options: StagingOptions) {
    this.#options = options
  }

  /** Removes what a killed process left. Only the owner of the root may call it. */
  async open(): Promise<void> {
    const { directory } = this.#options
    await onDisk(async () => {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      for (const name of await readdir(directory)) await unlink(join(directory, name))
    })
  }

  /** Raises UNAVAILABLE if `bytes` more would leave less than the floor. */
  async requireSpace(bytes: number): Promise<void> {
    if (await this.hasSpace(bytes)) return
    throw new Fault('UNAVAILABLE', { detail: 'the disk has less free space than the floor' })
  }

  /** Returns whether files can be created and there is space for them. Raises UNAVAILABLE. */
  async isWritable(): Promise<boolean> {
    try {
      await access(this.#options.directory, constants.W_OK)
    } catch (error) {
      if (/^(?:EROFS|EACCES|EPERM)$/.test(systemCode(error) ?? '')) return false
    }
    return this.hasSpace(0)
  }

  async hasSpace(bytes: number): Promise<boolean> {
    const { directory, freeFloorBytes } = this.#options
    const { bavail, bsize } = await onDisk(async () => statfsSync(directory))
    return bavail * bsize - bytes >= freeFloorBytes
  }

  /** `commit` moves the finished file to where the store keeps it. Raises UNAVAILABLE. */
  async stage(
    bytesExpected: number,
    commit: (file: StagedFile) => Promise<void>,
  ): Promise<StagedBlob> {
    await this.requireSpace(bytesExpected)
    const path = join(this.#options.directory, String(this.#count++))
    const descriptor = await onDisk(async () => openSync(path, CREATE, 0o600))
    const file = new StagedFile(path, descriptor, () => this.requireSpace(0))
    return {
      write: (bytes) => file.write(bytes),
      finish: async () => file.finish(),
      commit: () => commit(file),
      discard: () => file.discard(),
    }
  }
}

/** A file with one writer, which always calls `discard`. */
export class StagedFile {
  readonly path: string
  readonly #descriptor: number
  readonly #requireSpace: () => Promise<void>
  readonly #hasher = new Bun.CryptoHasher('sha256')
  #state: 'open' | 'closed' | 'gone' = 'open'
  #content: Content | null = null
  #size = 0
  #unchecked = 0
  #flushing: Promise<void> | null = null
  #flushFailure: unknown = null

  constructor(path: string, descriptor: number, requireSpace: () => Promise<void>) {
    this.path = path
    this.#descriptor = descriptor
    this.#requireSpace = requireSpace
  }

  /** Computes the digest while the bytes are written, in slices: both take milliseconds. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#size += bytes.length
    this.#unchecked += bytes.length
    if (this.#unchecked > CHECKED_BYTES) {
      this.#unchecked = 0
      await this.#requireSpace()
      this.#flush()
    }
    const written = this.#append(bytes)
    const hashed = inSlices(bytes, (slice) => void this.#hasher.update(slice))
    // Waits for both, so that hashing has ended when a failed write is thrown.
    const [outcome] = await Promise.allSettled([written, hashed])
    if (outcome.status === 'rejected') throw outcome.reason
  }

  async #append(bytes: Uint8Array): Promise<void> {
    for (let written = 0; written < bytes.length; ) {
      const left = bytes.length - written
      written += await onDisk(() => this.#appendSome(bytes, written, left))
    }
  }

  async #appendSome(bytes: Uint8Array, start: number, length: number): Promise<number> {
    const descriptor = this.#descriptor
    if (this.#size <= SHORT_BYTES) return writeSync(descriptor, bytes, start, length)
    return (await writeAside(descriptor, bytes, start, length)).bytesWritten
  }

  finish(): Content {
    this.#content ??= { sha256: this.#hasher.digest('hex'), size: this.#size }
    return this.#content
  }

  /** Makes the bytes durable. The name is not. */
  async sync(): Promise<void> {
    await this.#flushing
    await onDisk(async () => {
      if (this.#flushFailure !== null) throw this.#flushFailure
      await syncAside(this.#descriptor)
    })
  }

  /**
   * Starts to write the bytes so far to the disk, unless that is in progress. Gigabytes in memory
   * would be written by one `sync`, for which commits of documents on the same disk would wait.
   */
  #flush(): void {
    if (this.#flushing !== null) return
    const done = () => {
      this.#flushing = null
    }
    // The system reports a failed write only to the next flush, so `sync` has to report it again.
    const failed = (error: unknown) => {
      this.#flushFailure = error
      done()
    }
    this.#flushing = datasyncAside(this.#descriptor).then(done, failed)
  }

  /** Moves the file to its final path. `discard` does nothing afterwards. */
  async moveTo(path: string): Promise<void> {
    await this.close()
    await onDisk(async () => renameSync(this.path, path))
    this.#state = 'gone'
  }

  async close(): Promise<void> {
    if (this.#state !== 'open') return
    this.#state = 'closed'
    await this.#flushing
    await onDisk(async () => closeSync(this.#descriptor))
  }

  /** Removes the file unless it was moved. Never throws: the next start removes what is left. */
  async discard(): Promise<void> {
    if (this.#state === 'gone') return
    try {
      await this.close()
      await unlink(this.path)
      this.#state = 'gone'
    } catch {}
  }
}

/** Makes a file, or the entries of a directory, durable. Raises UNAVAILABLE. */
export async function syncPath(path: string): Promise<void> {
  await onDisk(async () => {
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
    try {
      await syncAside(descriptor)
    } finally {
      closeSync(descriptor)
    }
  })
}

/** Reports missing and linked files as damage, and conditions of the disk as temporary. */
export async function onDisk<T>(access: () => Promise<T>): Promise<T> {
  try {
    return await access()
  } catch (cause) {
    const code = systemCode(cause)
    if (code === undefined || cause instanceof Fault) throw cause
    throw new Fault(TEMPORARY.test(code) ? 'UNAVAILABLE' : 'PRODUCT_CORRUPT', {
      cause,
      detail: `stored file: ${code}`,
    })
  }
}

export function systemCode(error: unknown): string | undefined {
  const code = (error as NodeJS.ErrnoException | null)?.code
  return typeof code === 'string' ? code : undefined
}
