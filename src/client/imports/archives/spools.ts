/**
 * Records of an export that stand together in it, kept by collection in files of their own, so that
 * each collection is read alone. The directory is temporary and private.
 */
import { appendFileSync, createReadStream, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withPath } from '../../files.ts'
import { exportInvalid } from './export-fault.ts'

/** Tables that a schema may have. */
const COLLECTIONS_MAX = 1_000
const PRIVATE_FILE = 0o600
const PENDING_BYTES_MAX = 16 * 1024 * 1024
const CHUNK_BYTES = 1024 * 1024
/** Memory that a record has beside its bytes. */
const OVERHEAD_BYTES = 256

interface Pending {
  readonly path: string
  pieces: Uint8Array[]
}

export class Spool {
  readonly #directory = mkdtempSync(join(tmpdir(), 'svc-import-'))
  readonly #collections = new Map<string, Pending>()
  #bytes = 0

  /** Names of the collections in the order of their first records. */
  get names(): readonly string[] {
    return [...this.#collections.keys()]
  }

  add(collection: string, record: Uint8Array): void {
    const { pieces } = this.#collection(collection)
    const length = Buffer.alloc(4)
    length.writeUInt32LE(record.length)
    pieces.push(length, record)
    this.#bytes += OVERHEAD_BYTES + record.length
    if (this.#bytes > PENDING_BYTES_MAX) this.flush()
  }

  /** Writes what is in memory. Call it before `read`. */
  flush(): void {
    for (const pending of this.#collections.values()) {
      if (pending.pieces.length === 0) continue
      const bytes = Buffer.concat(pending.pieces)
      pending.pieces = []
      withPath(pending.path, () => appendFileSync(pending.path, bytes, { mode: PRIVATE_FILE }))
    }
    this.#bytes = 0
  }

  async *read(collection: string): AsyncGenerator<Uint8Array> {
    let pending = Buffer.alloc(0)
    const { path } = this.#collections.get(collection)!
    for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
      pending = Buffer.concat([pending, chunk as Buffer])
      let from = 0
      while (pending.length - from >= 4) {
        const end = from + 4 + pending.readUInt32LE(from)
        if (end > pending.length) break
        yield pending.subarray(from + 4, end)
        from = end
      }
      pending = pending.subarray(from)
    }
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true })
  }

  #collection(name: string): Pending {
    const found = this.#collections.get(name)
    if (found !== undefined) return found
    if (this.#collections.size === COLLECTIONS_MAX) {
      throw exportInvalid(`The export has more than ${COLLECTIONS_MAX} collections.`)
    }
    const made = { path: join(this.#directory, String(this.#collections.size)), pieces: [] }
    this.#collections.set(name, made)
    return made
  }
}
