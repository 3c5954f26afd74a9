/** The document store in PostgreSQL. Reads run on some connections, changes in order on another. */
import type { Connection } from '../../database/connection.ts'
import type { Database } from '../../database/database.ts'
import { toStartupFault } from '../../database/errors.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { MemoryPlan } from '../../system/memory/memory-plan.ts'
import type { System } from '../../system/system.ts'
import { encodeBase64Url } from '../../value/base64url.ts'
import type { FieldShape } from '../../value/schema/field-shapes.ts'
import type { Secret } from '../../value/secret.ts'
import { CompactTable } from '../compact-ids.ts'
import type { CompactTexts } from '../compact-texts.ts'
import { visible } from '../index-rows.ts'
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
import { Changes } from './changes.ts'
import { EpochLost, storeFault } from './failures.ts'
import { loadFieldShapes, loadTexts, setFieldShapes } from './field-shapes.ts'
import { dropIndex, ensureIndexes, fillIndex } from './index-changes.ts'
import { Reads } from './reads.ts'
import { prune } from './retention.ts'
import { bytes } from './rows.ts'
import { Scans } from './scans.ts'
import { DOCUMENT_SCHEMA, documentDatabase, migrateDocuments } from './schema.ts'
import { beginTerm, type Term } from './terms.ts'
import { Writer } from './writer.ts'

export interface PostgresDocumentsOptions {
  readonly url: Secret
  readonly environmentId: string
  /** ID of the database that this Environment was opened with before, or null. */
  readonly databaseId: string | null
  readonly system: Pick<System, 'monotonicMillis' | 'nowMicros' | 'randomBytes'>
  /** Called when a connection is lost or the store fails. `detail` has no stored value. */
  readonly onProblem: (event: 'connection_lost' | 'failed', detail: string) => void
  /** Time for which a commit whose reply was lost waits for PostgreSQL to be reachable again. */
  readonly reconcileMillis?: number
  /** Time for which a server that lost the epoch may continue to read while it has no commits. */
  readonly epochCheckMillis?: number
  readonly memory?: MemoryPlan | undefined
}

export interface PostgresDocumentStore extends DocumentStore {
  /** The `databaseId` to pass when the store is opened again. */
  readonly databaseId: string
}

/** The IDs of operations. */
const OPERATIONS = new CompactTable('opn')
const READ_CONNECTIONS = 8
/** Long enough for a failover of PostgreSQL. */
const RECONCILE_MILLIS = 120_000
const EPOCH_CHECK_MILLIS = 2_000

/**
 * Migrates the schema and takes the epoch: a server that had it fails with its next commit, or
 * within `epochCheckMillis`. Throws SERVER_DOCUMENT_DATABASE_UNAVAILABLE where the database
 * is unreachable, has an unsupported schema or belongs to another Environment.
 */
export async function openPostgresDocuments(
  options: PostgresDocumentsOptions,
): Promise<PostgresDocumentStore> {
  const { url, system, environmentId, databaseId } = options
  await migrateDocuments(url, system.nowMicros())
  const onIdleLoss = (detail: string): void => options.onProblem('connection_lost', detail)
  const writes = documentDatabase({ url, connectionsMax: 1, onIdleLoss })
  const reads = documentDatabase({ url, connectionsMax: READ_CONNECTIONS, onIdleLoss })
  const [newDatabaseId, writer] = [randomId(system), randomId(system)]
  try {
    const connection = await writes.connect()
    try {
      const claim = { environmentId, databaseId, newDatabaseId, writer }
      const begun = await beginTerm(connection, claim)
      // Read under the epoch, so that no other server can record a newer one.
      const newestOperationId = await findNewestOperationId(connection)
      const shapes = await loadFieldShapes(connection)
      const texts = await loadTexts(connection)
      const opened = { ...begun, newestOperationId, shapes, texts, reads, writes, writer }
      return new PostgresDocuments(options, opened)
    } finally {
      connection.release()
    }
  } catch (error) {
    await Promise.all([writes.close(), reads.close()])
    throw toStartupFault(error, DOCUMENT_SCHEMA.unavailable)
  }
}

/** The greatest operation ID that has a record; empty where none has. */
async function findNewestOperationId(connection: Connection): Promise<string> {
  const { rows } = await connection.query(
    'select operation_id from operations order by operation_id desc limit 1',
  )
  return rows[0] === undefined ? '' : OPERATIONS.idAtEnd(bytes(rows[0], 'operation_id'))
}

function randomId(system: Pick<System, 'randomBytes'>): string {
  return encodeBase64Url(system.randomBytes(16))
}

interface Opened {
  readonly reads: Database
  readonly writes: Database
  readonly writer: string
  readonly term: Term
  readonly databaseId: string
  readonly newestOperationId: string
  readonly shapes: Map<string, FieldShape>
  readonly texts: CompactTexts
}

class PostgresDocuments implements PostgresDocumentStore {
  readonly databaseId: string
  readonly #database: Database
  readonly #state: StoreState
  readonly #reads: Reads
  readonly #scans: Scans
  readonly #changes: Changes
  readonly #writer: Writer
  readonly #writerId: string
  readonly #builds: IndexBuilds
  readonly #shapes: Map<string, FieldShape>
  readonly #texts: CompactTexts
  readonly #epochCheck: ReturnType<typeof setInterval>

  constructor(options: PostgresDocumentsOptions, opened: Opened) {
    const { system, reconcileMillis = RECONCILE_MILLIS } = options
    const { reads, writes, writer, term, databaseId, newestOperationId, texts } = opened
    const state = new StoreState(term.latestSequence, newestOperationId, options.memory)
    this.databaseId = databaseId
    this.#database = reads
    this.#state = state
    this.#reads = new Reads(reads, state, texts)
    this.#scans = new Scans(this.#reads.query, texts)
    this.#changes = new Changes(this.#reads.query, texts)
    this.#shapes = opened.shapes
    this.#texts = texts
    this.#writerId = writer
    const onFailed = (detail: string): void => {
      state.fail(detail)
      options.onProblem('failed', detail)
    }
    this.#writer = new Writer({
      database: writes,
      writer,
      term,
      texts,
      system,
      reconcileMillis,
      onFailed,
    })
    this.#builds = new IndexBuilds({
      state,
      findIndex: (id) => this.#writer.findIndex(id),
      fillChunk: (id) =>
        this.#writer.change(
          (connection, term) => fillIndex(connection, term, texts, id),
          (indexes, row) => {
            if (row === null) return
            indexes.set(row)
            state.schemaChanged()
          },
        ),
    })
    const { epochCheckMillis = EPOCH_CHECK_MILLIS } = options
    this.#epochCheck = setInterval(() => void this.#checkEpoch(), epochCheckMillis)
    this.#epochCheck.unref()
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

  readAtOnce(id: string, snapshot: number): StoredDocument | undefined {
    return this.findCached(id, snapshot)
  }

  read(id: string, snapshot: number): MaybePromise<StoredDocument | null> {
    this.#state.checkReadable(snapshot)
    const cached = this.#state.newest.find(id, snapshot)
    return cached ?? this.#checkResult(this.#reads.read(id, snapshot), snapshot)
  }

  range(request: RangeRequest): Promise<RangeResult> {
    const { snapshot } = request
    this.#state.checkReadable(snapshot)
    const { table } = this.#state.checkRange(request, this.#writer.findIndex(request.index))
    return this.#checkResult(this.#reads.range(request, table), snapshot)
  }

  operation(operationId: string): MaybePromise<OperationRecord | null> {
    this.#state.checkOpen()
    if (!this.#state.mayHaveOperation(operationId)) return null
    return this.#checkResult(this.#reads.operation(operationId), this.latestSequence)
  }

  versions(request: ScanRequest): Promise<ScanPage<DocumentVersion>> {
    this.#state.checkReadable(request.snapshot)
    return this.#checkResult(this.#scans.versions(request), request.snapshot)
  }

  operations(request: ScanRequest): Promise<ScanPage<OperationRecord>> {
    this.#state.checkReadable(request.snapshot)
    return this.#checkResult(this.#scans.operations(request), request.snapshot)
  }

  changedVersions(request: ChangesRequest): Promise<ChangesPage | null> {
    this.#state.checkReadable(request.snapshot)
    return this.#checkResult(this.#changes.versions(request), request.snapshot)
  }

  newOperations(request: ChangesRequest): Promise<ScanPage<OperationRecord>> {
    this.#state.checkReadable(request.snapshot)
    return this.#checkResult(this.#changes.operations(request), request.snapshot)
  }

  async commit({ transactions, onUnreachable }: CommitBatch): Promise<void> {
    this.#state.beginCommit(transactions)
    await this.#writer.commit(transactions, onUnreachable)
    this.#state.applyCommit(transactions)
  }

  listIndexes(): readonly PhysicalIndex[] {
    return this.#writer.listIndexes()
  }

  async ensureIndexes(definitions: readonly IndexDefinition[]): Promise<readonly PhysicalIndex[]> {
    this.#state.checkOpen()
    const rows = await this.#writer.change(
      (connection, term) => ensureIndexes(connection, term, definitions),
      (indexes, ensured) => {
        for (const row of ensured) indexes.set(row)
        this.#state.schemaChanged()
      },
    )
    // A build may have finished since, so the row of the writer is the newer one.
    return rows.map((row) => visible(this.#writer.findIndex(row.id) ?? row)!)
  }

  buildIndex(id: number): Promise<void> {
    return this.#builds.build(id)
  }

  async dropIndex(id: number): Promise<void> {
    this.#state.checkOpen()
    await this.#writer.change(
      (connection, term) => dropIndex(connection, term, id),
      // Only once it is stored: an index that commits no longer maintain must never come back.
      (indexes, dropped) => {
        if (dropped === null) return
        indexes.set(dropped)
        this.#state.schemaChanged()
      },
    )
  }

  fieldShapes(): ReadonlyMap<string, FieldShape> {
    return this.#shapes
  }

  async setFieldShapes(shapes: ReadonlyMap<string, FieldShape>): Promise<void> {
    this.#state.checkOpen()
    await this.#writer.change(
      (connection) => setFieldShapes(connection, this.#texts, shapes),
      (_, names) => {
        for (const [table, shape] of shapes) this.#shapes.set(table, shape)
        for (const [table, named] of names) this.#texts.set(table, named)
        this.#state.schemaChanged()
      },
    )
  }

  schema(): StoreSchema {
    const names = this.#texts.names()
    return { indexes: this.#writer.indexRows(), shapes: this.#shapes, names }
  }

  onSchemaChange(listener: () => void): void {
    this.#state.onSchemaChange(listener)
  }

  async prune(request: PruneRequest): Promise<PruneResult> {
    this.#state.checkOpen()
    const reading = this.#reads.sequenceAt(request.beforeMicros)
    const durable = await this.#checkResult(reading, this.latestSequence)
    // A read that is running is rejected by the new horizon when it returns.
    const retention = this.#state.advanceHorizon(request, durable)
    const { removed, more } = await this.#writer.change(
      (connection, term) => prune(connection, term, retention),
      (indexes, { deletedIndexes }) => {
        for (const id of deletedIndexes) indexes.delete(id)
        if (deletedIndexes.length > 0) this.#state.schemaChanged()
      },
    )
    return { removed, more }
  }

  /** Keeps its documents: to read one again takes a round trip. */
  trim(): void {}

  async close(): Promise<void> {
    if (!this.#state.close()) return
    clearInterval(this.#epochCheck)
    await this.#writer.close()
    await this.#database.close()
  }

  /** Fails a store whose epoch another server took, which only a commit would notice otherwise. */
  async #checkEpoch(): Promise<void> {
    if (this.status.state !== 'open') return
    try {
      const writer = await this.#reads.currentWriter()
      if (writer !== this.#writerId) this.#writer.fail(storeFault(new EpochLost()))
    } catch {
      // While the database is unreachable here, the next check decides.
    }
  }

  /**
   * Waits for a read and checks that its snapshot is still readable. Corrupt data fails the store,
   * so that no write follows.
   */
  async #checkResult<T>(reading: Promise<T>, snapshot: number): Promise<T> {
    try {
      const result = await reading
      this.#state.checkReadable(snapshot)
      return result
    } catch (error) {
      const fault = storeFault(error)
      if (fault.code === 'PRODUCT_CORRUPT') this.#writer.fail(fault)
      throw fault
    }
  }
}
