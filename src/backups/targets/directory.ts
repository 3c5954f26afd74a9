/** Backups in a directory, such as the mount of another machine. Raises UNAVAILABLE. */
import { open, readdir, realpath, rename, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Fault } from '../../errors/fault.ts'
import { makeDirectories, syncDirectory } from './directory-files.ts'
import { absent } from './failures.ts'
import type { BackupTarget } from './targets.ts'

const READ_BYTES = 256 * 1024
/** The end of the names of files that are being written. A backup has no such name. */
const UNFINISHED = '.unfinished'

export class DirectoryTarget implements BackupTarget {
  readonly location: string

  constructor(path: string) {
    this.location = path
  }

  names(directory: string): Promise<string[]> {
    return this.#guarded(async () => {
      const names = await this.#found(() => readdir(join(this.location, directory)))
      return (names ?? []).filter((name) => !name.endsWith(UNFINISHED)).sort()
    })
  }

  sizeOf(name: string): Promise<number | null> {
    return this.#guarded(async () => {
      const found = await this.#found(() => stat(join(this.location, name)))
      return found?.size ?? null
    })
  }

  async *read(name: string): AsyncGenerator<Uint8Array> {
    const handle = await this.#guarded(() =>
      this.#found(() => open(join(this.location, name), 'r')),
    )
    if (handle === null) throw absent(name)
    try {
      for (;;) {
        const buffer = new Uint8Array(READ_BYTES)
        const { bytesRead } = await this.#guarded(() => handle.read(buffer, 0, READ_BYTES))
        if (bytesRead === 0) return
        yield buffer.subarray(0, bytesRead)
      }
    } finally {
      await handle.close()
    }
  }

  write(name: string, bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<number> {
    const path = join(this.location, name)
    return this.#guarded(async () => {
      await makeDirectories(this.location, dirname(name))
      const unfinished = path + UNFINISHED
      let length = 0
      try {
        const handle = await open(unfinished, 'w', 0o600)
        try {
          for await (const piece of bytes) {
            await handle.writeFile(piece)
            length += piece.length
          }
          await handle.sync()
        } finally {
          await handle.close()
        }
        await rename(unfinished, path)
      } catch (error) {
        await rm(unfinished, { force: true }).catch(() => undefined)
        throw error
      }
      // Without it a power failure can undo the rename.
      await syncDirectory(dirname(path))
      return length
    })
  }

  remove(name: string): Promise<void> {
    return this.#guarded(() => rm(join(this.location, name), { force: true }))
  }

  removeDirectory(directory: string): Promise<void> {
    return this.#guarded(async () => {
      try {
        await rmdir(join(this.location, directory))
      } catch (error) {
        const code = (error as NodeJS.ErrnoException).code ?? ''
        if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(code)) throw error
      }
    })
  }

  fileSystems(): Promise<readonly number[]> {
    return this.#guarded(async () => {
      const found: number[] = []
      for (let path = await realpath(this.location); ; path = dirname(path)) {
        const { dev } = await stat(path)
        if (found.at(-1) !== dev) found.push(dev)
        if (path === dirname(path)) return found
      }
    })
  }

  /** Resolves to null if there is nothing. Where the directory itself is not there, it rejects. */
  async #found<T>(access: () => Promise<T>): Promise<T | null> {
    try {
      return await access()
    } catch (error) {
      if (!isAbsent(error)) throw error
    }
    await stat(this.location)
    try {
      // The directory may be a mount that came back after the first access.
      return await access()
    } catch (error) {
      if (isAbsent(error)) return null
      throw error
    }
  }

  async #guarded<T>(access: () => Promise<T>): Promise<T> {
    try {
      return await access()
    } catch (cause) {
      const code = (cause as NodeJS.ErrnoException | null)?.code
      if (cause instanceof Fault || typeof code !== 'string') throw cause
      throw new Fault('UNAVAILABLE', { cause, detail: `the directory of backups: ${code}` })
    }
  }
}

function isAbsent(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | null)?.code === 'ENOENT'
}
