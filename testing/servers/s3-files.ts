/**
 * An S3-compatible store whose objects are files, as a program: tests kill it and start it again.
 * Its arguments are the directory and the port. It prints a line once it answers.
 */
import { randomUUID } from 'node:crypto'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { type S3Contents, S3Server } from './s3-server.ts'

/** The end of the names of files that are being written. */
const UNFINISHED = '.unfinished'
const PAGE = 1_000

class StoredObjects implements S3Contents {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  get(key: string): Uint8Array | undefined {
    const path = join(this.#directory, key)
    return statSync(path, { throwIfNoEntry: false })?.isFile() ? readFileSync(path) : undefined
  }

  /** Replaces an object at once: a killed store has the earlier one or the whole new one. */
  set(key: string, bytes: Uint8Array): never {
    const path = join(this.#directory, key)
    mkdirSync(dirname(path), { recursive: true })
    const unfinished = `${path}.${randomUUID()}${UNFINISHED}`
    writeFileSync(unfinished, bytes)
    renameSync(unfinished, path)
    return undefined as never
  }

  delete(key: string): boolean {
    rmSync(join(this.#directory, key), { force: true })
    return true
  }

  keys(): MapIterator<string> {
    const entries = readdirSync(this.#directory, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile() && !entry.name.endsWith(UNFINISHED))
    const paths = files.map((entry) => join(entry.parentPath, entry.name))
    return new Set(paths.map((path) => relative(this.#directory, path))).values()
  }
}

const [directory = '', port = ''] = process.argv.slice(2)
new S3Server({ objects: new StoredObjects(directory), port: Number(port), pageLength: PAGE })
process.stdout.write('ready\n')
