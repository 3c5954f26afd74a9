/**
 * Commits Mutations by optimistic concurrency control with group commit. Synchronously and in
 * memory, it checks a read set against all commits since its snapshot, assigns the sequence and
 * adds the transaction to the open batch. The caller gets its reply once the batch is durable;
 * later Mutations read the pending commit at once.
 */
import type {
  DocumentStore,
  DocumentWrite,
  OperationRecord,
  TransactionWrite,
} from '../../documents/store.ts'
import { assert } from '../../errors/assert.ts'
import { isFault } from '../../errors/fault.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import { DEFAULT_PLAN, type MemoryPlan } from '../../system/memory/memory-plan.ts'
import type { System } from '../../system/system.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import { INVOCATION_MILLIS_MAX } from '../limits.ts'
import { Batch } from './batch.ts'
import { ContentionHistory } from './contention-history.ts'
import { type BufferedWrite, documentWrite, systemChanges } from './document-writes.ts'
import { type KeyLock, LockManager } from './lock-manager.ts'
import { PendingCommits, rolledBackFault, stalledFault } from './pending-commits.ts'
import { PinnedSnapshots, type SnapshotPin } from './pinned-snapshots.ts'
import type { CommitWrites, ReadSet } from './read-set.ts'
import { type SnapshotHold, SnapshotHolds } from './snapshot-holds.ts'
import { lockKeys, WriteLog } from './write-log.ts'

/** The key of the global commit lock. No document ID and no index key is the empty string. */
const GLOBAL_KEY = ''
/** Characters of the write log for each of its entries, whose objects take memory as well. */
const LOG_ENTRY_CHARACTERS = 128

export interface CommitRequest {
  readonly snapshot: number
  /** The pending commits that the attempt read; null if its snapshot was durable. */
  readonly pending: PendingCommits | null
  readonly readSet: ReadSet
  readonly writes: readonly BufferedWrite[]
  readonly atMicros: bigint
  /** Null for a transaction of the server, which no caller repeats. */
  readonly operation: Omit<OperationRecord, 'commitSequence'> | null
  /** The lock that the Mutation holds after a conflict; null in a first attempt without one. */
  readonly lock: CommitLock | null
}

export type CommitOutcome =
  | {
      /** The commit is pending: it becomes durable unless the store fails. */
      readonly kind: 'assigned'
      /** Null where nothing was written. */
      readonly sequence: number | null
      /**
       * Rejects with UNAVAILABLE where nothing was stored, with RESULT_UNCERTAIN where that is
       * unknown, and with DEADLINE_EXCEEDED where the batch stalls.
       */
      readonly durable: Promise<void>
      /** Resolves once the store has succeeded or failed, also after a stall. Never rejects. */
      readonly outcomeKnown: Promise<void>
    }
  /**
   * Nothing was stored: lock the keys and run again at a new snapshot. Without keys, which are then
   * unknown, take the global commit lock.
   */
  | { readonly kind: 'conflict'; readonly keys: readonly string[] }

/** A lock on conflicting keys, or the global commit lock. */
export interface CommitLock {
  /** Null for the global commit lock. */
  readonly keyLock: KeyLock | null
  release(): void
}

export interface CommitterOptions {
  readonly store: DocumentStore
  readonly system: System
  readonly metrics: Metrics
  /** Milliseconds until a batch that the store has not completed counts as stalled. */
  readonly commitMillisMax?: number
  readonly memory?: MemoryPlan | undefined
  /**
   * Called for every commit right before its sequence is assigned. A Fault that it throws rejects
   * the commit.
   */
  readonly onAssign?: (writes: CommitWrites) => void
  /** Called for every assigned commit that is known not to be stored, and must not throw. */
  readonly onRollback?: (writes: CommitWrites) => void
  /**
   * Called for every durable commit, in sequence order, before its caller gets the reply. It must
   * not throw.
   */
  readonly onCommit: (sequence: number, writes: CommitWrites) => void
}

/** Receives every durable batch from a point on. */
export interface CommitFollower {
  /** The newest sequence before the first batch. */
  readonly from: number
  stop(): void
}

/** The durable commits, for a backup of a running server. */
export type DurableCommits = Pick<Committer, 'follow' | 'holdSnapshot' | 'durable'>

/** The methods that reads use, in the process that commits and in those that follow it. */
export type ReadableCommits = Pick<
  Committer,
  'durable' | 'pinSnapshot' | 'unpinSnapshot' | 'changedSince' | 'drain'
>

export class Committer {
  readonly #store: DocumentStore
  readonly #system: System
  readonly #metrics: Metrics
  readonly #listeners: Pick<CommitterOptions, 'onAssign' | 'onRollback' | 'onCommit'>
  readonly #commitMillisMax: number
  readonly #locks: LockManager
  readonly #contention: ContentionHistory
  readonly #snapshots: PinnedSnapshots
  readonly #holds: SnapshotHolds
  readonly #memory: MemoryPlan
  #writeLog: WriteLog
  #assigned: number
  #durable: number
  /** Batches that wait for the store; only the last one accepts transactions. */
  readonly #queue: Batch[] = []
  #scheduled = false
  #inFlight: Batch | null = null
  #newestFailed = false
  #pending = new PendingCommits()
  #follower: ((transactions: readonly TransactionWrite[]) => void) | null = null
  #globalLock: { readonly lock: CommitLock; readonly released: Promise<void> } | null = null

  constructor(options: CommitterOptions) {
    const { store, system, metrics, commitMillisMax = INVOCATION_MILLIS_MAX } = options
    this.#store = store
    this.#system = system
    this.#metrics = metrics
    this.#listeners = options
    this.#commitMillisMax = commitMillisMax
    this.#locks = new LockManager(system)
    this.#contention = new ContentionHistory(system)
    this.#assigned = store.latestSequence
    this.#durable = store.latestSequence
    this.#memory = options.memory ?? DEFAULT_PLAN
    this.#writeLog = emptyLog(this.#durable, this.#memory)
    this.#snapshots = new PinnedSnapshots(this.#durable)
    this.#holds = new SnapshotHolds(system)
  }

  /** The newest durable sequence, which is the snapshot of a new Query. */
  get durable(): number {
    return this.#durable
  }

  /** The newest assigned sequence: the snapshot of a new Mutation, read through `pending`. */
  get assigned(): number {
    return this.#assigned
  }

  get pending(): PendingCommits {
    return this.#pending
  }

  /** Returns whether the newest batch failed or a batch is stalled. Reads may still succeed. */
  get isFailing(): boolean {
    return this.#newestFailed || this.#pending.isStalled
  }

  /** Pins the snapshot of an attempt. Call it before you read `durable` or `assigned`. */
  pinSnapshot(): SnapshotPin {
    return this.#snapshots.pin(this.#durable)
  }

  unpinSnapshot(pin: SnapshotPin): void {
    this.#snapshots.unpin(pin)
  }

  /** Keeps what the newest durable snapshot sees in the store, for a reader that takes long. */
  holdSnapshot(): SnapshotHold {
    return this.#holds.hold(this.#durable)
  }

  /**
   * Calls `listener` for every durable batch from now on, in the order of their sequences, right
   * after the batch is durable. It must not throw. There is at most one follower.
   */
  follow(listener: (transactions: readonly TransactionWrite[]) => void): CommitFollower {
    assert(this.#follower === null, 'one follower of the durable commits')
    this.#follower = listener
    const stop = () => {
      this.#follower = null
    }
    return { from: this.#durable, stop }
  }

  /** The oldest snapshot that is held; infinity if none is. */
  get oldestHeld(): number {
    return this.#holds.oldest()
  }

  /** Resolves when no attempt reads at a snapshot before `sequence`, which is durable. */
  whenSnapshotsReach(sequence: number): Promise<void> {
    return this.#snapshots.whenReached(sequence)
  }

  /** Returns whether a commit after `snapshot` wrote anything in `readSet`. */
  changedSince(readSet: ReadSet, snapshot: number): boolean {
    return this.#writeLog.conflicts(readSet, snapshot) !== null
  }

  /**
   * Assigns a sequence to the writes of an attempt, or reports the conflict. Throws UNAVAILABLE
   * where the attempt read commits that were rolled back, and while a batch is stalled.
   */
  commit(request: CommitRequest): MaybePromise<CommitOutcome> {
    const global = this.#globalLock
    if (global !== null && global.lock !== request.lock) {
      return global.released.then(() => this.commit(request))
    }
    if (request.pending?.isRolledBack(request.snapshot) === true) throw rolledBackFault()
    // Only Mutations from before the stall wait, so the queue stays bounded.
    if (this.#pending.isStalled) {
      throw stalledFault()
    }
    const conflicting = this.#conflictingKeys(request)
    if (conflicting !== null) {
      this.#metrics.counters.commitConflicts.add()
      if (request.operation !== null) this.#contention.add(request.operation.function, conflicting)
      return { kind: 'conflict', keys: conflicting }
    }
    const sequence = request.writes.length === 0 ? null : this.#assigned + 1
    const { transaction, writes } = this.#build(request, sequence)
    if (sequence !== null) {
      this.#listeners.onAssign?.(writes)
      this.#assign(sequence, transaction.writes, writes)
    }
    const batch = this.#openBatch()
    batch.transactions.push(transaction)
    batch.writes.push(writes)
    this.#schedule()
    const { durable, outcomeKnown } = batch
    return {
      kind: 'assigned',
      sequence,
      durable: durable.promise,
      outcomeKnown: outcomeKnown.promise,
    }
  }

  #openBatch(): Batch {
    const last = this.#queue.at(-1)
    if (last?.isOpen === true) return last
    const batch = new Batch()
    this.#queue.push(batch)
    return batch
  }

  /** Waits for the lock on the keys of a conflict. Rejects with DEADLINE_EXCEEDED. */
  async acquireLock(keys: readonly string[], deadline: number): Promise<CommitLock> {
    const keyLock = await this.#locks.acquire(keys, deadline)
    return { keyLock, release: () => keyLock.release() }
  }

  /** Returns whether any call should ask for its contended keys. */
  get hasContention(): boolean {
    return this.#locks.size > 0 || !this.#contention.isEmpty
  }

  /**
   * Returns those of `keys` that a call of the Function should lock before its first attempt: they
   * are locked, or such a call lost a conflict on them lately.
   */
  contendedKeys(name: string, keys: readonly string[]): readonly string[] {
    return keys.filter((key) => this.#locks.isLocked(key) || this.#contention.has(name, key))
  }

  /** Waits until only the returned lock's owner may commit. Rejects with DEADLINE_EXCEEDED. */
  async acquireGlobalLock(deadline: number): Promise<CommitLock> {
    const keyLock = await this.#locks.acquire([GLOBAL_KEY], deadline)
    const { promise, resolve } = Promise.withResolvers<void>()
    const lock: CommitLock = {
      keyLock: null,
      release: () => {
        if (this.#globalLock?.lock !== lock) return
        this.#globalLock = null
        keyLock.release()
        resolve()
      },
    }
    this.#globalLock = { lock, released: promise }
    return lock
  }

  /** Resolves once every commit that was assigned before the call is durable or has failed. */
  async drain(): Promise<void> {
    await (this.#queue.at(-1) ?? this.#inFlight)?.outcomeKnown.promise
  }

  /** Returns the keys to lock before the next attempt; null if the commit has no conflict. */
  #conflictingKeys(request: CommitRequest): readonly string[] | null {
    if (request.writes.length === 0) return null
    const conflict = this.#writeLog.conflicts(request.readSet, request.snapshot)
    if (conflict !== null) return conflict === 'unknown' ? [] : lockKeys(conflict)
    // The owner of the global lock ignores key locks: their owners wait in `commit` for it.
    if (this.#globalLock !== null || this.#locks.size === 0) return null
    const written = request.writes.map((write) => write.id)
    const locked = this.#locks.lockedByOther(written, request.lock?.keyLock ?? null)
    return locked === null ? null : [locked]
  }

  #build(request: CommitRequest, sequence: number | null) {
    const keysByIndex = new Map<number, string[]>()
    const indexes = this.#store.listIndexes()
    const writes = request.writes.map((write) => documentWrite(write, indexes, keysByIndex))
    const transaction: TransactionWrite = {
      sequence,
      atMicros: request.atMicros,
      writes,
      ...(request.operation && { operation: { ...request.operation, commitSequence: sequence } }),
    }
    return {
      transaction,
      writes: {
        documents: writes.map((write) => write.id),
        keys: keysByIndex,
        ...systemChanges(request.writes),
      },
    }
  }

  #schedule(): void {
    if (this.#scheduled || this.#inFlight !== null || this.#queue.length === 0) return
    this.#scheduled = true
    // The batch gathers all Mutations whose last message arrives in this event loop iteration.
    setImmediate(() => {
      this.#scheduled = false
      void this.#flush()
    })
  }

  async #flush(): Promise<void> {
    const batch = this.#queue.shift()
    if (batch === undefined) return
    this.#inFlight = batch
    const stallTimer = setTimeout(() => this.#markStalled(batch), this.#commitMillisMax)
    try {
      await this.#write(batch)
    } finally {
      clearTimeout(stallTimer)
      this.#inFlight = null
      this.#schedule()
    }
  }

  async #write(batch: Batch): Promise<void> {
    const { transactions } = batch
    const startedMillis = this.#system.monotonicMillis()
    try {
      await this.#store.commit({
        transactions,
        onUnreachable: () => this.#stopUntilKnown(batch),
      })
    } catch (error) {
      this.#newestFailed = true
      this.#metrics.counters.commitBatchesFailed.add()
      this.#rollBack(batch, error)
      return
    }
    this.#newestFailed = false
    this.#count(transactions.length, startedMillis)
    for (const [i, { sequence }] of transactions.entries()) {
      if (sequence === null) continue
      this.#durable = sequence
      this.#listeners.onCommit(sequence, batch.writes[i]!)
    }
    this.#pending.markDurable(this.#durable)
    this.#follower?.(transactions)
    batch.succeed()
  }

  /**
   * Rejects Mutations until the outcome of the batch that was sent is known, since they would only
   * wait for it. Later batches were not sent, so nothing of them is stored.
   */
  #stopUntilKnown(sent: Batch): void {
    if (this.#pending.isStalled) return
    const later = this.#resetTo([sent])
    this.#pending.markStalled()
    this.#notifyRollback(later)
    for (const batch of later) batch.fail(stalledFault())
  }

  /** Marks the batch and all later ones, which cannot become durable sooner. */
  #markStalled(batch: Batch): void {
    this.#pending.markStalled()
    for (const waiting of [batch, ...this.#queue]) waiting.markStalled()
  }

  #count(commits: number, startedMillis: number): void {
    const { counters, histograms } = this.#metrics
    counters.commitBatches.add()
    counters.commits.add(commits)
    const millis = this.#system.monotonicMillis() - startedMillis
    histograms.commitDurationMicros.observe(millis * 1000)
  }

  /**
   * Fails the batch and all later ones, whose transactions read its writes or have sequences that
   * follow from its sequences. The sequences are assigned again.
   */
  #rollBack(batch: Batch, error: unknown): void {
    const later = this.#resetTo([])
    const isUncertain = isFault(error, 'RESULT_UNCERTAIN')
    this.#notifyRollback(isUncertain ? later : [batch, ...later])
    batch.fail(error)
    for (const dependent of later) dependent.fail(rolledBackFault(error))
  }

  /**
   * Drops all assigned sequences except those of `kept`, which were sent to the store. Returns the
   * dropped batches that were not sent.
   */
  #resetTo(kept: readonly Batch[]): readonly Batch[] {
    this.#assigned = this.#durable
    this.#writeLog = emptyLog(this.#durable, this.#memory)
    this.#pending.rollBack()
    this.#pending = new PendingCommits()
    for (const { transactions, writes } of kept) {
      for (const [i, { sequence, writes: documents }] of transactions.entries()) {
        if (sequence !== null) this.#assign(sequence, documents, writes[i]!)
      }
    }
    return this.#queue.splice(0)
  }

  #assign(sequence: number, documents: readonly DocumentWrite[], writes: CommitWrites): void {
    this.#assigned = sequence
    const oldestPinned = this.#snapshots.oldest(this.#durable)
    this.#writeLog.append({ sequence, writes, oldestPinned })
    this.#pending.add(sequence, documents, writes)
  }

  #notifyRollback(batches: readonly Batch[]): void {
    for (const { transactions, writes } of batches) {
      for (const [i, { sequence }] of transactions.entries()) {
        if (sequence !== null) this.#listeners.onRollback?.(writes[i]!)
      }
    }
  }
}

export function emptyLog(latestSequence: number, { writeLogCharacters }: MemoryPlan): WriteLog {
  return new WriteLog({
    latestSequence,
    entriesMax: Math.floor(writeLogCharacters / LOG_ENTRY_CHARACTERS),
    charactersMax: writeLogCharacters,
  })
}
