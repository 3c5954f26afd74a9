/** The document store in one SQLite file. Reads run on the calling thread, writes on another. */
import type { Database } from 'bun:sqlite'
import type { Fault } from '../../errors/fault.ts'
import { DEFAULT_PLAN, type MemoryPlan } from '../../system/memory/memory-plan.ts'
import type { FieldShape } from '../../value/schema/field-shapes.ts'
import type { CompactTexts } from '../compact-texts.ts'
import { type IndexTable, visible } from '../index-rows.ts'
import type {
  ChangesPage,
  ChangesRequest,
  CommitBatch,
  DocumentStore,
  DocumentVersion,
  IndexDefinition,
  OperationRecord,
  PhysicalIndex,
  PruneRequest,
  PruneResult,
  RangeRequest,
  RangeResult,
  ScanPage,
  ScanRequest,
  StoredDocument,
  StoreSchema,
  StoreStatus,
} from '../store.ts'
import { IndexBuilds, StoreState } from '../store-state.ts'
import { encodeBatch } from './batch-messages.ts'
import { Changes } from './changes.ts'
import { type OpenOptions, openDatabase, storeFault } from './databases.ts'
import { findNewestOperationId, Reads } from './reads.ts'
import { Scans } from './scans.ts'
import { WRITER_SOURCE } from './writer.generated.ts'
import type { WriterJob, WriterResults } from './writer-jobs.ts'
import { loadFieldShapes, loadState } from './writer-state.ts'
import { WriterThread } from './writer-threads.ts'

/**
 * Opens the store. The caller holds the lock of the Product root, since a second writer would break
 * the sequences. Throws UNAVAILABLE where the file cannot be opened and PRODUCT_CORRUPT where it
 * breaks an invariant.
 */
export async function openSqliteDocuments(
  path: string,
  options: OpenOptions = { mayBeNew: true },
): Promise<DocumentStore> {
  const database = openDatabase(path, options)
  const store = new SqliteDocuments(database, options.memory)
  await store.start(path, options)
  return store
}

class SqliteDocuments implements DocumentStore {
  readonly #database: Database
  readonly #state: StoreState
  readonly #reads: Reads
  readonly #scans: Scans
  readonly #changes: Changes
  readonly #writer: WriterThread
  readonly #indexes: IndexTable
  readonly #texts: CompactTexts
  readonly #shapes: Map<string, FieldShape>
  readonly #builds: IndexBuilds
  /** Number of writer jobs that are pending. */
  #pendingJobs = 0

  constructor(database: Database, memory?: MemoryPlan) {
    const { latestSequence, indexes, texts } = loadState(database)
    const state = new StoreState(latestSequence, findNewestOperationId(database), memory)
    this.#database = database
    this.#state = state
    this.#reads = new Reads(database, state.newest, texts)
    this.#scans = new Scans(database, texts)
    this.#changes = new Changes(database, texts)
    this.#indexes = indexes
    this.#texts = texts
    this.#shapes = loadFieldShapes(database)
    this.#builds = new IndexBuilds({
      state,
      findIndex: (id) => indexes.get(id),
      fillChunk: async (id) => {
        const row = await this.#write({ kind: 'build', index: id })
        if (row === null) return null
        indexes.set(row)
        state.schemaChanged()
        return row
      },
    })
    this.#writer = new WriterThread({
      source: WRITER_SOURCE,
      onFailed: (detail) => state.fail(detail),
    })
  }

  async start(path: string, options: OpenOptions): Promise<void> {
    const { isTemporary = false, isShared = false, memory = DEFAULT_PLAN } = options
    try {
      const cacheMib = memory.writerCacheMib
      await this.#write({ kind: 'open', path, isTemporary, isShared, cacheMib })
    } catch (error) {
      await this.close()
      throw error
    }
  }

  get status(): StoreStatus {
    return this.#state.status
  }

  get latestSequence(): number {
    return this.#state.latestSequence
  }

  findCached(id: string, snapshot: number): StoredDocument | undefined {
    return this.#state.newest.find(id, snapshot)
  }

  read(id: string, snapshot: number): StoredDocument | null {
    this.#state.checkReadable(snapshot)
    try {
      this.#openReadTransaction()
      return this.#reads.read(id, snapshot, snapshot >= this.#state.latestSequence)
    } catch (error) {
      throw this.#faultOf(error)
    }
  }

  readAtOnce(id: string, snapshot: number): StoredDocument | null {
    return this.read(id, snapshot)
  }

  range(request: RangeRequest): RangeResult {
    this.#state.checkReadable(request.snapshot)
    const { table } = this.#state.checkRange(request, this.#indexes.get(request.index))
    try {
      this.#openReadTransaction()
      return this.#reads.range(request, table, request.snapshot >= this.#state.latestSequence)
    } catch (error) {
      throw this.#faultOf(error)
    }
  }

  operation(operationId: string): OperationRecord | null {
    this.#state.checkOpen()
    if (!this.#state.mayHaveOperation(operationId)) return null
    try {
      this.#openReadTransaction()
      return this.#reads.operation(operationId)
    } catch (error) {
      throw this.#faultOf(error)
    }
  }

  versions(request: ScanRequest): ScanPage<DocumentVersion> {
    return this.#scan(request, () => this.#scans.versions(request))
  }

  operations(request: ScanRequest): ScanPage<OperationRecord> {
    return this.#scan(request, () => this.#scans.operations(request))
  }

  changedVersions(request: ChangesRequest): ChangesPage {
    return this.#scan(request, () => this.#changes.versions(request))
  }

  newOperations(request: ChangesRequest): ScanPage<OperationRecord> {
    return this.#scan(request, () => this.#changes.operations(request))
  }

  #scan<T>({ snapshot }: ScanRequest, read: () => T): T {
    this.#state.checkReadable(snapshot)
    try {
      this.#openReadTransaction()
      return read()
    } catch (error) {
      throw this.#faultOf(error)
    }
  }

  async commit(batch: CommitBatch): Promise<void> {
    this.#state.beginCommit(batch.transactions)
    await this.#write({ kind: 'commit', ...encodeBatch(batch) })
    this.#state.applyCommit(batch.transactions)
  }

  listIndexes(): readonly PhysicalIndex[] {
    return this.#indexes.listVisible()
  }

  async ensureIndexes(definitions: readonly IndexDefinition[]): Promise<readonly PhysicalIndex[]> {
    this.#state.checkOpen()
    const rows = await this.#write({ kind: 'ensure', definitions })
    // A build may have finished since, so a row that is known is the newer one.
    const ensured = rows.map((row) => this.#indexes.get(row.id) ?? this.#indexes.set(row))
    this.#state.schemaChanged()
    return ensured.map((row) => visible(row)!)
  }

  buildIndex(id: number): Promise<void> {
    return this.#builds.build(id)
  }

  async dropIndex(id: number): Promise<void> {
    this.#state.checkOpen()
    await this.#write({ kind: 'drop', index: id })
    // Only once it is stored: an index that commits no longer maintain must never come back.
    this.#indexes.delete(id)
    this.#state.schemaChanged()
  }

  fieldShapes(): ReadonlyMap<string, FieldShape> {
    return this.#shapes
  }

  async setFieldShapes(shapes: ReadonlyMap<string, FieldShape>): Promise<void> {
    this.#state.checkOpen()
    const names = await this.#write({ kind: 'shapes', shapes })
    for (const [table, named] of names) this.#texts.set(table, named)
    for (const [table, shape] of shapes) this.#shapes.set(table, shape)
    this.#state.schemaChanged()
  }

  schema(): StoreSchema {
    return { indexes: [...this.#indexes.rows()], shapes: this.#shapes, names: this.#texts.names() }
  }

  onSchemaChange(listener: () => void): void {
    this.#state.onSchemaChange(listener)
  }

  async prune(request: PruneRequest): Promise<PruneResult> {
    this.#state.checkOpen()
    const durable = this.#reads.sequenceAt(request.beforeMicros)
    return this.#write({ kind: 'prune', ...this.#state.advanceHorizon(request, durable) })
  }

  trim(): void {
    if (this.#state.status.state !== 'open') return
    this.#state.newest.clear()
    // A failure stops the thread, which the next commit reports.
    this.#write({ kind: 'trim' }).catch(() => undefined)
    this.#database.run('pragma shrink_memory')
  }

  async close(): Promise<void> {
    if (!this.#state.close()) return
    this.#reads.endTransaction()
    this.#database.close()
    await this.#writer.close()
  }

  #openReadTransaction(): void {
    if (this.#pendingJobs === 0) this.#reads.beginTransaction()
  }

  async #write<Job extends WriterJob>(job: Job): Promise<WriterResults[Job['kind']]> {
    this.#reads.endTransaction()
    this.#pendingJobs += 1
    try {
      return await this.#writer.run(job)
    } finally {
      this.#pendingJobs -= 1
    }
  }

  /** The fault of a failed read. A corrupt file fails the store, so that no write follows. */
  #faultOf(error: unknown): Fault {
    const fault = storeFault(error)
    if (fault.code === 'PRODUCT_CORRUPT') this.#state.fail(fault.detail ?? fault.message)
    return fault
  }
}
