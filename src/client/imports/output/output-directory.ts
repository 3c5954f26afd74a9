/**
 * The directory that an import writes. It is made beside its place and renamed when it is whole,
 * so that a failed import leaves nothing.
 */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { Fault } from '../../../errors/fault.ts'
import { explanation } from '../../explanations.ts'
import { errorCode, withPath } from '../../files.ts'

/** Exported documents may be confidential. */
const PRIVATE_FILE = 0o600
const PRIVATE_DIRECTORY = 0o700
const BUFFER_BYTES = 256 * 1024

export class OutputDirectory {
  readonly #target: string
  readonly #partial: string

  private constructor(target: string, partial: string) {
    this.#target = target
    this.#partial = partial
  }

  /** Throws CLIENT_FILE_FAILED where the target is something else than an empty directory. */
  static create(target: string): OutputDirectory {
    requireFree(target)
    const name = `.${basename(target)}.${randomBytes(6).toString('hex')}.partial`
    const partial = join(dirname(target), name)
    withPath(partial, () => mkdirSync(partial, { mode: PRIVATE_DIRECTORY }))
    return new OutputDirectory(target, partial)
  }

  /** Creates a file, with the directories that it is in. */
  file(name: string): OutputFile {
    const path = join(this.#partial, name)
    withPath(path, () => mkdirSync(dirname(path), { recursive: true, mode: PRIVATE_DIRECTORY }))
    return new OutputFile(path)
  }

  write(name: string, text: string): void {
    const file = this.file(name)
    try {
      file.write(text)
    } finally {
      file.close()
    }
  }

  /** Gives the directory its name. */
  commit(): void {
    withPath(this.#target, () => {
      try {
        rmdirSync(this.#target)
      } catch (error) {
        if (errorCode(error) !== 'ENOENT') throw error
      }
      renameSync(this.#partial, this.#target)
    })
  }

  discard(): void {
    rmSync(this.#partial, { recursive: true, force: true })
  }
}

function requireFree(target: string): void {
  let found: readonly string[]
  try {
    found = readdirSync(target)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return
    throw new Fault('CLIENT_FILE_FAILED', { detail: `${target} is no directory.`, cause: error })
  }
  if (found.length === 0) return
  throw new Fault('CLIENT_FILE_FAILED', {
    detail: `${target} is not empty, and svc does not overwrite it.`,
    cause: explanation({ next: 'Name another directory with --out.' }),
  })
}

/** A new file that is written in large pieces. */
export class OutputFile {
  readonly #path: string
  readonly #file: number
  #pending: Uint8Array[] = []
  #bytes = 0

  constructor(path: string) {
    this.#path = path
    this.#file = withPath(path, () => openSync(path, 'wx', PRIVATE_FILE))
  }

  write(content: string | Uint8Array): void {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content
    this.#pending.push(bytes)
    this.#bytes += bytes.length
    if (this.#bytes >= BUFFER_BYTES) this.#flush()
  }

  close(): void {
    try {
      this.#flush()
      withPath(this.#path, () => fsyncSync(this.#file))
    } finally {
      closeSync(this.#file)
    }
  }

  #flush(): void {
    const bytes = Buffer.concat(this.#pending)
    this.#pending = []
    this.#bytes = 0
    withPath(this.#path, () => {
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at)
    })
  }
}
