/** The document store in one SQLite file: reads on the calling thread, writes on another one. */
import type { Database } from 'bun:sqlite'
import { assert } from '../../errors/assert.ts'
import { Fault } from '../../errors/fault.ts'
import { type IndexRow, visible } from '../index-rows.ts'
import { OperationIds } from '../operation-ids.ts'
import type {
  CommitBatch,
  DocumentStore,
  IndexDefinition,
  OperationRecord,
  PhysicalIndex,
  PruneRequest,
  PruneResult,
  RangeRequest,
  RangeResult,
  StoredDocument,
  StoreStatus,
} from '../store.ts'
import { encodeBatch } from './batch-messages.ts'
import { type OpenOptions, openDatabase, storeFault } from './databases.ts'
import { Reads } from './reads.ts'
import { WRITER_SOURCE } from './writer.generated.ts'
import type { WriterAnswers, WriterJob } from './writer-jobs.ts'
import { loadState, type WriterState } from './writer-state.ts'
import { WriterThread } from './writer-threads.ts'

/**
 * The caller holds the lock of the Product root: a second writer would break the sequences.
 * UNAVAILABLE where the file cannot be opened, PRODUCT_CORRUPT where it breaks an invariant.
 */
export async function openSqliteDocuments(
  path: string,
  options: OpenOptions = { mayBeNew: true },
): Promise<DocumentStore> {
  const database = openDatabase(path, options)
  const store = new SqliteDocuments(database)
  await store.start(path)
  return store
}

class SqliteDocuments implements DocumentStore {
  readonly #database: Database
  readonly #reads: Reads
  readonly #operationIds: OperationIds
  readonly #writer: WriterThread
  readonly #indexes: Map<number, IndexRow>
  readonly #builds = new Map<number, Promise<void>>()
  #visible: readonly PhysicalIndex[] | null = null
  /** Jobs of the writer that are not done. */
  #writing = 0
  #status: StoreStatus = { state: 'open' }
  #latestSequence: number
  /** A version that an older snapshot saw may be gone. */
  #horizon: number

  constructor(database: Database) {
    this.#database = database
    this.#reads = new Reads(database)
    this.#operationIds = new OperationIds(this.#reads.newestOperationId())
    const state: WriterState = loadState(database)
    this.#latestSequence = state.latestSequence
    this.#horizon = state.latestSequence
    this.#indexes = state.indexes
    this.#writer = new WriterThread({
      source: WRITER_SOURCE,
      onFailed: (detail) => {
        if (this.#status.state === 'open') this.#status = { state: 'failed', detail }
      },
    })
  }

  async start(path: string): Promise<void> {
    try {
      await this.#write({ kind: 'open', path })
    } catch (error) {
      await this.close()
      throw error
    }
  }

  get status(): StoreStatus {
    return this.#status
  }

  get latestSequence(): number {
    return this.#latestSequence
  }

  remembered(id: string, snapshot: number): StoredDocument | undefined {
    return this.#reads.newest.find(id, snapshot)
  }

  read(id: string, snapshot: number): StoredDocument | null {
    this.#checkReadable(snapshot)
    try {
      this.#holdReads()
      return this.#reads.read(id, snapshot, snapshot >= this.#latestSequence)
    } catch (error) {
      throw this.#faultOf(error)
    }
  }

  range(request: RangeRequest): RangeResult {
    this.#checkReadable(request.snapshot)
    const index = this.#indexes.get(request.index)
    if (index === undefined || index.state === 'dropped') throw indexDropped()
    assert(index.state === 'ready', 'the index is not ready')
    // The fill put in what was newest then, not what older snapshots saw.
    if (request.snapshot < index.readySequence!) throw snapshotGone()
    assert(request.limit >= 1, 'a range has a limit')
    try {
      this.#holdReads()
      return this.#reads.range(request, index.table, request.snapshot >= this.#latestSequence)
    } catch (error) {
      throw this.#faultOf(error)
    }
  }

  operation(operationId: string): OperationRecord | null {
    this.#checkOpen()
    if (!this.#operationIds.mayExist(operationId)) return null
    try {
      this.#holdReads()
      return this.#reads.operation(operationId)
    } catch (error) {
      throw this.#faultOf(error)
    }
  }

  async commit(batch: CommitBatch): Promise<void> {
    this.#checkOpen()
    for (const { operation } of batch.transactions) {
      if (operation !== undefined) this.#operationIds.add(operation.operationId)
    }
    await this.#write({ kind: 'commit', ...encodeBatch(batch) })
    for (const { sequence, writes } of batch.transactions) {
      if (sequence === null) continue
      if (sequence > this.#latestSequence) this.#latestSequence = sequence
      for (const { id, createdAtMicros, text } of writes) {
        if (text === null) this.#reads.newest.forget(id)
        else this.#reads.newest.put({ id, createdAtMicros, sequence, text })
      }
    }
  }

  listIndexes(): readonly PhysicalIndex[] {
    // Every commit asks, and they change with a Release only.
    this.#visible ??= [...this.#indexes.values()].flatMap((row) => visible(row) ?? [])
    return this.#visible
  }

  async ensureIndexes(definitions: readonly IndexDefinition[]): Promise<readonly PhysicalIndex[]> {
    this.#checkOpen()
    const rows = await this.#write({ kind: 'ensure', definitions })
    return rows.map((row) => {
      // A build may have finished before this answer was looked at.
      const known = this.#indexes.get(row.id)
      if (known === undefined) this.#setIndex(row)
      return visible(known ?? row)!
    })
  }

  buildIndex(id: number): Promise<void> {
    const running = this.#builds.get(id)
    if (running !== undefined) return running
    const build = this.#build(id).finally(() => this.#builds.delete(id))
    this.#builds.set(id, build)
    return build
  }

  async #build(id: number): Promise<void> {
    this.#checkOpen()
    while (this.#indexes.get(id)?.state === 'building') {
      const row = await this.#write({ kind: 'build', index: id })
      if (row === 'gone') break
      this.#setIndex(row)
    }
    if (this.#indexes.get(id)?.state !== 'ready') {
      throw indexDropped()
    }
  }

  async dropIndex(id: number): Promise<void> {
    this.#checkOpen()
    await this.#write({ kind: 'drop', index: id })
    // Not before: an index that is left out of commits must never come back.
    this.#indexes.delete(id)
    this.#visible = null
  }

  #setIndex(row: IndexRow): void {
    this.#indexes.set(row.id, row)
    this.#visible = null
  }

  async prune(request: PruneRequest): Promise<PruneResult> {
    this.#checkOpen()
    const horizon = Math.min(
      request.oldestSnapshot,
      this.#reads.sequenceAt(request.beforeMicros),
      this.#latestSequence,
    )
    this.#horizon = Math.max(this.#horizon, horizon)
    const { operationsBeforeMicros, rowsMax } = request
    return this.#write({ kind: 'prune', horizon, operationsBeforeMicros, rowsMax })
  }

  async close(): Promise<void> {
    if (this.#status.state === 'closed') return
    this.#status = { state: 'closed' }
    this.#reads.release()
    this.#database.close()
    await this.#writer.close()
  }

  #holdReads(): void {
    if (this.#writing === 0) this.#reads.hold()
  }

  async #write<Job extends WriterJob>(job: Job): Promise<WriterAnswers[Job['kind']]> {
    this.#reads.release()
    this.#writing += 1
    try {
      return await this.#writer.run(job)
    } finally {
      this.#writing -= 1
    }
  }

  /** Whoever finds the file broken stops the store, so that nothing more is written to it. */
  #faultOf(error: unknown): Fault {
    const fault = storeFault(error)
    if (fault.code === 'PRODUCT_CORRUPT' && this.#status.state === 'open') {
      this.#status = { state: 'failed', detail: fault.detail ?? fault.message }
    }
    return fault
  }

  #checkOpen(): void {
    if (this.#status.state === 'open') return
    const detail = this.#status.state === 'failed' ? this.#status.detail : 'the store is closed'
    throw new Fault('UNAVAILABLE', { detail: `documents: ${detail}` })
  }

  #checkReadable(snapshot: number): void {
    this.#checkOpen()
    if (snapshot < this.#horizon) throw snapshotGone()
  }
}

/** Whoever still reads it runs a Release that was retired meanwhile. */
function indexDropped(): Fault {
  return new Fault('UNAVAILABLE', { detail: 'documents: the index was dropped' })
}

function snapshotGone(): Fault {
  return new Fault('UNAVAILABLE', { detail: 'documents: the snapshot is older than what is kept' })
}
