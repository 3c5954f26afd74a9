/** Runs jobs of the writer thread, each as one durable transaction, and classifies failures. */
import { type Database, SQLiteError } from 'bun:sqlite'
import { AssertionFailure, unreachable } from '../../errors/assert.ts'
import type { FieldShape } from '../../value/schema/field-shapes.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { decodeBatch } from './batch-messages.ts'
import { BatchWriter } from './batch-writer.ts'
import { IndexChanges } from './index-changes.ts'
import { Retention } from './retention.ts'
import type { FailureOutcome, WriterJob, WriterReply, WriterResults } from './writer-jobs.ts'
import { loadState, type WriterState } from './writer-state.ts'

export type TransactionJob = Exclude<WriterJob, { kind: 'open' | 'trim' | 'close' }>

/** Codes of transient failures. Any other code means a corrupt file or a broken invariant. */
const TRANSIENT = /^SQLITE_(?:FULL|IOERR|NOMEM|BUSY|LOCKED|CANTOPEN|READONLY|INTERRUPT)/
/** Codes of a COMMIT that could not write its last frame. */
const UNWRITTEN = /^SQLITE_(?:FULL|IOERR_WRITE)$/

export class TransactionJobs {
  readonly #database: Database
  readonly #batches: BatchWriter
  readonly #indexes: IndexChanges
  readonly #retention: Retention
  #state: WriterState

  constructor(database: Database) {
    this.#database = database
    this.#batches = new BatchWriter(database)
    this.#indexes = new IndexChanges(database)
    this.#retention = new Retention(database)
    this.#state = loadState(database)
  }

  run(job: TransactionJob): WriterReply {
    let result: WriterResults[keyof WriterResults] | 'too-long'
    try {
      this.#database.run('begin immediate')
      result = this.#execute(job)
    } catch (error) {
      return this.#rollBack(isTransient(error) ? 'none' : 'corrupt', describe(error))
    }
    if (result === 'too-long') {
      return this.#rollBack('limit', 'an index key of a stored document is too long')
    }
    try {
      this.#database.run('commit')
    } catch (error) {
      // On a full or read-only disk a frame of the log cannot be written, and the last frame is the
      // one that commits. A failed sync comes after it: the next opening may find the transaction
      // or not.
      const isUnwritten = UNWRITTEN.test(sqliteCode(error) ?? '')
      return this.#rollBack(isUnwritten ? 'none' : 'uncertain', describe(error))
    }
    return { result }
  }

  #execute(job: TransactionJob): WriterResults[keyof WriterResults] | 'too-long' {
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
      case 'shapes':
        return this.#setFieldShapes(job.shapes)
      case 'prune':
        return this.#retention.prune(this.#state, job)
      default:
        return unreachable(job)
    }
  }

  #setFieldShapes(shapes: ReadonlyMap<string, FieldShape>): WriterResults['shapes'] {
    const set = this.#database.query<null, [string, string, string]>(
      'insert or replace into field_shapes (table_name, shape, names) values (?1, ?2, ?3)',
    )
    const { texts } = this.#state
    const named = new Map<string, readonly string[]>()
    for (const [table, shape] of shapes) {
      const names = texts.namesWith(table, shape)
      set.run(table, JSON.stringify(shape), JSON.stringify(names))
      texts.set(table, names)
      named.set(table, names)
    }
    return named
  }

  #rollBack(outcome: FailureOutcome, detail: string): WriterReply {
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

function isTransient(error: unknown): boolean {
  const code = sqliteCode(error)
  return code !== null && TRANSIENT.test(code)
}

/** Describes an error for the log. Messages of SQLite name tables and columns, never values. */
export function describe(error: unknown): string {
  const code = sqliteCode(error)
  if (code !== null) return `${code}: ${(error as SQLiteError).message}`
  if (error instanceof AssertionFailure || error instanceof ValidationError) return error.message
  return error instanceof Error ? error.name : 'an unknown failure'
}
