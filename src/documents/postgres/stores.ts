/** The document store in PostgreSQL: reads on a few connections, changes one by one on another. */
import type { Connection } from '../../database/connection.ts'
import type { Database } from '../../database/database.ts'
import { toStartupFault } from '../../database/errors.ts'
import { assert } from '../../errors/assert.ts'
import { Fault } from '../../errors/fault.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { System } from '../../system/system.ts'
import { encodeBase64Url } from '../../value/base64url.ts'
import type { Secret } from '../../value/secret.ts'
import { visible } from '../index-rows.ts'
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
import { EpochLost, storeFault } from './failures.ts'
import { dropIndex, ensureIndexes, fillIndex } from './index-changes.ts'
import { Reads } from './reads.ts'
import { prune } from './retention.ts'
import { nullableText } from './rows.ts'
import { DOCUMENT_SCHEMA, documentDatabase, migrateDocuments } from './schema.ts'
import { beginTerm, type Term } from './terms.ts'
import { Writer } from './writer.ts'

export interface PostgresDocumentsOptions {
  readonly url: Secret
  readonly environmentId: string
  /** Of the database that this Environment was opened with before; null if there was none. */
  readonly databaseId: string | null
  readonly system: Pick<System, 'monotonicMillis' | 'nowMicros' | 'randomBytes'>
  /** A connection was lost, or the store has failed; neither names a stored value. */
  readonly onTrouble: (event: 'connection_lost' | 'failed', detail: string) => void
  /** How long a commit whose answer was lost waits for PostgreSQL to come back. */
  readonly settleMillis?: number
  /** How long a server that lost the epoch may go on reading while it has nothing to commit. */
  readonly watchMillis?: number
}

export interface PostgresDocumentStore extends DocumentStore {
  /** For the next opening. */
  readonly databaseId: string
}

const READ_CONNECTIONS = 8
/** A failover of PostgreSQL takes that long. */
const SETTLE_MILLIS = 120_000
const WATCH_MILLIS = 2_000

/**
 * Brings the schema up to date and takes the epoch: a server that had it fails with its next
 * commit, or within `watchMillis`. Throws SERVER_DOCUMENT_DATABASE_UNAVAILABLE where the database
 * cannot be reached, does not fit or belongs to another Environment.
 */
export async function openPostgresDocuments(
  options: PostgresDocumentsOptions,
): Promise<PostgresDocumentStore> {
  const { url, system, environmentId, databaseId } = options
  await migrateDocuments(url, system.nowMicros())
  const onIdleLoss = (detail: string): void => options.onTrouble('connection_lost', detail)
  const writes = documentDatabase({ url, connectionsMax: 1, onIdleLoss })
  const reads = documentDatabase({ url, connectionsMax: READ_CONNECTIONS, onIdleLoss })
  const [newDatabaseId, writer] = [randomId(system), randomId(system)]
  try {
    const connection = await writes.connect()
    try {
      const claim = { environmentId, databaseId, newDatabaseId, writer }
      const begun = await beginTerm(connection, claim)
      // Under the epoch, so that nobody else records another one.
      const newestOperationId = await findNewestOperationId(connection)
      const opened = { ...begun, newestOperationId, reads, writes, writer }
      return new PostgresDocuments(options, opened)
    } finally {
      connection.release()
    }
  } catch (error) {
    await Promise.all([writes.close(), reads.close()])
    throw toStartupFault(error, DOCUMENT_SCHEMA.unavailable)
  }
}

/** The greatest there is; empty where there is none. */
async function findNewestOperationId(connection: Connection): Promise<string> {
  const { rows } = await connection.query('select max(operation_id) as id from operations')
  return nullableText(rows[0]!, 'id') ?? ''
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
}

class PostgresDocuments implements PostgresDocumentStore {
  readonly databaseId: string
  readonly #database: Database
  readonly #reads: Reads
  readonly #operationIds: OperationIds
  readonly #writer: Writer
  readonly #writerId: string
  readonly #builds = new Map<number, Promise<void>>()
  readonly #watch: ReturnType<typeof setInterval>
  #status: StoreStatus = { state: 'open' }
  #latestSequence: number
  /** A version that an older snapshot saw may be gone. */
  #horizon: number

  constructor(options: PostgresDocumentsOptions, opened: Opened) {
    const { system, settleMillis = SETTLE_MILLIS, watchMillis = WATCH_MILLIS } = options
    const { reads, writes, writer, term, databaseId, newestOperationId } = opened
    this.databaseId = databaseId
    this.#latestSequence = term.latestSequence
    this.#horizon = term.latestSequence
    this.#database = reads
    this.#reads = new Reads(reads, () => this.#latestSequence)
    this.#operationIds = new OperationIds(newestOperationId)
    this.#writerId = writer
    const onFailed = (detail: string): void => {
      if (this.#status.state === 'open') this.#status = { state: 'failed', detail }
      options.onTrouble('failed', detail)
    }
    this.#writer = new Writer({ database: writes, writer, term, system, settleMillis, onFailed })
    this.#watch = setInterval(() => void this.#checkWriter(), watchMillis)
    this.#watch.unref()
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

  read(id: string, snapshot: number): MaybePromise<StoredDocument | null> {
    this.#checkReadable(snapshot)
    const known = this.#reads.newest.find(id, snapshot)
    return known ?? this.#answer(this.#reads.read(id, snapshot), snapshot)
  }

  range(request: RangeRequest): Promise<RangeResult> {
    const { snapshot } = request
    this.#checkReadable(snapshot)
    const index = this.#writer.findIndex(request.index)
    if (index === undefined || index.state === 'dropped') throw indexDropped()
    assert(index.state === 'ready', 'the index is not ready')
    // The fill put in what was newest then, not what older snapshots saw.
    if (snapshot < index.readySequence!) throw snapshotGone()
    assert(request.limit >= 1, 'a range has a limit')
    return this.#answer(this.#reads.range(request, index.table), snapshot)
  }

  operation(operationId: string): MaybePromise<OperationRecord | null> {
    this.#checkOpen()
    if (!this.#operationIds.mayExist(operationId)) return null
    return this.#answer(this.#reads.operation(operationId), this.#latestSequence)
  }

  async commit({ transactions }: CommitBatch): Promise<void> {
    this.#checkOpen()
    for (const { operation } of transactions) {
      if (operation !== undefined) this.#operationIds.add(operation.operationId)
    }
    await this.#writer.commit(transactions)
    for (const { sequence, writes } of transactions) {
      if (sequence === null) continue
      if (sequence > this.#latestSequence) this.#latestSequence = sequence
      for (const { id, createdAtMicros, text } of writes) {
        if (text === null) this.#reads.newest.forget(id)
        else this.#reads.newest.put({ id, createdAtMicros, sequence, text })
      }
    }
  }

  listIndexes(): readonly PhysicalIndex[] {
    return this.#writer.listIndexes()
  }

  async ensureIndexes(definitions: readonly IndexDefinition[]): Promise<readonly PhysicalIndex[]> {
    this.#checkOpen()
    const rows = await this.#writer.change(
      (connection, term) => ensureIndexes(connection, term, definitions),
      (indexes, made) => {
        for (const row of made) indexes.set(row.id, row)
      },
    )
    // A build may have finished before this answer was looked at.
    return rows.map((row) => visible(this.#writer.findIndex(row.id) ?? row)!)
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
    while (this.#writer.findIndex(id)?.state === 'building') {
      const row = await this.#writer.change(
        (connection, term) => fillIndex(connection, term, id),
        (indexes, filled) => {
          if (filled !== null) indexes.set(id, filled)
        },
      )
      if (row === null) break
    }
    if (this.#writer.findIndex(id)?.state !== 'ready') {
      throw indexDropped()
    }
  }

  async dropIndex(id: number): Promise<void> {
    this.#checkOpen()
    await this.#writer.change(
      (connection, term) => dropIndex(connection, term, id),
      // Not before: an index that is left out of commits must never come back.
      (indexes, dropped) => {
        if (dropped !== null) indexes.set(id, dropped)
      },
    )
  }

  async prune(request: PruneRequest): Promise<PruneResult> {
    this.#checkOpen()
    const { oldestSnapshot, beforeMicros } = request
    const durable = await this.#answer(this.#reads.sequenceAt(beforeMicros), this.#latestSequence)
    const horizon = Math.min(oldestSnapshot, durable, this.#latestSequence)
    // Before the first row goes: a read that is on its way is refused when it comes back.
    this.#horizon = Math.max(this.#horizon, horizon)
    const { removed, more } = await this.#writer.change(
      (connection, term) => prune(connection, term, { ...request, horizon }),
      (indexes, { forgotten }) => {
        for (const id of forgotten) indexes.delete(id)
      },
    )
    return { removed, more }
  }

  async close(): Promise<void> {
    if (this.#status.state === 'closed') return
    this.#status = { state: 'closed' }
    clearInterval(this.#watch)
    await this.#writer.close()
    await this.#database.close()
  }

  /** Nothing else would tell a server without commits that another one has the epoch. */
  async #checkWriter(): Promise<void> {
    if (this.#status.state !== 'open') return
    try {
      if ((await this.#reads.writer()) !== this.#writerId)
        this.#writer.fail(storeFault(new EpochLost()))
    } catch {
      // A database that cannot be asked cannot be written by anybody else either.
    }
  }

  /** Whoever finds the database broken stops the store, so that nothing more is written to it. */
  async #answer<T>(asked: Promise<T>, snapshot: number): Promise<T> {
    try {
      const answer = await asked
      this.#checkReadable(snapshot)
      return answer
    } catch (error) {
      const fault = storeFault(error)
      if (fault.code === 'PRODUCT_CORRUPT') this.#writer.fail(fault)
      throw fault
    }
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
