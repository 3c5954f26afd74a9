/**
 * The one place where Mutations become real. It runs in memory, one at a time: it checks a read set
 * against everything committed since its snapshot, assigns the sequence and gathers what is ready
 * into one durable transaction. Nobody is answered before that transaction is on the disk, but
 * later Mutations read what was assigned at once.
 */
import { encodeTrailer } from '../../documents/key-encoding.ts'
import { indexKeyOf } from '../../documents/keys.ts'
import type {
  DocumentStore,
  DocumentWrite,
  EntryWrite,
  OperationRecord,
  PhysicalIndex,
  TransactionWrite,
} from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { System } from '../../system/system.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import { INVOCATION_MILLIS_MAX } from '../limits.ts'
import type { PendingWrite } from '../transactions/overlay.ts'
import { type KeyLock, LockManager } from './lock-manager.ts'
import { lostFault, PendingCommits, stalledFault } from './pending-commits.ts'
import { PinnedSnapshots, type SnapshotPin } from './pinned-snapshots.ts'
import type { CommitWrites, ReadSet } from './read-set.ts'
import { type Conflict, WriteLog } from './write-log.ts'

/** Mutations of one durable transaction; more wait for the next one. */
const BATCH_MAX = 512
/** The key whose ticket is an exclusive turn: no document and no index has that name. */
const EVERYTHING = ''
/** Documents and keys of recent commits that read sets are checked against. */
const LOG_ENTRIES_MAX = 500_000

export interface CommitRequest {
  readonly snapshot: number
  /** Those that the attempt read; null where its snapshot was durable. */
  readonly pending: PendingCommits | null
  readonly readSet: ReadSet
  readonly writes: readonly PendingWrite[]
  readonly atMicros: bigint
  readonly operation: Omit<OperationRecord, 'commitSequence'>
  /** What an attempt that runs again holds. */
  readonly turn: Turn | null
}

export type CommitOutcome =
  | {
      /** It has its place, and will be durable unless the store fails. */
      readonly kind: 'assigned'
      /** Null where nothing was written. */
      readonly sequence: number | null
      /**
       * UNAVAILABLE where nothing was stored, RESULT_UNCERTAIN where that is unknown;
       * DEADLINE_EXCEEDED where the store has not said in time, and `settled` when it has.
       */
      readonly durable: Promise<void>
      /** Never rejects. */
      readonly settled: Promise<void>
    }
  /** Nothing was stored; wait for the keys and run again at a new snapshot. None: for everybody. */
  | { readonly kind: 'conflict'; readonly keys: readonly string[] }

/** The right to commit before others: of some keys, or of everything. */
export interface Turn {
  readonly ticket: KeyLock | null
  release(): void
}

/** What becomes durable together. */
class Batch {
  readonly transactions: TransactionWrite[] = []
  readonly writes: CommitWrites[] = []
  /** As those who wait for it are told. */
  readonly durable = Promise.withResolvers<void>()
  readonly settled = Promise.withResolvers<void>()
  #isStalled = false

  /** Whether one more may come to it. */
  get isOpen(): boolean {
    return this.transactions.length < BATCH_MAX && !this.#isStalled
  }

  succeed(): void {
    this.durable.resolve()
    this.settled.resolve()
  }

  fail(error: unknown): void {
    this.durable.reject(error)
    this.settled.resolve()
  }

  markStalled(): void {
    this.#isStalled = true
    this.durable.reject(stalledFault())
  }
}

export interface CommitterOptions {
  readonly store: DocumentStore
  readonly system: System
  readonly metrics: Metrics
  /** Milliseconds that the store may take over a batch before its Mutations are answered. */
  readonly commitMillisMax?: number
  /** Called for every durable commit, in order, before its Mutation is answered. */
  readonly onCommit: (sequence: number, writes: CommitWrites) => void
}

export class Committer {
  readonly #store: DocumentStore
  readonly #system: System
  readonly #metrics: Metrics
  readonly #onCommit: CommitterOptions['onCommit']
  readonly #commitMillisMax: number
  readonly #tickets: LockManager
  readonly #snapshots: PinnedSnapshots
  #writeLog: WriteLog
  #assigned: number
  #durable: number
  /** Those that wait, the last of them open. */
  readonly #queue: Batch[] = []
  #scheduled = false
  #inFlight: Batch | null = null
  #newestFailed = false
  #pending = new PendingCommits()
  #exclusive: { readonly turn: Turn; readonly done: Promise<void> } | null = null

  constructor(options: CommitterOptions) {
    const { store, system, metrics, onCommit, commitMillisMax = INVOCATION_MILLIS_MAX } = options
    this.#store = store
    this.#system = system
    this.#metrics = metrics
    this.#onCommit = onCommit
    this.#commitMillisMax = commitMillisMax
    this.#tickets = new LockManager(system)
    this.#assigned = store.latestSequence
    this.#durable = store.latestSequence
    this.#writeLog = emptyLog(this.#durable)
    this.#snapshots = new PinnedSnapshots(this.#durable)
  }

  /** The snapshot of a Query: the newest that is durable. */
  get durable(): number {
    return this.#durable
  }

  /** The snapshot of a Mutation: the newest there is, read through `pending`. */
  get assigned(): number {
    return this.#assigned
  }

  get pending(): PendingCommits {
    return this.#pending
  }

  /** Whether the store refused the newest batch, or says nothing: reads may well go on. */
  get isFailing(): boolean {
    return this.#newestFailed || this.#pending.isStalled
  }

  /** Pins the snapshot of an attempt, before it is taken and until `unpinSnapshot`. */
  pinSnapshot(): SnapshotPin {
    return this.#snapshots.begin(this.#durable)
  }

  unpinSnapshot(use: SnapshotPin): void {
    this.#snapshots.end(use)
  }

  /** Whether anything that `readSet` holds was written by a durable commit after `snapshot`. */
  changedSince(readSet: ReadSet, snapshot: number): boolean {
    return this.#writeLog.conflicts(readSet, snapshot) !== null
  }

  /** Raises UNAVAILABLE where the attempt read what was lost meanwhile, and behind a late batch. */
  commit(request: CommitRequest): MaybePromise<CommitOutcome> {
    const exclusive = this.#exclusive
    if (exclusive !== null && exclusive.turn !== request.turn) {
      return exclusive.done.then(() => this.commit(request))
    }
    if (request.pending?.isLost(request.snapshot) === true) throw lostFault()
    // What waits behind it is bounded by those that came before it was late.
    if (this.#pending.isStalled) throw new Fault('UNAVAILABLE', { detail: 'behind a late commit' })
    const lost = this.#conflicts(request)
    if (lost !== null) {
      this.#metrics.counters.commitConflicts.add()
      return { kind: 'conflict', keys: lost }
    }
    const sequence = request.writes.length === 0 ? null : this.#assigned + 1
    const { transaction, writes } = this.#build(request, sequence)
    if (sequence !== null) {
      this.#assigned = sequence
      const oldestInUse = this.#snapshots.oldest(this.#durable)
      this.#writeLog.append({ sequence, writes, oldestInUse })
      this.#pending.add(sequence, transaction.writes, writes)
    }
    const batch = this.#openBatch()
    batch.transactions.push(transaction)
    batch.writes.push(writes)
    this.#schedule()
    const { durable, settled } = batch
    return { kind: 'assigned', sequence, durable: durable.promise, settled: settled.promise }
  }

  #openBatch(): Batch {
    const last = this.#queue.at(-1)
    if (last?.isOpen === true) return last
    const batch = new Batch()
    this.#queue.push(batch)
    return batch
  }

  /** Waits for a turn on the keys that an attempt lost. DEADLINE_EXCEEDED. */
  async takeTurn(keys: readonly string[], deadline: number): Promise<Turn> {
    const ticket = await this.#tickets.acquire(keys, deadline)
    return { ticket, release: () => ticket.release() }
  }

  /** Whether anybody has a turn on anything. */
  get isContended(): boolean {
    return this.#tickets.size > 0
  }

  /** Those that somebody has a turn on: whoever will write them saves an attempt by waiting. */
  contended(keys: Iterable<string>): readonly string[] {
    return this.#tickets.held(keys)
  }

  /** Waits until this attempt is the only one that may commit. DEADLINE_EXCEEDED. */
  async takeExclusiveTurn(deadline: number): Promise<Turn> {
    const ticket = await this.#tickets.acquire([EVERYTHING], deadline)
    const { promise, resolve } = Promise.withResolvers<void>()
    const turn: Turn = {
      ticket: null,
      release: () => {
        if (this.#exclusive?.turn !== turn) return
        this.#exclusive = null
        ticket.release()
        resolve()
      },
    }
    this.#exclusive = { turn, done: promise }
    return turn
  }

  /** Resolves once everything that was assigned before the call is durable, or has failed. */
  async drain(): Promise<void> {
    await (this.#queue.at(-1) ?? this.#inFlight)?.settled.promise
  }

  #conflicts(request: CommitRequest): readonly string[] | null {
    if (request.writes.length === 0) return null
    const lost = this.#writeLog.conflicts(request.readSet, request.snapshot)
    if (lost !== null) return lost === 'unknown' ? [] : ticketKeys(lost)
    // Whoever commits alone waits for nobody: those who hold tickets wait for it.
    if (this.#exclusive !== null || !this.isContended) return null
    const written = request.writes.map((write) => write.id)
    const held = this.#tickets.heldByOther(written, request.turn?.ticket ?? null)
    return held === null ? null : [held]
  }

  #build(request: CommitRequest, sequence: number | null) {
    const keysByIndex = new Map<number, string[]>()
    const indexes = this.#store.listIndexes()
    const writes = request.writes.map((write) => documentWrite(write, indexes, keysByIndex))
    const transaction: TransactionWrite = {
      sequence,
      atMicros: request.atMicros,
      writes,
      operation: { ...request.operation, commitSequence: sequence },
    }
    return {
      transaction,
      writes: { documents: writes.map((write) => write.id), keys: keysByIndex },
    }
  }

  #schedule(): void {
    if (this.#scheduled || this.#inFlight !== null || this.#queue.length === 0) return
    this.#scheduled = true
    // One turn of the event loop gathers the Mutations whose last message came with it.
    setImmediate(() => {
      this.#scheduled = false
      void this.#flush()
    })
  }

  async #flush(): Promise<void> {
    const batch = this.#queue.shift()
    if (batch === undefined) return
    this.#inFlight = batch
    const late = setTimeout(() => this.#tellLate(batch), this.#commitMillisMax)
    try {
      await this.#write(batch)
    } finally {
      clearTimeout(late)
      this.#inFlight = null
      this.#schedule()
    }
  }

  async #write(batch: Batch): Promise<void> {
    const { transactions } = batch
    const startedMillis = this.#system.monotonicMillis()
    try {
      await this.#store.commit({ transactions })
    } catch (error) {
      this.#newestFailed = true
      this.#metrics.counters.commitBatchesFailed.add()
      this.#abandon(batch, error)
      return
    }
    this.#newestFailed = false
    this.#count(transactions.length, startedMillis)
    for (const [i, { sequence }] of transactions.entries()) {
      if (sequence === null) continue
      this.#durable = sequence
      this.#onCommit(sequence, batch.writes[i]!)
    }
    this.#pending.settle(this.#durable)
    batch.succeed()
  }

  /** Those behind it are told with it: nothing says that the store will answer them sooner. */
  #tellLate(batch: Batch): void {
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

  /** What was assigned behind a failed batch read its writes or counted on its sequences. */
  #abandon(batch: Batch, error: unknown): void {
    const behind = this.#queue.splice(0)
    this.#assigned = this.#durable
    this.#writeLog = emptyLog(this.#durable)
    this.#pending.lose()
    this.#pending = new PendingCommits()
    batch.fail(error)
    for (const lost of behind) lost.fail(lostFault(error))
  }
}

function emptyLog(latestSequence: number): WriteLog {
  return new WriteLog({
    latestSequence,
    entriesMax: LOG_ENTRIES_MAX,
  })
}

function ticketKeys({ documents, keys }: Conflict): readonly string[] {
  return [...documents, ...keys.map(({ index, key }) => `${index}:${key}`)]
}

/** Whether it is known without making both: most changes leave most indexes as they are. */
function hasSameKey({ fields }: PhysicalIndex, { before, after }: PendingWrite): boolean {
  if (before === null || after === null) return false
  return fields.every((field) => before.get(field) === after.get(field))
}

/** `keysByIndex` gains every key at which an index read sees this document change. */
function documentWrite(
  write: PendingWrite,
  indexes: readonly PhysicalIndex[],
  keysByIndex: Map<number, string[]>,
): DocumentWrite {
  const { id, createdAtMicros, before: old, after: fields } = write
  const entries: EntryWrite[] = []
  const trailer = encodeTrailer(write)
  for (const index of indexes) {
    if (index.table !== write.table) continue
    const before = old === null ? null : indexKeyOf(index, old, trailer)
    const isSame = hasSameKey(index, write)
    const after = isSame || fields === null ? null : indexKeyOf(index, fields, trailer)
    const isMoved = !isSame && before !== after
    if (isMoved && before !== null) entries.push({ index: index.id, key: before, live: false })
    if (isMoved && after !== null) entries.push({ index: index.id, key: after, live: true })
    let keys = keysByIndex.get(index.id)
    if (keys === undefined) {
      keys = []
      keysByIndex.set(index.id, keys)
    }
    if (before !== null) keys.push(before)
    if (isMoved && after !== null) keys.push(after)
  }
  return { id, createdAtMicros, text: fields === null ? null : write.document.text, entries }
}
