/** The bounds of one transaction and how much of them is used. */
import { Fault } from '../../errors/fault.ts'
import type { BufferedWrite } from '../commits/document-writes.ts'
import {
  BYTES_READ_MAX,
  BYTES_WRITTEN_MAX,
  DOCUMENT_BYTES_MAX,
  DOCUMENTS_READ_MAX,
  DOCUMENTS_WRITTEN_MAX,
} from '../limits.ts'
import type { DocumentProjection } from '../tables/document-projection.ts'

/** The used part of a bound. */
export interface Usage {
  readonly used: number
  readonly limit: number
}

export type TransactionUsage = Readonly<
  Record<'documentsRead' | 'bytesRead' | 'documentsWritten' | 'bytesWritten', Usage>
>

export class TransactionBounds {
  bytesWritten = 0
  #documentsRead = 0
  #bytesRead = 0
  #exceeded: string | null = null

  /** The exceeded limit with its bound, also where the author's code caught the failure. */
  get exceeded(): string | null {
    return this.#exceeded
  }

  /** UTF-16 units that may still be read. */
  get textUnitsLeft(): number {
    return BYTES_READ_MAX - this.#bytesRead
  }

  usage(documentsWritten: number): TransactionUsage {
    return {
      documentsRead: { used: this.#documentsRead, limit: DOCUMENTS_READ_MAX },
      bytesRead: { used: this.#bytesRead, limit: BYTES_READ_MAX },
      documentsWritten: { used: documentsWritten, limit: DOCUMENTS_WRITTEN_MAX },
      bytesWritten: { used: this.bytesWritten, limit: BYTES_WRITTEN_MAX },
    }
  }

  /** Throws LIMIT_EXCEEDED beyond a bound. */
  countRead(text: string): void {
    this.#documentsRead += 1
    this.#bytesRead += text.length
    if (this.#documentsRead > DOCUMENTS_READ_MAX) this.#exceed('documents read', DOCUMENTS_READ_MAX)
    if (this.#bytesRead > BYTES_READ_MAX) this.#exceed('bytes read', BYTES_READ_MAX)
  }

  /** Counts further UTF-16 units that are read. Throws LIMIT_EXCEEDED beyond the bound. */
  countUnits(units: number): void {
    this.#bytesRead += units
    if (this.#bytesRead > BYTES_READ_MAX) this.#exceed('bytes read', BYTES_READ_MAX)
  }

  /**
   * `documentsWritten` includes this document; `projection` is that of its table. Throws
   * LIMIT_EXCEEDED beyond a bound.
   */
  countWritten(
    { after, document }: BufferedWrite,
    documentsWritten: number,
    projection: DocumentProjection | null,
  ): void {
    const bytes = after === null ? 0 : Buffer.byteLength(document.text)
    this.bytesWritten += bytes
    if (bytes > DOCUMENT_BYTES_MAX) {
      const seen = projection === null ? bytes : Buffer.byteLength(projection.read(document).text)
      const hidden = 'with the fields that this Release does not declare'
      this.#exceed('document bytes', DOCUMENT_BYTES_MAX, seen > DOCUMENT_BYTES_MAX ? '' : hidden)
    }
    if (this.bytesWritten > BYTES_WRITTEN_MAX) this.#exceed('bytes written', BYTES_WRITTEN_MAX)
    if (documentsWritten > DOCUMENTS_WRITTEN_MAX) {
      this.#exceed('documents written', DOCUMENTS_WRITTEN_MAX)
    }
  }

  #exceed(name: string, bound: number, remark = ''): never {
    const detail = `${name}: at most ${bound}${remark && `, ${remark}`}`
    this.#exceeded ??= detail
    throw new Fault('LIMIT_EXCEEDED', { detail })
  }
}
