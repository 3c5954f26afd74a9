/**
 * Everything that changes the database, one change after the other. It is the one place that knows
 * whether a change is stored: where the answer was lost, a new epoch keeps the old statement from
 * storing anything later, and the number of the last batch tells what it did.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Connection } from '../../database/connection.ts'
import type { Database } from '../../database/database.ts'
import { assert } from '../../errors/assert.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import { type IndexRow, visible } from '../index-rows.ts'
import type { PhysicalIndex, TransactionWrite } from '../store.ts'
import { batchParts } from './batch-rows.ts'
import { writeParts } from './commits.ts'
import { EpochLost, storeFault } from './failures.ts'
import { renewTerm, type Term } from './terms.ts'

const PAUSE_MILLIS_MIN = 50
const PAUSE_MILLIS_MAX = 2_000

export interface WriterOptions {
  /** Of one connection: changes never run side by side. */
  readonly database: Database
  /** Who holds the term. */
  readonly writer: string
  readonly term: Term
  readonly system: Pick<System, 'monotonicMillis'>
  /** How long a commit whose answer was lost waits for PostgreSQL to come back. */
  readonly settleMillis: number
  /** Called once, when the writer must not be used any more. */
  readonly onFailed: (detail: string) => void
}

export class Writer {
  readonly #options: WriterOptions
  #term: Term
  /** Whether a statement was lost since the term began: the next change needs a new one. */
  #lost = false
  #failure: Fault | null = null
  #tail: Promise<unknown> = Promise.resolve()
  #visible: readonly PhysicalIndex[] | null = null

  constructor(options: WriterOptions) {
    this.#options = options
    this.#term = options.term
  }

  /** Those that commits have to keep, as of the last change. */
  listIndexes(): readonly PhysicalIndex[] {
    // Every commit asks, and they change with a Release only.
    this.#visible ??= [...this.#term.indexes.values()].flatMap((row) => visible(row) ?? [])
    return this.#visible
  }

  findIndex(id: number): IndexRow | undefined {
    return this.#term.indexes.get(id)
  }

  /** UNAVAILABLE: nothing is stored. RESULT_UNCERTAIN: that cannot be known; it has failed. */
  commit(transactions: readonly TransactionWrite[]): Promise<void> {
    return this.#inOrder(async () => {
      const term = await this.#held()
      const parts = batchParts(transactions, term)
      const last = parts.at(-1)
      if (last === undefined) return
      const connection = await this.#options.database.connect()
      try {
        await writeParts(connection, term, parts)
        connection.release()
      } catch (error) {
        connection.discard()
        if (error instanceof EpochLost) throw error
        if (!(await this.#isStored(parts.length))) throw error
        return
      }
      term.batch += parts.length
      term.latestSequence = last.latestSequence
    })
  }

  /**
   * Runs any other change in a transaction of its own. Where it raises UNAVAILABLE the change may
   * be stored or not, so it is one that can be repeated. `apply` tells the indexes what is stored.
   */
  change<T>(
    work: (connection: Connection, term: Term) => Promise<T>,
    apply: (indexes: Term['indexes'], result: T) => void,
  ): Promise<T> {
    return this.#inOrder(async () => {
      const term = await this.#held()
      const connection = await this.#options.database.connect()
      try {
        await connection.query('begin isolation level read committed')
        const held = await connection.query('select from state where epoch = $1 for share', [
          term.epoch,
        ])
        if (held.rowCount !== 1) throw new EpochLost()
        const result = await work(connection, term)
        await connection.query('commit')
        connection.release()
        apply(term.indexes, result)
        this.#visible = null
        return result
      } catch (error) {
        this.#lost = true
        connection.discard()
        throw error
      }
    })
  }

  /** Waits for the changes that were handed in. */
  async close(): Promise<void> {
    await this.#tail
    await this.#options.database.close()
  }

  /** Called where a read shows that the database must not be written any more. */
  fail(fault: Fault): void {
    if (this.#failure !== null) return
    this.#failure = fault
    this.#options.onFailed(fault.detail ?? fault.message)
  }

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(async () => {
      if (this.#failure !== null) {
        throw new Fault('UNAVAILABLE', { detail: this.#failure.detail, cause: this.#failure })
      }
      try {
        return await work()
      } catch (error) {
        const fault = storeFault(error)
        const over =
          error instanceof EpochLost || isFault(fault, 'PRODUCT_CORRUPT', 'RESULT_UNCERTAIN')
        if (over) this.fail(fault)
        throw fault
      }
    })
    this.#tail = result.catch(() => undefined)
    return result
  }

  async #held(): Promise<Term> {
    if (this.#lost) await this.#renew()
    return this.#term
  }

  async #renew(): Promise<void> {
    const connection = await this.#options.database.connect()
    try {
      const term = await renewTerm(connection, this.#options.writer)
      if (term.batch < this.#term.batch) throw new EpochLost()
      this.#term = term
      this.#lost = false
      this.#visible = null
      connection.release()
    } catch (error) {
      connection.discard()
      throw error
    }
  }

  /** Whether the batches that were just sent are stored; in the order of one term, all or none. */
  async #isStored(count: number): Promise<boolean> {
    const { system, settleMillis } = this.#options
    const before = this.#term.batch
    const until = system.monotonicMillis() + settleMillis
    this.#lost = true
    for (let pause = PAUSE_MILLIS_MIN; ; pause = Math.min(pause * 2, PAUSE_MILLIS_MAX)) {
      try {
        await this.#renew()
        const stored = this.#term.batch - before
        assert(stored === 0 || stored === count, 'a batch is stored in part')
        return stored === count
      } catch (error) {
        const fault = storeFault(error)
        const late = system.monotonicMillis() >= until
        if (late || error instanceof EpochLost || fault.code !== 'UNAVAILABLE') {
          throw new Fault('RESULT_UNCERTAIN', { detail: `commit: ${fault.detail}`, cause: fault })
        }
      }
      await delay(pause)
    }
  }
}
