/**
 * The document store of a process that only reads: another process of the server commits, and tells
 * of each commit and each change of the schema in their order.
 */
import { Fault } from '../errors/fault.ts'
import type { MaybePromise } from '../system/maybe-promise.ts'
import type { FieldShape } from '../value/schema/field-shapes.ts'
import type { CompactTexts } from './compact-texts.ts'
import { definitionKey, IndexTable } from './index-rows.ts'
import type {
  ChangesPage,
  DocumentStore,
  DocumentVersion,
  IndexDefinition,
  OperationRecord,
  PhysicalIndex,
  PruneResult,
  RangeRequest,
  RangeResult,
  ScanPage,
  StoredDocument,
  StoreSchema,
  StoreStatus,
} from './store.ts'
import type { StoreState } from './store-state.ts'

/** Reads of the stored documents; the caller has checked that the snapshot is readable. */
export interface DocumentReads {
  /** True if reads return their result at once. */
  readonly isEmbedded: boolean
  /** `latest` means that no newer sequence is known. */
  read(id: string, snapshot: number, latest: boolean): MaybePromise<StoredDocument | null>
  range(request: RangeRequest, table: string, latest: boolean): MaybePromise<RangeResult>
  operation(operationId: string): MaybePromise<OperationRecord | null>
  /** Returns memory that reads can do without. */
  trim(): void
  /** Called for each commit before reads see it. */
  followed(): void
  close(): Promise<void>
}

export interface FollowedParts {
  /** It has the newest sequence that was announced. */
  readonly state: StoreState
  readonly texts: CompactTexts
  /** They keep versions in `state`, and expand texts by `texts`. */
  readonly reads: DocumentReads
}

export class FollowedDocuments implements DocumentStore {
  readonly #state: StoreState
  readonly #reads: DocumentReads
  readonly #texts: CompactTexts
  #indexes = new IndexTable([])
  #shapes: ReadonlyMap<string, FieldShape> = new Map()

  constructor({ state, texts, reads }: FollowedParts, schema: StoreSchema) {
    this.#state = state
    this.#texts = texts
    this.#reads = reads
    this.followSchema(schema)
  }

  get status(): StoreStatus {
    return this.#state.status
  }

  get latestSequence(): number {
    return this.#state.latestSequence
  }

  /** Notes a durable commit. Sequences ascend. */
  followCommit(sequence: number, documents: readonly string[]): void {
    this.#reads.followed()
    this.#state.followCommit(sequence, documents)
  }

  followSchema({ indexes, shapes, names }: StoreSchema): void {
    for (const [table, of] of names) this.#texts.set(table, of)
    this.#indexes = new IndexTable(indexes)
    this.#shapes = shapes
    this.#state.schemaChanged()
  }

  findCached(id: string, snapshot: number): StoredDocument | undefined {
    return this.#state.newest.find(id, snapshot)
  }

  read(id: string, snapshot: number): MaybePromise<StoredDocument | null> {
    this.#state.checkReadable(snapshot)
    const cached = this.#state.newest.find(id, snapshot)
    return cached ?? this.#reads.read(id, snapshot, snapshot >= this.latestSequence)
  }

  readAtOnce(id: string, snapshot: number): StoredDocument | null | undefined {
    const cached = this.findCached(id, snapshot)
    if (cached !== undefined || !this.#reads.isEmbedded) return cached
    return this.read(id, snapshot) as StoredDocument | null
  }

  range(request: RangeRequest): MaybePromise<RangeResult> {
    this.#state.checkReadable(request.snapshot)
    const { table } = this.#state.checkRange(request, this.#indexes.get(request.index))
    return this.#reads.range(request, table, request.snapshot >= this.latestSequence)
  }

  operation(operationId: string): MaybePromise<OperationRecord | null> {
    this.#state.checkOpen()
    return this.#reads.operation(operationId)
  }

  trim(): void {
    if (this.status.state !== 'open' || !this.#reads.isEmbedded) return
    this.#state.newest.clear()
    this.#reads.trim()
  }

  versions(): Promise<ScanPage<DocumentVersion>> {
    return notOwner()
  }

  operations(): Promise<ScanPage<OperationRecord>> {
    return notOwner()
  }

  changedVersions(): Promise<ChangesPage | null> {
    return notOwner()
  }

  newOperations(): Promise<ScanPage<OperationRecord>> {
    return notOwner()
  }

  listIndexes(): readonly PhysicalIndex[] {
    return this.#indexes.listVisible()
  }

  /** Throws UNAVAILABLE unless the committing process has built all of them. */
  async ensureIndexes(definitions: readonly IndexDefinition[]): Promise<readonly PhysicalIndex[]> {
    const known = new Map(this.listIndexes().map((index) => [definitionKey(index), index]))
    return definitions.map((definition) => {
      const index = known.get(definitionKey(definition))
      if (index?.state === 'ready') return index
      throw new Fault('UNAVAILABLE', { detail: 'documents: an index is not ready yet' })
    })
  }

  fieldShapes(): ReadonlyMap<string, FieldShape> {
    return this.#shapes
  }

  schema(): StoreSchema {
    const names = this.#texts.names()
    return { indexes: [...this.#indexes.rows()], shapes: this.#shapes, names }
  }

  onSchemaChange(listener: () => void): void {
    this.#state.onSchemaChange(listener)
  }

  commit(): Promise<void> {
    return onlyRead()
  }

  buildIndex(): Promise<void> {
    return onlyRead()
  }

  dropIndex(): Promise<void> {
    return onlyRead()
  }

  setFieldShapes(): Promise<void> {
    return onlyRead()
  }

  prune(): Promise<PruneResult> {
    return onlyRead()
  }

  async close(): Promise<void> {
    if (this.#state.close()) await this.#reads.close()
  }
}

function notOwner(): Promise<never> {
  const detail = 'documents: only the process that commits makes backups'
  return Promise.reject(new Fault('UNAVAILABLE', { detail }))
}

function onlyRead(): Promise<never> {
  return Promise.reject(new Fault('UNAVAILABLE', { detail: 'documents: this process only reads' }))
}
