/**
 * One invocation's view of the documents: reads at a snapshot, its own writes on top, and the read
 * set that the committer checks. Everything a runner asks for arrives here and is not believed.
 */
import type { KeyInterval } from '../../documents/keys.ts'
import type {
  DocumentStore,
  KeyedDocument,
  PhysicalIndex,
  RangeRequest,
  RangeResult,
  StoredDocument,
} from '../../documents/store.ts'
import { sha256 } from '../../system/digests.ts'
import { andThen, type MaybePromise } from '../../system/maybe-promise.ts'
import { documentId, documentIdSource } from '../../value/document-ids.ts'
import { isOfTable, tableOfCanonicalId, tableOfId } from '../../value/ids.ts'
import { flatText } from '../../value/memory/flat-text.ts'
import { decodeStored, encodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import type { PendingCommits } from '../commits/pending-commits.ts'
import { ReadSet } from '../commits/read-set.ts'
import { OperationError, type Violations } from '../invocations/operation-error.ts'
import type { PreparedRelease, PreparedTable } from '../releases/prepared-release.ts'
import { TransactionBounds, type TransactionUsage } from './bounds.ts'
import { checkedFields, checkedValue, storedValue } from './fields.ts'
import { Overlay, type PendingWrite, type Shadows } from './overlay.ts'
import { examined, indexOf, intervalOf, type RangeInput, type RangeOutput } from './ranges.ts'
import { checkUnique } from './unique.ts'

/** Documents that a call is given at most before it asks, and the characters of each. */
const REMEMBERED_MAX = 16
const REMEMBERED_CHARACTERS_MAX = 16_384

export interface TransactionOptions {
  readonly store: DocumentStore
  readonly release: PreparedRelease
  readonly snapshot: number
  /** Commits up to the snapshot that are not durable; null where all are. */
  readonly pending: PendingCommits | null
  /** The invocation's time: every document that it inserts carries it. */
  readonly nowMicros: bigint
  /** Of the invocation, hexadecimal. */
  readonly seed: string
  readonly writable: boolean
}

/** What a document was before this invocation wrote it. */
interface Origin {
  readonly createdAtMicros: bigint
  readonly before: ValueObject | null
  /** Absent for a new document. */
  readonly revision?: number
}

/** What a patch does. */
interface Change {
  readonly fields: unknown
  readonly removed: readonly string[]
}

interface Existing {
  readonly value: ValueObject
  readonly origin: Origin
}

export class Transaction {
  readonly readSet = new ReadSet()
  readonly snapshot: number
  /** Whether a cursor was refused: cursors come from callers. */
  refusedCursor = false
  violations: Violations | null = null
  /** Whether it saw what is not durable: then neither is what its code makes of it. */
  readUnsettled = false
  readonly #options: TransactionOptions
  readonly #overlay = new Overlay()
  /** What its snapshot shows, of the documents that were looked at by their IDs. */
  readonly #documents = new Map<string, StoredDocument | null>()
  readonly #bounds = new TransactionBounds()
  #inserted = 0
  #lastTable = ''

  constructor(options: TransactionOptions) {
    this.#options = options
    this.snapshot = options.snapshot
  }

  get pending(): PendingCommits | null {
    return this.#options.pending
  }

  /** Whether others may have written at its snapshot since: then it saw what never was. */
  get isLost(): boolean {
    return this.#options.pending?.isLost(this.snapshot) === true
  }

  /** Waits until all that it read is. Raises UNAVAILABLE where that will never be. */
  async whenDurable(): Promise<void> {
    await this.#options.pending?.whenDurable(this.snapshot)
  }

  /** Name of the limit that was passed; null where none was. */
  get limit(): string | null {
    return this.#bounds.passed
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
   * Answers what ends the savepoint: it keeps what was written since, or undoes it. What was read
   * stays in the read set either way, since the code has seen it.
   */
  savepoint(): (keeps: boolean) => void {
    const end = this.#overlay.savepoint()
    const { bytesWritten } = this.#bounds
    return (keeps) => {
      end(keeps)
      if (!keeps) this.#bounds.bytesWritten = bytesWritten
    }
  }

  /** In the order in which documents were first written. */
  writes(): readonly PendingWrite[] {
    return this.#overlay.writes()
  }

  /**
   * Those of the documents that memory has, without reading them: what of them the code reads, it
   * must ask for.
   */
  remembered(ids: readonly string[]): readonly StoredDocument[] {
    const { store, pending, release } = this.#options
    const found: StoredDocument[] = []
    for (const id of ids) {
      if (!release.tables.has(this.#tableNameOf(id))) continue
      const early = pending?.find(id, this.snapshot)
      const document = early === undefined ? store.findCached(id, this.snapshot) : early
      if (document == null || document.text.length > REMEMBERED_CHARACTERS_MAX) continue
      this.readUnsettled ||= early !== undefined
      this.#documents.set(id, document)
      found.push(document)
      if (found.length === REMEMBERED_MAX) break
    }
    return found
  }

  get(id: string): MaybePromise<StoredDocument | null> {
    this.#table(this.#tableOf(id), 'get')
    return this.#current(id)
  }

  range(input: RangeInput): MaybePromise<RangeOutput> {
    const table = this.#table(input.table, 'table')
    const physical = indexOf(table, input.index)
    const interval = intervalOf(table, physical, input)
    const shadows = this.#overlay.within(physical, interval, input.order)
    const { lower, upper } = shadows.rest ?? interval
    const request: RangeRequest = {
      index: physical.id,
      lower,
      upper,
      order: input.order,
      // Documents that this invocation wrote are skipped below, so that much more is asked for.
      // They were counted when they were read to be written.
      limit: input.limit + shadows.hidden,
      textUnitsMax: this.#bounds.textUnitsLeft + shadows.hiddenUnits + 1,
      snapshot: this.snapshot,
    }
    const { store, pending } = this.#options
    const isUnsettled = pending?.touch(physical.id, interval, this.snapshot) === true
    const rows = isUnsettled ? this.#settledRange(request) : store.range(request)
    return rows instanceof Promise
      ? this.#seenLater(physical, interval, input, { rows, shadows })
      : this.#seen(physical, interval, input, { rows, shadows })
  }

  async #settledRange(request: RangeRequest): Promise<RangeResult> {
    await this.whenDurable()
    return this.#options.store.range(request)
  }

  async #seenLater(
    physical: PhysicalIndex,
    interval: KeyInterval,
    input: RangeInput,
    { rows, shadows }: { readonly rows: Promise<RangeResult>; readonly shadows: Shadows },
  ): Promise<RangeOutput> {
    return this.#seen(physical, interval, input, { rows: await rows, shadows })
  }

  /** Counts and notes what a range found, with the invocation's own writes in it. */
  #seen(
    { id: index }: PhysicalIndex,
    interval: KeyInterval,
    { order, limit }: RangeInput,
    { rows, shadows }: { readonly rows: RangeResult; readonly shadows: Shadows },
  ): RangeOutput {
    const merged = this.#overlay.merge(rows, shadows, { index, interval, order, limit })
    this.readSet.addInterval(index, examined(interval, order, merged.examinedTo))
    const documents = merged.documents.map(({ document }) => document)
    for (const document of documents) this.#bounds.countRead(document.text)
    if (this.#options.writable) this.#noteAll(rows.documents)
    return { documents, done: merged.done, lastKey: merged.documents.at(-1)?.key ?? null }
  }

  /** The new document's ID. */
  insert(tableName: string, fields: unknown): MaybePromise<string> {
    const table = this.#writableTable(tableName, 'insert')
    const value = checkedFields(table, fields, 'insert', tableName)
    const { nowMicros, seed } = this.#options
    const count = this.#inserted++
    const digest = sha256(documentIdSource(seed, count))
    const id = documentId(tableName, { nowMicros, count, digest })
    const written = this.#write(table, id, { createdAtMicros: nowMicros, before: null }, value)
    return written instanceof Promise ? answerWith(written, id) : id
  }

  /** Sets the given fields and removes the named optional ones. */
  patch(id: string, fields: unknown, removed: readonly string[]): MaybePromise<void> {
    const table = this.#writableTable(this.#tableOf(id), 'patch')
    const existing = this.#existing(id, 'patch')
    const change = { fields, removed }
    return existing instanceof Promise
      ? this.#patchLater(table, id, existing, change)
      : this.#patch(table, id, existing, change)
  }

  async #patchLater(
    table: PreparedTable,
    id: string,
    existing: Promise<Existing>,
    change: Change,
  ): Promise<void> {
    return this.#patch(table, id, await existing, change)
  }

  #patch(
    table: PreparedTable,
    id: string,
    before: Existing,
    { fields, removed }: Change,
  ): MaybePromise<void> {
    const patch = storedValue(fields, 'patch', id)
    if (!(patch instanceof Map))
      throw new OperationError('TypeError', 'patch takes an object of fields')
    const merged = new Map(before.value)
    for (const name of removed) merged.delete(name)
    for (const [name, value] of patch as ValueObject) merged.set(name, value)
    const value = checkedValue(table, merged, 'patch', id)
    return this.#write(table, id, before.origin, value)
  }

  replace(id: string, fields: unknown): MaybePromise<void> {
    const table = this.#writableTable(this.#tableOf(id), 'replace')
    return andThen(this.#existing(id, 'replace'), ({ origin }) =>
      this.#write(table, id, origin, checkedFields(table, fields, 'replace', id)),
    )
  }

  delete(id: string): MaybePromise<void> {
    const table = this.#writableTable(this.#tableOf(id), 'delete')
    return andThen(this.#existing(id, 'delete'), ({ origin }) =>
      this.#write(table, id, origin, null),
    )
  }

  #tableOf(id: string): string {
    if (this.#documents.has(id)) return this.#tableNameOf(id)
    const table = tableOfId(id)
    if (table === null)
      throw new OperationError('TypeError', `"${id.slice(0, 100)}" is not a document ID`)
    return table
  }

  /** Of a canonical ID; most that a call uses one after the other are of one table. */
  #tableNameOf(id: string): string {
    if (!isOfTable(this.#lastTable, id)) this.#lastTable = tableOfCanonicalId(id)
    return this.#lastTable
  }

  #table(name: string, verb: string): PreparedTable {
    const table = this.#options.release.tables.get(name)
    if (table !== undefined) return table
    const rule = `schema.ts declares no table "${name.slice(0, 64)}"`
    throw new OperationError('TypeError', `ctx.db.${verb}: ${rule}`)
  }

  #writableTable(name: string, verb: string): PreparedTable {
    if (this.#options.writable) return this.#table(name, verb)
    const rule = 'a Query cannot write; make it a mutation'
    throw new OperationError('TypeError', `ctx.db.${verb}: ${rule}`)
  }

  #current(id: string): MaybePromise<StoredDocument | null> {
    this.readSet.addDocument(id)
    const own = this.#overlay.get(id)
    if (own !== undefined) return own.after === null ? null : own.document
    const seen = this.#documents.get(id)
    if (seen !== undefined) return this.#counted(seen)
    const { store, pending } = this.#options
    const early = pending?.find(id, this.snapshot)
    this.readUnsettled ||= early !== undefined
    const stored = early !== undefined ? early : store.read(id, this.snapshot)
    return stored instanceof Promise ? this.#noteLater(id, stored) : this.#note(id, stored)
  }

  /** What a Mutation found is what it changes most: the store may not have it in memory. */
  #noteAll(found: readonly KeyedDocument[]): void {
    for (const { document } of found) this.#documents.set(document.id, document)
  }

  #note(id: string, stored: StoredDocument | null): StoredDocument | null {
    this.#documents.set(id, stored)
    return this.#counted(stored)
  }

  async #noteLater(
    id: string,
    stored: Promise<StoredDocument | null>,
  ): Promise<StoredDocument | null> {
    return this.#note(id, await stored)
  }

  #counted(stored: StoredDocument | null): StoredDocument | null {
    if (stored !== null) this.#bounds.countRead(stored.text)
    return stored
  }

  #existing(id: string, verb: string): MaybePromise<Existing> {
    const current = this.#current(id)
    return current instanceof Promise
      ? this.#existingLater(id, verb, current)
      : this.#existingOf(id, verb, current)
  }

  async #existingLater(
    id: string,
    verb: string,
    current: Promise<StoredDocument | null>,
  ): Promise<Existing> {
    return this.#existingOf(id, verb, await current)
  }

  #existingOf(id: string, verb: string, current: StoredDocument | null): Existing {
    if (current === null) {
      throw new OperationError('Error', `ctx.db.${verb}: there is no document "${id}"`)
    }
    const own = this.#overlay.get(id)
    const value = own?.after ?? (decodeStored(current.text) as ValueObject)
    const before = own === undefined ? value : own.before
    const revision = current.sequence
    return { value, origin: { createdAtMicros: current.createdAtMicros, before, revision } }
  }

  #write(
    table: PreparedTable,
    id: string,
    origin: Origin,
    after: ValueObject | null,
  ): MaybePromise<void> {
    // Many keep it: as a tree of its parts it has twenty times as many objects.
    const text = after === null ? null : flatText(encodeStored(after))
    const isFirst = this.#overlay.get(id) === undefined
    this.#bounds.countWritten(text, this.#overlay.size + (isFirst ? 1 : 0))
    const write: PendingWrite = {
      id,
      table: table.manifest.name,
      createdAtMicros: origin.createdAtMicros,
      before: origin.before,
      beforeUnits: this.#documents.get(id)?.text.length ?? 0,
      after,
      document: {
        id,
        createdAtMicros: origin.createdAtMicros,
        sequence: origin.revision ?? 0,
        text: text ?? '{}',
      },
    }
    const isUnbound = after === null || table.uniqueIndexes.length === 0
    const checked = isUnbound ? undefined : checkUnique(this, table, id, after)
    if (checked instanceof Promise) return checked.then(() => this.#overlay.set(write))
    return this.#overlay.set(write)
  }
}

async function answerWith<T>(done: Promise<void>, value: T): Promise<T> {
  await done
  return value
}
