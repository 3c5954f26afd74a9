/**
 * The transaction of one attempt: reads at a snapshot, buffered writes on top, and the read set
 * that the committer checks. The arguments of its operations come from an untrusted runner.
 */
import type { KeyInterval } from '../../documents/keys.ts'
import type {
  KeyedDocument,
  PhysicalIndex,
  RangeRequest,
  RangeResult,
  StoredDocument,
} from '../../documents/store.ts'
import { sha256 } from '../../system/digests.ts'
import { andThen, type MaybePromise } from '../../system/maybe-promise.ts'
import { documentId, documentIdSource } from '../../value/document-ids.ts'
import type { ValueObject } from '../../value/values.ts'
import { DOCUMENT_EXISTS, OperationError, type Violations } from '../calls/operation-error.ts'
import type { BufferedWrite } from '../commits/document-writes.ts'
import type { PendingCommits } from '../commits/pending-commits.ts'
import { mergePending, type PendingRange } from '../commits/pending-ranges.ts'
import { ReadSet } from '../commits/read-set.ts'
import type { DocumentProjection } from '../tables/document-projection.ts'
import type { PreparedTable } from '../tables/prepared-tables.ts'
import { bufferedWrite, type Existing, existingOf, type Origin } from './buffered-writes.ts'
import { patchedFields, storedFields, storedValue, visibleFields } from './checked-fields.ts'
import { type OverlaidRange, Overlay } from './overlay.ts'
import { intervalOf, namedIndex, type RangeInput, type RangeOutput, scannedPart } from './ranges.ts'
import { TransactionBounds, type TransactionUsage } from './transaction-bounds.ts'
import type { TransactionOptions } from './transaction-options.ts'
import { TransactionTables } from './transaction-tables.ts'
import { checkUnique } from './unique-indexes.ts'

/** Most documents that are prefetched for a call, and most characters of each. */
const PREFETCHED_MAX = 16
const PREFETCHED_CHARACTERS_MAX = 16_384

/** Most UTF-16 units of a range that is prefetched. */
const PREFETCHED_RANGE_UNITS_MAX = 65_536

/** A range that was read before the code asked for it. */
interface PrefetchedRange {
  readonly request: RangeRequest
  readonly rows: RangeResult
}

/** The rows of a range that was read, and what the transaction does with them. */
interface ReadRange<Rows> {
  readonly rows: Rows
  readonly overlaid: OverlaidRange
  readonly projection: DocumentProjection | null
}

export class Transaction {
  readonly readSet: ReadSet
  readonly snapshot: number
  /** True if a cursor was rejected. Cursors come from callers, so the fault is theirs. */
  hasRejectedCursor = false
  violations: Violations | null = null
  /** True if it read a pending commit: its outcome then depends on that commit. */
  hasReadPending = false
  readonly #options: TransactionOptions
  readonly #overlay: Overlay
  /** The versions at the snapshot of documents that were read before; null for a missing one. */
  readonly #documents: Map<string, StoredDocument | null>
  readonly #bounds: TransactionBounds
  readonly #tables: TransactionTables
  /** The prefetched ranges that the code has not read yet; null if there are none. */
  #prefetched: PrefetchedRange[] | null = null
  #inserted = 0

  /** The transaction whose state this one shares (`asServer`); null for one of its own. */
  readonly #base: Transaction | null
  #server: Transaction | null = null

  constructor(options: TransactionOptions, base: Transaction | null = null) {
    this.#options = options
    this.#base = base
    this.readSet = base?.readSet ?? new ReadSet()
    this.#overlay = base === null ? new Overlay() : base.#overlay
    this.#documents = base === null ? new Map() : base.#documents
    this.#bounds = base === null ? new TransactionBounds() : base.#bounds
    this.snapshot = options.snapshot
    this.#tables = new TransactionTables(options)
  }

  /**
   * Returns this transaction with the tables of the server instead of those of the Release. Both
   * share reads, writes and bounds, and are committed together.
   */
  asServer(): Transaction {
    const { serverTables = new Map() } = this.#options.release
    const release = { tables: new Map(), systemTables: serverTables }
    this.#server ??= new Transaction({ ...this.#options, release, isSystem: true }, this)
    return this.#server
  }

  get pending(): PendingCommits | null {
    return this.#options.pending
  }

  /** Returns whether commits up to its snapshot were rolled back: it read what never existed. */
  get isRolledBack(): boolean {
    return this.#options.pending?.isRolledBack(this.snapshot) === true
  }

  /** Waits until its snapshot is durable. Rejects as `PendingCommits.whenDurable` does. */
  async whenDurable(): Promise<void> {
    await this.#options.pending?.whenDurable(this.snapshot)
  }

  /** The exceeded limit with its bound; null if none was exceeded. */
  get limit(): string | null {
    return this.#bounds.exceeded
  }

  get hasRead(): boolean {
    return this.readSet.count > 0
  }

  get isWritable(): boolean {
    return this.#options.writable
  }

  get usage(): TransactionUsage {
    return this.#bounds.usage(this.#overlay.size)
  }

  /**
   * Opens a savepoint and returns the function that ends it, which commits the writes since or
   * undoes them. The read set keeps all reads, since the code has observed them.
   */
  savepoint(): (commits: boolean) => void {
    const end = this.#overlay.savepoint()
    const { bytesWritten } = this.#bounds
    return (commits) => {
      end(commits)
      if (!commits) this.#bounds.bytesWritten = bytesWritten
    }
  }

  /** Returns the writes in the order in which their documents were first written. */
  writes(): readonly BufferedWrite[] {
    return this.#overlay.writes()
  }

  /**
   * Returns those of the documents that are in memory, for a speculative call; with `reads` also
   * those that the store reads without a round trip. They are not in the read set until the code
   * reads them, which the runner reports as an operation.
   */
  prefetch(ids: readonly string[], reads: boolean): readonly StoredDocument[] {
    const { store, pending } = this.#options
    const found: StoredDocument[] = []
    for (const id of ids) {
      const table = this.#tables.find(id)
      if (table === undefined) continue
      const version = pending?.find(id, this.snapshot)
      const stored = () =>
        reads ? store.readAtOnce(id, this.snapshot) : store.findCached(id, this.snapshot)
      const document = version === undefined ? stored() : version
      if (document == null) continue
      this.hasReadPending ||= version !== undefined
      this.#documents.set(id, document)
      if (document.text.length > PREFETCHED_CHARACTERS_MAX) continue
      found.push(table.projection === null ? document : table.projection.read(document))
      if (found.length === PREFETCHED_MAX) break
    }
    return found
  }

  /** Returns the document as the Release sees it. */
  get(id: string): MaybePromise<StoredDocument | null> {
    const { projection } = this.#tableOf(id, 'get')
    const current = this.#current(id)
    if (projection === null) return current
    return andThen(current, (stored) => stored && this.#projected(projection, stored))
  }

  /** Returns the number of fields of a document that the Release does not see. */
  countHidden(id: string): MaybePromise<number> {
    const { projection } = this.#tableOf(id, 'get')
    if (projection === null) return 0
    return andThen(this.#current(id), (stored) => (stored ? projection.countHidden(stored) : 0))
  }

  /**
   * Reads a range for a speculative call. Like a prefetched document, it is not in the read set
   * until the code reads it. Returns null if it is too large, and where the code would not get
   * what this reads: tables of the server change with operations that are not writes of documents.
   */
  prefetchRange(input: RangeInput): MaybePromise<RangeOutput | null> {
    const table = this.#tables.readable(input.table, 'table')
    if (!this.#options.release.tables.has(input.table) || this.#overlay.size > 0) return null
    const physical = namedIndex(table, input.index)
    const { lower, upper } = intervalOf(table, physical, input)
    const request: RangeRequest = {
      index: physical.id,
      lower,
      upper,
      order: input.order,
      limit: input.limit,
      textUnitsMax: PREFETCHED_RANGE_UNITS_MAX,
      snapshot: this.snapshot,
    }
    return andThen(this.#rows(physical, request), (rows) => {
      const { documents, exhausted } = rows
      if (!exhausted && documents.length < input.limit) return null
      this.#prefetched ??= []
      this.#prefetched.push({ request, rows })
      const stored = documents.map(({ document }) => document)
      const { projection } = table
      return {
        documents: projection === null ? stored : stored.map((each) => projection.read(each)),
        done: exhausted,
        lastKey: documents.at(-1)?.key ?? null,
      }
    })
  }

  /** Returns whether the code has not read a range that was prefetched. */
  get hasUnreadRanges(): boolean {
    return this.#prefetched !== null && this.#prefetched.length > 0
  }

  /** Takes the rows of a prefetched range; null if it was not prefetched. */
  #takePrefetched({ index, lower, upper, order, limit }: RangeRequest): RangeResult | null {
    const prefetched = this.#prefetched
    if (prefetched === null) return null
    for (const [i, { request, rows }] of prefetched.entries()) {
      const isSame = request.index === index && request.order === order && request.limit === limit
      if (!isSame || request.lower !== lower || request.upper !== upper) continue
      prefetched.splice(i, 1)
      return rows
    }
    return null
  }

  range(input: RangeInput): MaybePromise<RangeOutput> {
    const table = this.#tables.readable(input.table, 'table')
    const physical = namedIndex(table, input.index)
    return this.rangeWithin(table, physical, intervalOf(table, physical, input), input)
  }

  /** Reads a range of an index of the table, in an interval of its keys. */
  rangeWithin(
    { projection }: PreparedTable,
    physical: PhysicalIndex,
    interval: KeyInterval,
    input: Pick<RangeInput, 'order' | 'limit' | 'textUnitsMax'>,
  ): MaybePromise<RangeOutput> {
    const overlaid = this.#overlay.within(physical, interval, input.order)
    const { lower, upper } = overlaid.unread ?? interval
    const request: RangeRequest = {
      index: physical.id,
      lower,
      upper,
      order: input.order,
      // The merge drops the stored versions of documents that this transaction wrote, so the
      // request asks for as many more. They counted as read before they were written.
      limit: input.limit + overlaid.hidden,
      textUnitsMax:
        Math.min(this.#bounds.textUnitsLeft + 1, input.textUnitsMax ?? Number.POSITIVE_INFINITY) +
        overlaid.hiddenUnits,
      snapshot: this.snapshot,
    }
    const rows = this.#takePrefetched(request) ?? this.#rows(physical, request)
    return rows instanceof Promise
      ? this.#outputOfPromise(physical, interval, input, { rows, overlaid, projection })
      : this.#output(physical, interval, input, { rows, overlaid, projection })
  }

  /** Reads a range at the snapshot, without the writes of this transaction. */
  #rows(physical: PhysicalIndex, request: RangeRequest): MaybePromise<RangeResult> {
    const { store, pending } = this.#options
    const written = pending?.range(physical, request, this.snapshot) ?? null
    if (written === null) return store.range(request)
    ;(this.#base ?? this).hasReadPending = true
    return written === 'many' ? this.#durableRange(request) : this.#pendingRange(request, written)
  }

  /** Waits for the pending commits in the interval, then reads the range from the store. */
  async #durableRange(request: RangeRequest): Promise<RangeResult> {
    await this.whenDurable()
    return this.#options.store.range(request)
  }

  /** Reads the range from the store, and merges the pending versions of its documents. */
  #pendingRange(request: RangeRequest, written: PendingRange): MaybePromise<RangeResult> {
    const limit = request.limit + written.ids.size
    return andThen(
      this.#options.store.range({ ...request, limit }),
      (rows) => mergePending(rows, written, request) ?? this.#durableRange(request),
    )
  }

  async #outputOfPromise(
    physical: PhysicalIndex,
    interval: KeyInterval,
    input: Pick<RangeInput, 'order' | 'limit'>,
    read: ReadRange<Promise<RangeResult>>,
  ): Promise<RangeOutput> {
    return this.#output(physical, interval, input, { ...read, rows: await read.rows })
  }

  /** Merges the rows with the buffered writes, and adds them to the read set and the bounds. */
  #output(
    { id: index }: PhysicalIndex,
    interval: KeyInterval,
    { order, limit }: Pick<RangeInput, 'order' | 'limit'>,
    { rows, overlaid, projection }: ReadRange<RangeResult>,
  ): RangeOutput {
    const merged = this.#overlay.merge(rows, overlaid, { index, interval, order, limit })
    this.readSet.addInterval(index, scannedPart(interval, order, merged.scannedTo))
    const stored = merged.documents.map(({ document }) => document)
    for (const document of stored) this.#bounds.countRead(document.text)
    const documents = projection ? stored.map((each) => this.#projected(projection, each)) : stored
    if (this.#options.writable) this.#cacheAll(rows.documents)
    return { documents, done: merged.done, lastKey: merged.documents.at(-1)?.key ?? null }
  }

  /** Returns the new document's ID. */
  insert(tableName: string, fields: unknown): MaybePromise<string> {
    const table = this.#tables.writable(tableName, 'insert')
    const about = { verb: 'insert', of: tableName }
    const value = storedFields(table, null, storedValue(fields, 'insert', tableName), about)
    const { nowMicros, seed } = this.#options
    const count = this.#inserted++
    const digest = sha256(documentIdSource(seed, count))
    const id = documentId(tableName, { nowMicros, count, digest })
    const writing = this.#write(table, id, { createdAtMicros: nowMicros, before: null }, value)
    return writing instanceof Promise ? writing.then(() => id) : id
  }

  /**
   * Inserts a document whose ID the caller chose, with decoded fields. Throws OperationError where
   * it exists.
   */
  insertAs(
    id: string,
    { createdAtMicros, fields }: { readonly createdAtMicros: bigint; readonly fields: ValueObject },
  ): MaybePromise<void> {
    const table = this.#writableTableOf(id, 'insert')
    const value = storedFields(table, null, fields, { verb: 'insert', of: id })
    return andThen(this.#current(id), (current) => {
      if (current !== null) throw new OperationError(DOCUMENT_EXISTS, `"${id}" exists`)
      return this.#write(table, id, { createdAtMicros, before: null }, value)
    })
  }

  /** Sets the given fields and removes the named optional ones. */
  patch(id: string, fields: unknown, removed: readonly string[]): MaybePromise<void> {
    const table = this.#writableTableOf(id, 'patch')
    return andThen(this.#existing(id, 'patch'), ({ value, origin }) => {
      const patched = patchedFields(table, value, { fields, removed }, id)
      return this.#write(table, id, origin, patched)
    })
  }

  /**
   * Replaces the decoded fields of a document that the Release sees by those that `change` returns,
   * for changes of the server itself. Passes on what `change` throws; nothing is written then.
   */
  update(id: string, change: (fields: ValueObject) => ValueObject): MaybePromise<void> {
    const table = this.#writableTableOf(id, 'update')
    return andThen(this.#existing(id, 'update'), ({ value, origin }) => {
      const changed = change(visibleFields(table, value))
      const stored = storedFields(table, value, changed, { verb: 'update', of: id })
      return this.#write(table, id, origin, stored)
    })
  }

  /**
   * Replaces the stored fields of a document, those that the Release does not see included, unless
   * `change` returns them as they are. They are not checked: no Release declares what it removes.
   */
  rewrite(id: string, change: (fields: ValueObject) => ValueObject): MaybePromise<void> {
    const table = this.#writableTableOf(id, 'update')
    return andThen(this.#existing(id, 'update'), ({ value, origin }) => {
      const changed = change(value)
      if (changed !== value) this.#overlay.set(this.#counted(table, id, origin, changed))
    })
  }

  replace(id: string, fields: unknown): MaybePromise<void> {
    const table = this.#writableTableOf(id, 'replace')
    return andThen(this.#existing(id, 'replace'), ({ value, origin }) => {
      const written = storedValue(fields, 'replace', id)
      const about = { verb: 'replace', of: id }
      return this.#write(table, id, origin, storedFields(table, value, written, about))
    })
  }

  delete(id: string): MaybePromise<void> {
    const table = this.#writableTableOf(id, 'delete')
    return andThen(this.#existing(id, 'delete'), ({ origin }) =>
      this.#write(table, id, origin, null),
    )
  }

  #tableOf(id: string, verb: string): PreparedTable {
    return this.#tables.readable(this.#tables.nameOf(id, this.#documents.has(id)), verb)
  }

  #writableTableOf(id: string, verb: string): PreparedTable {
    return this.#tables.writable(this.#tables.nameOf(id, this.#documents.has(id)), verb)
  }

  #current(id: string): MaybePromise<StoredDocument | null> {
    this.readSet.addDocument(id)
    const written = this.#overlay.get(id)
    if (written !== undefined) return written.after === null ? null : written.document
    const cached = this.#documents.get(id)
    if (cached !== undefined) return this.#countedRead(cached)
    const { store, pending } = this.#options
    const version = pending?.find(id, this.snapshot)
    if (version !== undefined) (this.#base ?? this).hasReadPending = true
    const stored = version !== undefined ? version : store.read(id, this.snapshot)
    return stored instanceof Promise
      ? stored.then((document) => this.#cache(id, document))
      : this.#cache(id, stored)
  }

  /** Caches the documents of a range: the store may not, and a Mutation often writes them. */
  #cacheAll(found: readonly KeyedDocument[]): void {
    for (const { document } of found) this.#documents.set(document.id, document)
  }

  #cache(id: string, stored: StoredDocument | null): StoredDocument | null {
    this.#documents.set(id, stored)
    return this.#countedRead(stored)
  }

  #countedRead(stored: StoredDocument | null): StoredDocument | null {
    if (stored !== null) this.#bounds.countRead(stored.text)
    return stored
  }

  /** The longer one of both texts counts, since the Release caused its length or receives it. */
  #projected(projection: DocumentProjection, stored: StoredDocument): StoredDocument {
    const document = projection.read(stored)
    this.#bounds.countUnits(Math.max(0, document.text.length - stored.text.length))
    return document
  }

  #existing(id: string, verb: string): MaybePromise<Existing> {
    const current = this.#current(id)
    return current instanceof Promise
      ? current.then((document) => this.#existingOf(id, verb, document))
      : this.#existingOf(id, verb, current)
  }

  #existingOf(id: string, verb: string, current: StoredDocument | null): Existing {
    if (current === null) {
      throw new OperationError('Error', `ctx.db.${verb}: there is no document "${id}"`)
    }
    return existingOf(current, this.#overlay.get(id))
  }

  #write(
    table: PreparedTable,
    id: string,
    origin: Origin,
    after: ValueObject | null,
  ): MaybePromise<void> {
    const write = this.#counted(table, id, origin, after)
    const isUnconstrained = after === null || table.uniqueIndexes.length === 0
    const checked = isUnconstrained ? undefined : checkUnique(this, table, id, after)
    if (checked instanceof Promise) return checked.then(() => this.#overlay.set(write))
    return this.#overlay.set(write)
  }

  /** Returns the write, which counts towards the bounds and is not buffered yet. */
  #counted(
    table: PreparedTable,
    id: string,
    origin: Origin,
    after: ValueObject | null,
  ): BufferedWrite {
    const isFirst = this.#overlay.get(id) === undefined
    const beforeUnits = this.#documents.get(id)?.text.length ?? 0
    const write = bufferedWrite(table, id, { origin, after, beforeUnits })
    const documentsWritten = this.#overlay.size + (isFirst ? 1 : 0)
    this.#bounds.countWritten(write, documentsWritten, table.projection)
    return write
  }
}
