/**
 * Runs the jobs of the writing thread, each as one durable transaction, and tells what a failed one
 * left behind.
 */
import { type Database, SQLiteError } from 'bun:sqlite'
import { AssertionFailure, unreachable } from '../../errors/assert.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { decodeBatch } from './batch-messages.ts'
import { Batches } from './batches.ts'
import { IndexDefinitions } from './index-definitions.ts'
import { Retention } from './retention.ts'
import type { FailureOutcome, WriterAnswers, WriterJob, WriterReply } from './writer-jobs.ts'
import { loadState, type WriterState } from './writer-state.ts'

export type TransactionJob = Exclude<WriterJob, { kind: 'open' | 'close' }>

/** What SQLite says of a disk or a moment; anything else is a broken file or a broken rule. */
const PASSING = /^SQLITE_(?:FULL|IOERR|NOMEM|BUSY|LOCKED|CANTOPEN|READONLY|INTERRUPT)/

export class Writes {
  readonly #database: Database
  readonly #batches: Batches
  readonly #indexes: IndexDefinitions
  readonly #retention: Retention
  #state: WriterState

  constructor(database: Database) {
    this.#database = database
    this.#batches = new Batches(database)
    this.#indexes = new IndexDefinitions(database)
    this.#retention = new Retention(database)
    this.#state = loadState(database)
  }

  run(job: TransactionJob): WriterReply {
    let answer: WriterAnswers[keyof WriterAnswers] | 'too-long'
    try {
      this.#database.run('begin immediate')
      answer = this.#work(job)
    } catch (error) {
      return this.#undo(isPassing(error) ? 'none' : 'corrupt', describe(error))
    }
    if (answer === 'too-long') {
      return this.#undo('limit', 'an index key of a stored document is too long')
    }
    try {
      this.#database.run('commit')
    } catch (error) {
      // A full disk refuses a frame of the log, and the one that commits is the last. A failed
      // sync comes after it: then the next opening may find the transaction, or not.
      const code = sqliteCode(error)
      return this.#undo(code === 'SQLITE_FULL' ? 'none' : 'uncertain', describe(error))
    }
    return { answer }
  }

  #work(job: TransactionJob): WriterAnswers[keyof WriterAnswers] | 'too-long' {
    switch (job.kind) {
      case 'commit':
        this.#batches.write(this.#state, decodeBatch(job))
        return null
      case 'ensure':
        return this.#indexes.ensure(this.#state, job.definitions)
      case 'build':
        return this.#indexes.build(this.#state, job.index)
      case 'drop':
        this.#indexes.drop(this.#state, job.index)
        return null
      case 'prune':
        return this.#retention.prune(this.#state, job)
      default:
        return unreachable(job)
    }
  }

  #undo(outcome: FailureOutcome, detail: string): WriterReply {
    try {
      if (this.#database.inTransaction) this.#database.run('rollback')
      this.#state = loadState(this.#database)
    } catch (error) {
      const worse = outcome === 'none' || outcome === 'limit' ? 'corrupt' : outcome
      return { failure: { outcome: worse, detail: `${detail}; then ${describe(error)}` } }
    }
    return { failure: { outcome, detail } }
  }
}

function sqliteCode(error: unknown): string | null {
  return error instanceof SQLiteError ? (error.code ?? 'SQLITE_ERROR') : null
}

function isPassing(error: unknown): boolean {
  const code = sqliteCode(error)
  return code !== null && PASSING.test(code)
}

/** Messages of SQLite name tables and columns, never values. */
export function describe(error: unknown): string {
  const code = sqliteCode(error)
  if (code !== null) return `${code}: ${(error as SQLiteError).message}`
  if (error instanceof AssertionFailure || error instanceof ValidationError) return error.message
  return error instanceof Error ? error.name : 'an unknown failure'
}
