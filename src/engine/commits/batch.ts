/** The unit of group commit. */
import type { TransactionWrite } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import type { CommitWrites } from './read-set.ts'

/** Most Mutations in one durable transaction. */
const BATCH_MAX = 512

/** Transactions that become durable together (group commit). */
export class Batch {
  readonly transactions: TransactionWrite[] = []
  readonly writes: CommitWrites[] = []
  /** `CommitOutcome.durable` of all its transactions. */
  readonly durable = Promise.withResolvers<void>()
  readonly outcomeKnown = Promise.withResolvers<void>()
  #isStalled = false

  /** Returns whether it accepts another transaction. */
  get isOpen(): boolean {
    return this.transactions.length < BATCH_MAX && !this.#isStalled
  }

  succeed(): void {
    this.durable.resolve()
    this.outcomeKnown.resolve()
  }

  fail(error: unknown): void {
    this.durable.reject(error)
    this.outcomeKnown.resolve()
  }

  /** Fails the callers that wait for it; the store may still make it durable. */
  markStalled(): void {
    this.#isStalled = true
    const detail = 'documents: the commit takes too long'
    this.durable.reject(new Fault('DEADLINE_EXCEEDED', { detail }))
  }
}
