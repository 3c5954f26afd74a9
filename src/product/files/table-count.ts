/**
 * Counts the documents of one table by bucket. One process owns the documents, so the counts are in
 * memory: existing documents are read once after the start, and every durable change updates the
 * counts.
 */
import type { FileChange } from '../../engine/commits/read-set.ts'
import type { SystemDocuments } from '../../engine/files/system-documents.ts'
import type { Transaction } from '../../engine/transactions/transaction.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { ValueObject } from '../../value/values.ts'

/** The number and bytes of the files of a bucket. */
export interface BucketUse {
  readonly files: number
  readonly bytes: bigint
}

/** A document of the table: its position in the order of creation, and its bytes. */
export interface CountedDocument extends BucketUse {
  readonly id: string
  readonly createdAtMicros: bigint
  readonly bucket: string
}

export interface CountedPage {
  readonly documents: readonly CountedDocument[]
  /** The key to continue after; null for the last page. */
  readonly lastKey: string | null
}

export interface CountedTable {
  readonly table: string
  /** Returns a page of the documents in the order of their creation. */
  list(
    transaction: Transaction,
    page: { readonly afterKey: string | null; readonly limit: number },
  ): MaybePromise<CountedPage>
  /** Returns the bucket of a document with these fields, and what it adds to it. */
  useOf(fields: ValueObject): BucketUse & { readonly bucket: string }
}

type Position = Pick<CountedDocument, 'id' | 'createdAtMicros'>

export const NO_USE: BucketUse = { files: 0, bytes: 0n }

export class TableCount {
  readonly #table: CountedTable
  /** Buckets that have documents. */
  readonly uses = new Map<string, BucketUse>()
  /** The last document that was counted. Later ones are read with their changes applied. */
  #countedTo: Position | null = null
  #isCounted = false
  /** Changes since the snapshot of the page in progress; null while none is read. */
  #during: FileChange[] | null = null

  constructor(table: CountedTable) {
    this.#table = table
  }

  /** Returns whether all documents are counted. */
  get isCounted(): boolean {
    return this.#isCounted
  }

  of(bucket: string): BucketUse {
    return this.uses.get(bucket) ?? NO_USE
  }

  /**
   * Reads all documents in pages and calls `onPage` before each. Rejects with errors of the reads
   * and of `onPage`.
   */
  async count(
    documents: SystemDocuments,
    { limit, onPage }: { readonly limit: number; readonly onPage: () => void },
  ): Promise<void> {
    this.uses.clear()
    this.#countedTo = null
    this.#isCounted = false
    let afterKey: string | null = null
    try {
      do {
        onPage()
        const after: string | null = afterKey
        const page: CountedPage = await documents.read((transaction) => {
          // The snapshot was taken in this turn of the event loop, so no change is missed.
          this.#during = []
          return this.#table.list(transaction, { afterKey: after, limit })
        })
        this.#addPage(page)
        afterKey = page.lastKey
      } while (afterKey !== null)
    } finally {
      this.#during = null
    }
  }

  /** Receives a durable change of a document of any table. */
  changed(change: FileChange): void {
    if (change.table !== this.#table.table) return
    if (this.#during !== null) this.#during.push(change)
    else if (this.#isBehind(change)) this.#apply(change)
  }

  /** Counts a page, then the changes since its snapshot. */
  #addPage({ documents, lastKey }: CountedPage): void {
    for (const { bucket, files, bytes } of documents) this.#add(bucket, { files, bytes })
    this.#countedTo = documents.at(-1) ?? this.#countedTo
    this.#isCounted = lastKey === null
    const during = this.#during ?? []
    this.#during = null
    for (const change of during) this.changed(change)
  }

  /**
   * Returns whether the document was counted already: documents are read in the order of creation.
   */
  #isBehind({ createdAtMicros, id }: Position): boolean {
    const last = this.#countedTo
    if (this.#isCounted || last === null) return this.#isCounted
    return createdAtMicros === last.createdAtMicros
      ? id <= last.id
      : createdAtMicros < last.createdAtMicros
  }

  #apply({ before, after }: FileChange): void {
    if (before !== null) {
      const { bucket, files, bytes } = this.#table.useOf(before)
      this.#add(bucket, { files: -files, bytes: -bytes })
    }
    if (after !== null) {
      const use = this.#table.useOf(after)
      this.#add(use.bucket, use)
    }
  }

  #add(bucket: string, { files, bytes }: BucketUse): void {
    const use = this.of(bucket)
    const next = { files: use.files + files, bytes: use.bytes + bytes }
    if (next.files === 0 && next.bytes === 0n) this.uses.delete(bucket)
    else this.uses.set(bucket, next)
  }
}
