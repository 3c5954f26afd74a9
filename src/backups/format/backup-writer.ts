/** Writes a backup as parts and a base, which are segments of bounded length. */
import type { BackupId } from '../../value/ids.ts'
import type { BackupRecord, RecordOf, Sidecar } from '../../wire/files/backups.ts'
import type { ChainWriter } from './chain-writer.ts'
import { MerkleTree } from './merkle-tree.ts'
import { SEGMENT_BYTES } from './segments.ts'

export interface BackupWriterOptions {
  readonly chain: ChainWriter
  readonly backupId: BackupId
  /** The snapshot of the documents. */
  readonly sequence: number
  readonly atMicros: bigint
}

export interface WrittenBackup {
  readonly base: Sidecar
  readonly counts: Readonly<Record<string, number>>
}

export class BackupWriter {
  readonly #options: BackupWriterOptions
  readonly #documents = new MerkleTree()
  readonly #counts: Record<string, number> = {}
  /** The lines of the next segment. One buffer for all of them: each of its own is garbage. */
  readonly #lines = Buffer.allocUnsafe(SEGMENT_BYTES)
  #bytes = 0
  /** The blobs of the next segment. */
  #names: string[] = []
  #first: number | null = null

  constructor(options: BackupWriterOptions) {
    this.#options = options
  }

  /** Adds a record. Waits while a segment is written. Raises UNAVAILABLE. */
  async add(record: Exclude<BackupRecord, { t: 'end' }>): Promise<void> {
    this.#counts[record.t] = (this.#counts[record.t] ?? 0) + 1
    if (record.t === 'document') await this.#append(this.#documentLine(record))
    else await this.#append(`${JSON.stringify(record)}\n`)
    if (record.t === 'blob' || record.t === 'artifact') this.#names.push(record.name)
  }

  /** Writes the records so far as the first part. Raises UNAVAILABLE. */
  async begin(): Promise<void> {
    await this.#write('part', this.#taken())
  }

  /**
   * Writes the records so far, so that the number of their segment is lower than those of all that
   * are written later. Raises UNAVAILABLE.
   */
  async split(): Promise<void> {
    if (this.#bytes > 0) await this.#write('part', this.#taken())
  }

  /** Writes the base, without which the backup does not exist. Raises UNAVAILABLE. */
  async finish(): Promise<WrittenBackup> {
    const counts = this.#counts
    const end: BackupRecord = { t: 'end', counts, merkle: this.#documents.root() }
    await this.#append(`${JSON.stringify(end)}\n`)
    const base = await this.#write('base', this.#taken())
    return { base, counts }
  }

  /** Returns the JSON of the record. Its text, most of it, is quoted once for line and leaf. */
  #documentLine({ t, id, createdAtMicros, sequence, text }: RecordOf<'document'>): string {
    const quoted = JSON.stringify(text)
    this.#documents.add(leafOf({ id, createdAtMicros, sequence }, quoted))
    const fields = JSON.stringify({ t, id, createdAtMicros, sequence })
    return `${fields.slice(0, -1)},"text":${quoted}}\n`
  }

  async #append(line: string): Promise<void> {
    const length = Buffer.byteLength(line)
    if (this.#bytes + length > SEGMENT_BYTES && this.#bytes > 0) {
      await this.#write('part', this.#taken())
    }
    if (length > SEGMENT_BYTES) await this.#write('part', Buffer.from(line))
    else this.#bytes += this.#lines.write(line, this.#bytes)
  }

  /** Returns the lines so far, which are valid until the next ones are appended. */
  #taken(): Uint8Array {
    const lines = this.#lines.subarray(0, this.#bytes)
    this.#bytes = 0
    return lines
  }

  async #write(kind: 'part' | 'base', lines: Uint8Array): Promise<Sidecar> {
    const { chain, backupId, sequence, atMicros } = this.#options
    const names = this.#names
    this.#names = []
    const segment = await chain.append({
      kind,
      backupId,
      first: this.#first,
      fromSequence: 0,
      toSequence: sequence,
      // Without increments a backup stands for itself.
      run: chain.end.run ?? { from: sequence, to: sequence, files: sequence },
      atMicros,
      lines,
      names,
    })
    this.#first ??= segment.number
    return segment
  }
}

interface LeafFields {
  readonly id: string
  readonly createdAtMicros: bigint | string
  readonly sequence: number
}

/** The leaf of a document: a list in JSON, with the fields in this order. */
export function documentLeaf(document: LeafFields & { readonly text: string | null }): string {
  return leafOf(document, JSON.stringify(document.text))
}

/** `text` is JSON. */
function leafOf({ id, createdAtMicros, sequence }: LeafFields, text: string): string {
  const fields = JSON.stringify([id, String(createdAtMicros), sequence])
  return `${fields.slice(0, -1)},${text}]`
}
