/**
 * Transactions of the server over the tables of stored files. They read snapshots and are committed
 * as those of Mutations are, so a Function sees a file and all that refers to it together.
 */
import type { DocumentStore, OperationRecord } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { System } from '../../system/system.ts'
import type { CommitLock, CommitOutcome, Committer } from '../commits/committer.ts'
import type { FileChange } from '../commits/read-set.ts'
import { ATTEMPTS_MAX, EXCLUSIVE_ATTEMPT, INVOCATION_MILLIS_MAX } from '../limits.ts'
import type { SystemTables, SystemTablesLoader } from '../tables/system-tables.ts'
import { Transaction } from '../transactions/transaction.ts'
import type { TableSource } from '../transactions/transaction-tables.ts'

export interface SystemDocumentsOptions {
  readonly store: DocumentStore
  readonly committer: Committer
  readonly system: System
  readonly tables: SystemTablesLoader
}

/** Receives the durable changes of metadata of one commit. It must not throw. */
export type FilesListener = (changes: readonly FileChange[]) => void

/** Returns the record of an operation from the result of its change. */
export type RecordOperation<T> = (result: T) => Omit<OperationRecord, 'commitSequence'>

interface Attempted<T> {
  readonly result: T
  /** Null where nothing was written. */
  readonly outcome: CommitOutcome | null
}

/** The parts that the transactions of one change have in common. */
interface Change<T> {
  readonly source: TableSource
  readonly isSystem: boolean
  readonly body: (transaction: Transaction) => MaybePromise<T>
  readonly record: RecordOperation<T> | null
}

const NO_TABLES = new Map()

export class SystemDocuments {
  readonly #options: SystemDocumentsOptions
  readonly #listeners = new Set<FilesListener>()

  constructor(options: SystemDocumentsOptions) {
    this.#options = options
  }

  /** Adds a listener; returns the function that removes it. */
  listen(listener: FilesListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Passes durable changes to the listeners. */
  notify(changes: readonly FileChange[]): void {
    for (const listener of this.#listeners) listener(changes)
  }

  /** Reads at the newest durable snapshot. Rejects as the body does, and with UNAVAILABLE. */
  async read<T>(body: (transaction: Transaction) => MaybePromise<T>): Promise<T> {
    return this.#read(systemSource(await this.#options.tables.load()), body)
  }

  /** Reads as `read` does, but only what Functions may read. */
  async readShared<T>(body: (transaction: Transaction) => MaybePromise<T>): Promise<T> {
    return this.#read(sharedSource(await this.#options.tables.load()), body)
  }

  /**
   * Runs the body until its writes are committed without a conflict, and resolves when they are
   * durable. Rejects as the body does, with WRITE_CONFLICT, UNAVAILABLE and DEADLINE_EXCEEDED where
   * nothing was stored, and with RESULT_UNCERTAIN. `record` is committed with the writes; its ID
   * must be new.
   */
  async change<T>(
    body: (transaction: Transaction) => MaybePromise<T>,
    record: RecordOperation<T> | null = null,
  ): Promise<T> {
    const source = systemSource(await this.#options.tables.load())
    return this.#change({ source, isSystem: true, body, record })
  }

  /** Returns what `change` recorded under this ID; null if it recorded nothing. */
  async operation(id: string): Promise<OperationRecord | null> {
    return this.#options.store.operation(id)
  }

  /** Changes as `change` does, but only what a Mutation may change. */
  async changeShared<T>(body: (transaction: Transaction) => MaybePromise<T>): Promise<T> {
    const source = sharedSource(await this.#options.tables.load())
    return this.#change({ source, isSystem: false, body, record: null })
  }

  async #read<T>(
    release: TableSource,
    body: (transaction: Transaction) => MaybePromise<T>,
  ): Promise<T> {
    const { committer } = this.#options
    const pin = committer.pinSnapshot()
    try {
      return await body(this.#transaction(release, { isSystem: false, writable: false }))
    } finally {
      committer.unpinSnapshot(pin)
    }
  }

  async #change<T>(change: Change<T>): Promise<T> {
    const { committer, system } = this.#options
    const deadline = system.monotonicMillis() + INVOCATION_MILLIS_MAX
    let lock: CommitLock | null = null
    try {
      for (let next = 2; next <= ATTEMPTS_MAX + 1; next++) {
        const attempted: Attempted<T> = await this.#attempt(change, lock)
        const { result, outcome } = attempted
        if (outcome?.kind !== 'conflict') {
          // The next owner of the lock reads the pending commit.
          lock?.release()
          await outcome?.durable
          return result
        }
        lock?.release()
        lock = null
        lock =
          next >= EXCLUSIVE_ATTEMPT || outcome.keys.length === 0
            ? await committer.acquireGlobalLock(deadline)
            : await committer.acquireLock(outcome.keys, deadline)
      }
      throw new Fault('WRITE_CONFLICT')
    } finally {
      lock?.release()
    }
  }

  async #attempt<T>(
    { source, isSystem, body, record }: Change<T>,
    lock: CommitLock | null,
  ): Promise<Attempted<T>> {
    const { committer, system } = this.#options
    const pin = committer.pinSnapshot()
    const transaction = this.#transaction(source, { isSystem, writable: true })
    try {
      const result = await body(transaction)
      const writes = transaction.writes()
      const operation = record === null ? null : record(result)
      if (writes.length === 0 && operation === null) {
        await transaction.whenDurable()
        return { result, outcome: null }
      }
      const { snapshot, pending, readSet } = transaction
      const atMicros = system.nowMicros()
      const request = { snapshot, pending, readSet, writes, atMicros, operation, lock }
      return { result, outcome: await committer.commit(request) }
    } catch (error) {
      // A failure may follow from pending commits, so it is reported once they are durable.
      if (transaction.hasReadPending || transaction.isRolledBack) await transaction.whenDurable()
      throw error
    } finally {
      committer.unpinSnapshot(pin)
    }
  }

  #transaction(
    release: TableSource,
    { isSystem, writable }: { readonly isSystem: boolean; readonly writable: boolean },
  ): Transaction {
    const { store, committer, system } = this.#options
    return new Transaction({
      store,
      release,
      snapshot: writable ? committer.assigned : committer.durable,
      pending: writable ? committer.pending : null,
      nowMicros: system.nowMicros(),
      seed: system.randomBytes(32).toHex(),
      writable,
      isSystem,
    })
  }
}

function systemSource({ all }: SystemTables): TableSource {
  return { tables: NO_TABLES, systemTables: all }
}

function sharedSource({ shared }: SystemTables): TableSource {
  return { tables: NO_TABLES, systemTables: shared }
}
