/** The lines of one increment or catch-up. */
import type { BackupRecord } from '../../wire/files/backups.ts'

export class IncrementLines {
  readonly #lines: string[] = []
  readonly #counts: Record<string, number> = {}
  readonly #names = new Set<string>()
  #bytes = 0

  /** Bytes of the lines so far. */
  get bytes(): number {
    return this.#bytes
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0
  }

  add(record: Exclude<BackupRecord, { t: 'end' }>): void {
    this.#counts[record.t] = (this.#counts[record.t] ?? 0) + 1
    if (record.t === 'blob' || record.t === 'artifact') this.#names.add(record.name)
    this.#push(record)
  }

  /** Ends the lines, to which nothing can be added then. */
  finish(): { readonly lines: Uint8Array; readonly names: ReadonlySet<string> } {
    this.#push({ t: 'end', counts: this.#counts, merkle: null })
    return { lines: Buffer.from(this.#lines.join('')), names: this.#names }
  }

  #push(record: BackupRecord): void {
    const line = `${JSON.stringify(record)}\n`
    this.#lines.push(line)
    this.#bytes += Buffer.byteLength(line)
  }
}
