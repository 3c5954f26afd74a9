/**
 * Bytes of stored files as content-addressed files under `files/sha256/<2>/<62>` of the Product
 * root. A file appears under its name complete and durable or not at all.
 */
import { closeSync, constants, mkdirSync, openSync, readdirSync, readSync } from 'node:fs'
import { mkdir, open, readdir, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '../../errors/fault.ts'
import { inSlices } from '../../system/event-loop.ts'
import type {
  BlobAvailability,
  BlobBody,
  BlobCondition,
  BlobStore,
  Content,
  Slice,
  StagedBlob,
} from './blobs.ts'
import { sha256InSlices } from './content-digests.ts'
import { onDisk, type StagedFile, Staging, syncPath, systemCode } from './staged-files.ts'

export interface FileBlobsOptions {
  /** The directory `files` of the Product root. */
  readonly directory: string
  readonly freeFloorBytes: number
  /** Bytes are durable after `syncAll` alone: a restore waits once, not for each file. */
  readonly isFilled?: boolean
}

const HEAD = /^[0-9a-f]{2}$/
const TAIL = /^[0-9a-f]{62}$/
const READ = constants.O_RDONLY | constants.O_NOFOLLOW
const READ_BYTES = 1024 * 1024
/**
 * Files up to this size are read at once and without a thread, as documents in SQLite are: threads
 * and `sendfile` take three times as long as all other steps of such a download.
 */
const SMALL_BYTES = 64 * 1024

export class FileBlobs implements BlobStore {
  readonly #directory: string
  readonly #staging: Staging
  readonly #isFilled: boolean

  private constructor({ directory, freeFloorBytes, isFilled = false }: FileBlobsOptions) {
    this.#directory = directory
    this.#isFilled = isFilled
    this.#staging = new Staging({ directory: join(directory, 'temporary'), freeFloorBytes })
  }

  /** Only the owner of the root may call it. Raises UNAVAILABLE and PRODUCT_CORRUPT. */
  static async open(options: FileBlobsOptions): Promise<FileBlobs> {
    const blobs = new FileBlobs(options)
    await onDisk(async () => createHeads(blobs.#sha256()))
    await blobs.#staging.open()
    await syncPath(blobs.#sha256())
    await syncPath(options.directory)
    return blobs
  }

  /** Opens the store in a process that does not own the root, for reads alone. */
  static follow(directory: string): Pick<BlobStore, 'open'> {
    return new FileBlobs({ directory, freeFloorBytes: 0 })
  }

  stage(bytesExpected: number): Promise<StagedBlob> {
    return this.#staging.stage(bytesExpected, (file) => this.#commit(file))
  }

  requireSpace(): Promise<void> {
    return this.#staging.requireSpace(0)
  }

  async #commit(file: StagedFile): Promise<void> {
    const { directory, path } = this.#locate(file.finish().sha256)
    if (this.#isFilled) {
      await file.moveTo(path)
      return
    }
    await file.sync()
    await file.moveTo(path)
    // Without it a power failure can undo the rename.
    await syncPath(directory)
  }

  async syncAll(): Promise<void> {
    const root = this.#sha256()
    for (const head of await onDisk(() => readdir(root))) {
      const directory = join(root, head)
      const names = await onDisk(() => readdir(directory))
      for (const name of names) await syncPath(join(directory, name))
      if (names.length > 0) await syncPath(directory)
    }
  }

  async open({ sha256, size }: Content, { start, end }: Slice): Promise<BlobBody> {
    const { path } = this.#locate(sha256)
    if (size <= SMALL_BYTES) {
      const bytes = await onDisk(async () => readSmall(path, size))
      if (bytes === null) throw damaged(sha256, 'has another length')
      return bytes.length === end - start ? bytes : bytes.subarray(start, end)
    }
    const { size: found } = await onDisk(() => stat(path))
    if (found !== size) throw damaged(sha256, 'has another length')
    return Bun.file(path).slice(start, end)
  }

  async read(content: Content): Promise<Uint8Array> {
    const { path } = this.#locate(content.sha256)
    const bytes = await onDisk(async () => {
      const handle = await open(path, READ)
      try {
        const { size } = await handle.stat()
        return size === content.size ? await handle.readFile() : null
      } finally {
        await handle.close()
      }
    })
    if (bytes !== null && (await sha256InSlices(bytes)) === content.sha256) return bytes
    throw damaged(content.sha256, 'is altered')
  }

  async *list(): AsyncGenerator<Content> {
    const root = this.#sha256()
    for (const head of await onDisk(() => readdir(root))) {
      if (!HEAD.test(head)) continue
      for (const tail of await onDisk(() => readdir(join(root, head)))) {
        if (!TAIL.test(tail)) continue
        const found = await statOrNull(join(root, head, tail))
        if (found !== null) yield { sha256: head + tail, size: found }
      }
    }
  }

  async remove(sha256: string): Promise<void> {
    const { path } = this.#locate(sha256)
    try {
      await unlink(path)
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return
      await onDisk(() => Promise.reject(error))
    }
  }

  /** Reads all bytes: they are on this machine, so even a quick check is a whole one. */
  async check(
    { sha256, size }: Content,
    { pause }: { readonly pause?: () => Promise<void> },
  ): Promise<BlobCondition> {
    const { path } = this.#locate(sha256)
    if ((await statOrNull(path)) === null) return 'missing'
    return onDisk(async () => {
      const handle = await open(path, READ)
      try {
        const hasher = new Bun.CryptoHasher('sha256')
        const buffer = new Uint8Array(READ_BYTES)
        let length = 0
        for (;;) {
          const { bytesRead } = await handle.read(buffer, 0, READ_BYTES, length)
          if (bytesRead === 0) break
          await inSlices(buffer.subarray(0, bytesRead), (slice) => void hasher.update(slice))
          length += bytesRead
          await pause?.()
        }
        return length === size && hasher.digest('hex') === sha256 ? 'whole' : 'damaged'
      } finally {
        await handle.close()
      }
    })
  }

  async quarantine(sha256: string): Promise<void> {
    const { path } = this.#locate(sha256)
    const directory = join(this.#directory, 'damaged')
    await onDisk(async () => {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      await rename(path, join(directory, sha256))
    })
    await syncPath(directory)
  }

  async availability(): Promise<BlobAvailability> {
    try {
      return (await this.#staging.isWritable()) ? 'available' : 'full'
    } catch {
      return 'unavailable'
    }
  }

  #sha256(): string {
    return join(this.#directory, 'sha256')
  }

  #locate(sha256: string): { readonly directory: string; readonly path: string } {
    const [head, tail] = [sha256.slice(0, 2), sha256.slice(2)]
    // Only a digest becomes part of a path, so a caller cannot name another file.
    if (!HEAD.test(head) || !TAIL.test(tail)) throw damaged(sha256, 'is not a SHA-256')
    const directory = join(this.#sha256(), head)
    return { directory, path: join(directory, tail) }
  }
}

/**
 * Creates the directories of all digests, so that an upload does not have to make one. One call
 * after the other takes 5 ms; through the thread pool it would take 40.
 */
function createHeads(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const present = new Set(readdirSync(directory))
  for (let byte = 0; byte < 256; byte++) {
    const name = byte.toString(16).padStart(2, '0')
    if (!present.has(name)) mkdirSync(join(directory, name), { mode: 0o700 })
  }
}

/** Returns all bytes of a file; null if it has another length. */
function readSmall(path: string, size: number): Uint8Array<ArrayBuffer> | null {
  const descriptor = openSync(path, READ)
  try {
    // Room for one byte more reveals a longer file without another call.
    const bytes = new Uint8Array(size + 1)
    const length = readSync(descriptor, bytes, 0, size + 1, 0)
    return length === size ? bytes.subarray(0, size) : null
  } finally {
    closeSync(descriptor)
  }
}

/** Returns the length of a regular file; null if there is none. */
async function statOrNull(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null
    return onDisk(() => Promise.reject(error))
  }
}

function damaged(sha256: string, what: string): Fault {
  return new Fault('PRODUCT_CORRUPT', { detail: `stored file ${sha256.slice(0, 64)} ${what}` })
}
