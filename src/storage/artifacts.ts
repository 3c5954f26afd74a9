/**
 * Content-addressed files under `artifacts/sha256/<2>/<62>`. A file appears under its name complete
 * and durable or not at all, and every read verifies its digest, so missing or altered bytes that
 * the control database references are always detected.
 */
import { constants } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault, isFault } from '../errors/fault.ts'
import { sha256Hex } from '../system/digests.ts'
import { type Files, realFiles } from './files.ts'

/** `sha256:` and 64 lowercase hex characters. */
const DIGEST = /^sha256:([0-9a-f]{2})([0-9a-f]{62})$/
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
const READ = constants.O_RDONLY | constants.O_NOFOLLOW

/**
 * A file with one writer, which always calls `discard`. Every method throws PRODUCT_UNAVAILABLE.
 */
export interface StagedArtifact {
  /** Appends the bytes. */
  write(bytes: Uint8Array): Promise<void>
  /** Returns the bytes that were written. Call it only before `commit`. */
  read(): Promise<Uint8Array>
  /**
   * Resolves once the written bytes are durable under `digest`, which must be theirs. Replaces an
   * existing file, which holds the same bytes or is damaged.
   */
  commit(digest: string): Promise<void>
  /** Removes the file unless it was committed. */
  discard(): Promise<void>
}

export class ArtifactStore {
  readonly #directory: string
  readonly #files: Files
  #temporaries = 0

  constructor(directory: string, files: Files = realFiles) {
    this.#directory = directory
    this.#files = files
  }

  /** Removes unfinished files of a killed process. Only the owner of the root may call it. */
  async open(): Promise<void> {
    await guarded(async () => {
      await this.#makeDirectory(this.#directory)
      await this.#makeDirectory(this.#temporary())
      await this.#makeDirectory(join(this.#directory, 'sha256'))
      await this.#syncDirectory(this.#directory)
      for (const name of await this.#files.readdir(this.#temporary())) {
        await this.#files.unlink(join(this.#temporary(), name))
      }
    })
  }

  /** Stores bytes that are in memory. Throws PRODUCT_UNAVAILABLE. */
  async put(digest: string, bytes: Uint8Array): Promise<void> {
    const staged = await this.stage()
    try {
      await staged.write(bytes)
      await staged.commit(digest)
    } finally {
      await staged.discard()
    }
  }

  /** Creates a file that grows until its digest is known. Throws PRODUCT_UNAVAILABLE. */
  async stage(): Promise<StagedArtifact> {
    const path = join(this.#temporary(), String(this.#temporaries++))
    const handle = await guarded(() => this.#files.open(path, CREATE, 0o600))
    let state: 'open' | 'closed' | 'gone' = 'open'
    const close = async (): Promise<void> => {
      if (state !== 'open') return
      state = 'closed'
      await handle.close()
    }
    return {
      write: (bytes) =>
        guarded(async () => {
          for (let written = 0; written < bytes.length; ) {
            const result = await handle.write(bytes, written, bytes.length - written)
            written += result.bytesWritten
          }
        }),
      read: () =>
        guarded(async () => {
          const written = await this.#files.open(path, READ)
          try {
            return await written.readFile()
          } finally {
            await written.close()
          }
        }),
      commit: (digest) =>
        guarded(async () => {
          const { directory, file } = this.#locate(digest)
          await handle.sync()
          await close()
          await this.#makeDirectory(directory)
          await this.#files.rename(path, file)
          state = 'gone'
          // Without these a power failure can undo the rename or the creation of its directory.
          const parent = join(this.#directory, 'sha256')
          await Promise.all([directory, parent].map((path) => this.#syncDirectory(path)))
        }),
      discard: () =>
        guarded(async () => {
          if (state === 'gone') return
          await close()
          await this.#files.unlink(path)
          state = 'gone'
        }),
    }
  }

  /** Returns the digests of all stored files. Throws PRODUCT_UNAVAILABLE. */
  async list(): Promise<string[]> {
    const root = join(this.#directory, 'sha256')
    const digests: string[] = []
    for (const head of await guarded(() => this.#files.readdir(root))) {
      for (const tail of await guarded(() => this.#files.readdir(join(root, head)))) {
        const digest = `sha256:${head}${tail}`
        if (DIGEST.test(digest)) digests.push(digest)
      }
    }
    return digests
  }

  /**
   * Removes a file whose digest no Release references. A power failure may restore it;
   * `list` returns it then. Throws PRODUCT_UNAVAILABLE.
   */
  async remove(digest: string): Promise<void> {
    const { file } = this.#locate(digest)
    await guarded(() => this.#files.unlink(file))
  }

  /** Returns whether the file exists with its length. Throws PRODUCT_UNAVAILABLE. */
  async has(digest: string, bytesExpected: number): Promise<boolean> {
    try {
      return await this.#withFile(digest, async (_, bytes) => bytes === bytesExpected)
    } catch (error) {
      if (isFault(error, 'PRODUCT_CORRUPT')) return false
      throw error
    }
  }

  /** Throws PRODUCT_CORRUPT where the bytes are missing, too many or not those of the digest. */
  async get(digest: string, bytesExpected: number): Promise<Uint8Array> {
    const bytes = await this.#withFile(digest, async (handle, bytes) =>
      bytes === bytesExpected ? await handle.readFile() : null,
    )
    if (bytes === null || `sha256:${sha256Hex(bytes)}` !== digest) {
      throw new Fault('PRODUCT_CORRUPT', { detail: `artifact ${digest} is altered` })
    }
    return bytes
  }

  /** Passes the open file and its length, which is null unless it is a regular file. */
  #withFile<T>(
    digest: string,
    use: (handle: FileHandle, bytes: number | null) => Promise<T>,
  ): Promise<T> {
    const { file } = this.#locate(digest)
    return guarded(async () => {
      const handle = await this.#files.open(file, READ)
      try {
        const stats = await handle.stat()
        return await use(handle, stats.isFile() ? stats.size : null)
      } finally {
        await handle.close()
      }
    })
  }

  async #makeDirectory(path: string): Promise<void> {
    await this.#files.mkdir(path, { recursive: true, mode: 0o700 })
  }

  async #syncDirectory(path: string): Promise<void> {
    const handle = await this.#files.open(path, READ)
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  }

  #temporary(): string {
    return join(this.#directory, 'temporary')
  }

  #locate(digest: string): { directory: string; file: string } {
    const match = DIGEST.exec(digest)
    if (match === null) throw new Fault('PRODUCT_CORRUPT', { detail: 'not an artifact digest' })
    const directory = join(this.#directory, 'sha256', match[1]!)
    return { directory, file: join(directory, match[2]!) }
  }
}

/** Reports missing and linked files as damage, errors of the disk and of limits as temporary. */
async function guarded<T>(access: () => Promise<T>): Promise<T> {
  try {
    return await access()
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    if (typeof code !== 'string' || cause instanceof Fault) throw cause
    const damaged = ['ENOENT', 'ELOOP', 'ENOTDIR', 'EISDIR'].includes(code)
    throw new Fault(damaged ? 'PRODUCT_CORRUPT' : 'PRODUCT_UNAVAILABLE', {
      cause,
      detail: `artifact file: ${code}`,
    })
  }
}
