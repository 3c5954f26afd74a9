/**
 * Runs all changes of the database, one after the other, and determines whether a commit is stored
 * when its reply was lost: a new epoch prevents the lost statement from storing anything later, and
 * the number of the last batch shows whether it did.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Connection } from '../../database/connection.ts'
import type { Database } from '../../database/database.ts'
import { assert } from '../../errors/assert.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import type { CompactTexts } from '../compact-texts.ts'
import type { IndexTable } from '../index-rows.ts'
import type { IndexRow, PhysicalIndex, TransactionWrite } from '../store.ts'
import { batchParts } from './batch-rows.ts'
import { writeParts } from './commits.ts'
import { EpochLost, storeFault } from './failures.ts'
import { renewTerm, type Term } from './terms.ts'

/** Pauses between attempts to determine an outcome, doubled each time up to the maximum. */
const RETRY_MILLIS_MIN = 50
const RETRY_MILLIS_MAX = 2_000

export interface WriterOptions {
  /** A pool of one connection: changes never run concurrently. */
  readonly database: Database
  /** ID of the server that has the term. */
  readonly writer: string
  readonly term: Term
  readonly texts: CompactTexts
  readonly system: Pick<System, 'monotonicMillis'>
  /** Time for which a commit whose reply was lost waits for PostgreSQL to be reachable again. */
  readonly reconcileMillis: number
  /** Called once, when the writer fails and does not recover. */
  readonly onFailed: (detail: string) => void
}

export class Writer {
  readonly #options: WriterOptions
  #term: Term
  /** True while the outcome of a statement is unknown: the next change needs a new term. */
  #needsNewTerm = false
  #failure: Fault | null = null
  #tail: Promise<unknown> = Promise.resolve()

  constructor(options: WriterOptions) {
    this.#options = options
    this.#term = options.term
  }

  /** The indexes that commits have to maintain, as of the last change. */
  listIndexes(): readonly PhysicalIndex[] {
    return this.#term.indexes.listVisible()
  }

  indexRows(): readonly IndexRow[] {
    return [...this.#term.indexes.rows()]
  }

  findIndex(id: number): IndexRow | undefined {
    return this.#term.indexes.get(id)
  }

  /**
   * Stores a batch. Throws UNAVAILABLE where nothing is stored, and RESULT_UNCERTAIN where that is
   * unknown: then the writer has failed. Calls `onUnreachable` where the reply was lost and no
   * connection is available to determine the outcome.
   */
  commit(
    transactions: readonly TransactionWrite[],
    onUnreachable: () => void = () => undefined,
  ): Promise<void> {
    return this.#enqueue(async () => {
      const term = await this.#usableTerm()
      const parts = batchParts(transactions, {
        latestSequence: term.latestSequence,
        indexes: term.indexes,
        texts: this.#options.texts,
      })
      const last = parts.at(-1)
      if (last === undefined) return
      const connection = await this.#options.database.connect()
      try {
        await writeParts(connection, term, parts)
        connection.release()
      } catch (error) {
        connection.discard()
        if (error instanceof EpochLost) throw error
        if (!(await this.#isStored(parts.length, onUnreachable))) throw error
        return
      }
      term.batch += parts.length
      term.latestSequence = last.latestSequence
    })
  }

  /**
   * Runs any other change in its own transaction. After UNAVAILABLE the change may or may not be
   * stored, so it must be repeatable. `apply` updates the index table once the change is stored.
   */
  change<T>(
    execute: (connection: Connection, term: Term) => Promise<T>,
    apply: (indexes: IndexTable, result: T) => void,
  ): Promise<T> {
    return this.#enqueue(async () => {
      const term = await this.#usableTerm()
      const connection = await this.#options.database.connect()
      try {
        await connection.query('begin isolation level read committed')
        const locked = await connection.query('select from state where epoch = $1 for share', [
          term.epoch,
        ])
        if (locked.rowCount !== 1) throw new EpochLost()
        const result = await execute(connection, term)
        await connection.query('commit')
        connection.release()
        apply(term.indexes, result)
        return result
      } catch (error) {
        this.#needsNewTerm = true
        connection.discard()
        throw error
      }
    })
  }

  /** Waits for the pending changes. */
  async close(): Promise<void> {
    await this.#tail
    await this.#options.database.close()
  }

  /** Stops all further changes, such as after a read of corrupt data. */
  fail(fault: Fault): void {
    if (this.#failure !== null) return
    this.#failure = fault
    this.#options.onFailed(fault.detail ?? fault.message)
  }

  #enqueue<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(async () => {
      if (this.#failure !== null) {
        throw new Fault('UNAVAILABLE', { detail: this.#failure.detail, cause: this.#failure })
      }
      try {
        return await task()
      } catch (error) {
        const fault = storeFault(error)
        const isFatal =
          error instanceof EpochLost || isFault(fault, 'PRODUCT_CORRUPT', 'RESULT_UNCERTAIN')
        if (isFatal) this.fail(fault)
        throw fault
      }
    })
    this.#tail = result.catch(() => undefined)
    return result
  }

  async #usableTerm(): Promise<Term> {
    if (this.#needsNewTerm) await this.#renew()
    return this.#term
  }

  async #renew(): Promise<void> {
    const connection = await this.#options.database.connect()
    try {
      const term = await renewTerm(connection, this.#options.writer)
      if (term.batch < this.#term.batch) throw new EpochLost()
      this.#term = term
      this.#needsNewTerm = false
      connection.release()
    } catch (error) {
      connection.discard()
      throw error
    }
  }

  /**
   * Determines whether the batches that were sent last are stored: all or none. Throws
   * RESULT_UNCERTAIN where PostgreSQL stays unreachable.
   */
  async #isStored(count: number, onUnreachable: () => void): Promise<boolean> {
    const { system, reconcileMillis } = this.#options
    const before = this.#term.batch
    const deadline = system.monotonicMillis() + reconcileMillis
    this.#needsNewTerm = true
    for (let pause = RETRY_MILLIS_MIN; ; pause = Math.min(pause * 2, RETRY_MILLIS_MAX)) {
      try {
        await this.#renew()
        const stored = this.#term.batch - before
        assert(stored === 0 || stored === count, 'a batch is stored in part')
        return stored === count
      } catch (error) {
        const fault = storeFault(error)
        const isLate = system.monotonicMillis() >= deadline
        if (isLate || error instanceof EpochLost || fault.code !== 'UNAVAILABLE') {
          throw new Fault('RESULT_UNCERTAIN', { detail: `commit: ${fault.detail}`, cause: fault })
        }
      }
      onUnreachable()
      await delay(pause)
    }
  }
}
