/** The state in memory of both document stores: status, sequences and newest versions. */
import { assert } from '../errors/assert.ts'
import { DEFAULT_PLAN } from '../system/memory/memory-plan.ts'
import { NewestVersions } from './newest-versions.ts'
import { OperationIds } from './operation-ids.ts'
import type {
  IndexRow,
  PruneRequest,
  RangeRequest,
  StoreStatus,
  TransactionWrite,
} from './store.ts'
import { indexDropped, snapshotGone, unavailable } from './store-faults.ts'

/** The bounds of one chunk of retention. */
export interface RetentionRequest {
  /** The oldest snapshot that stays readable. At most the latest sequence. */
  readonly horizon: number
  readonly operationsBeforeMicros: bigint
  /** Bound of the rows that are read, for versions and for index entries alike. */
  readonly rowsMax: number
}

export class StoreState {
  readonly newest: NewestVersions
  readonly #operationIds: OperationIds
  readonly #schemaListeners: (() => void)[] = []
  #status: StoreStatus = { state: 'open' }
  #latestSequence: number
  /** Versions that only older snapshots see may be removed. */
  #horizon: number

  /** `newestOperationId` is the greatest ID that has a record; empty where none has. */
  constructor(
    latestSequence: number,
    newestOperationId: string,
    { documentCharacters } = DEFAULT_PLAN,
  ) {
    this.newest = new NewestVersions(documentCharacters)
    this.#latestSequence = latestSequence
    this.#horizon = latestSequence
    this.#operationIds = new OperationIds(newestOperationId)
  }

  get status(): StoreStatus {
    return this.#status
  }

  get latestSequence(): number {
    return this.#latestSequence
  }

  onSchemaChange(listener: () => void): void {
    this.#schemaListeners.push(listener)
  }

  schemaChanged(): void {
    for (const listener of this.#schemaListeners) listener()
  }

  /** Marks an open store as failed. */
  fail(detail: string): void {
    if (this.#status.state === 'open') this.#status = { state: 'failed', detail }
  }

  /** Marks the store as closed. Returns false if it already was. */
  close(): boolean {
    if (this.#status.state === 'closed') return false
    this.#status = { state: 'closed' }
    return true
  }

  /** Throws UNAVAILABLE unless the store is open. */
  checkOpen(): void {
    if (this.#status.state === 'open') return
    throw unavailable(this.#status.state === 'failed' ? this.#status.detail : 'the store is closed')
  }

  /** Throws UNAVAILABLE unless the snapshot can be read. */
  checkReadable(snapshot: number): void {
    this.checkOpen()
    if (snapshot < this.#horizon) throw snapshotGone()
  }

  /** Returns the index of a range. Throws UNAVAILABLE where the range cannot be read. */
  checkRange({ snapshot, limit }: RangeRequest, index: IndexRow | undefined): IndexRow {
    if (index === undefined || index.state === 'dropped') throw indexDropped()
    assert(index.state === 'ready', 'the index is not ready')
    // The build added the versions that were newest then, not those that older snapshots see.
    if (snapshot < index.readySequence!) throw snapshotGone()
    assert(limit >= 1, 'a range has a limit')
    return index
  }

  /** Returns false only where no record of the operation is stored or being stored. */
  mayHaveOperation(operationId: string): boolean {
    return this.#operationIds.mayExist(operationId)
  }

  /** Notes the operation IDs of a batch before it is sent to the database. */
  beginCommit(transactions: readonly TransactionWrite[]): void {
    this.checkOpen()
    for (const { operation } of transactions) {
      if (operation !== undefined) this.#operationIds.add(operation.operationId)
    }
  }

  /** Makes a batch that is durable visible to reads. */
  applyCommit(transactions: readonly TransactionWrite[]): void {
    for (const { sequence, writes } of transactions) {
      if (sequence === null) continue
      if (sequence > this.#latestSequence) this.#latestSequence = sequence
      for (const { id, createdAtMicros, text } of writes) {
        if (text === null) this.newest.forget(id)
        else this.newest.put({ id, createdAtMicros, sequence, text })
      }
    }
  }

  /** Makes a commit visible that another process has made durable. */
  followCommit(sequence: number, documents: readonly string[]): void {
    this.#latestSequence = sequence
    for (const id of documents) this.newest.forget(id)
  }

  /**
   * Moves the horizon forward, before the first row is removed. `durable` is the sequence that was
   * durable at the time before which versions may be removed.
   */
  advanceHorizon(request: PruneRequest, durable: number): RetentionRequest {
    const horizon = Math.min(request.oldestSnapshot, durable, this.#latestSequence)
    this.#horizon = Math.max(this.#horizon, horizon)
    const { operationsBeforeMicros, rowsMax } = request
    return { horizon, operationsBeforeMicros, rowsMax }
  }
}

export interface IndexBuildOptions {
  readonly state: StoreState
  readonly findIndex: (id: number) => IndexRow | undefined
  /** Fills one chunk and stores the resulting row. Resolves to null if the index is dropped. */
  readonly fillChunk: (id: number) => Promise<IndexRow | null>
}

/** Builds indexes chunk by chunk. Concurrent calls for one index share its build. */
export class IndexBuilds {
  readonly #options: IndexBuildOptions
  readonly #running = new Map<number, Promise<void>>()

  constructor(options: IndexBuildOptions) {
    this.#options = options
  }

  /** Resolves when the index is ready. Throws UNAVAILABLE where it was dropped. */
  build(id: number): Promise<void> {
    const running = this.#running.get(id)
    if (running !== undefined) return running
    const build = this.#run(id).finally(() => this.#running.delete(id))
    this.#running.set(id, build)
    return build
  }

  async #run(id: number): Promise<void> {
    const { state, findIndex, fillChunk } = this.#options
    state.checkOpen()
    while (findIndex(id)?.state === 'building') {
      if ((await fillChunk(id)) === null) break
    }
    if (findIndex(id)?.state !== 'ready') throw indexDropped()
  }
}
