/** Writes the transactions of a batch, inside the SQLite transaction of the caller. */
import type { Database } from 'bun:sqlite'
import { assert } from '../../errors/assert.ts'
import { microsColumn } from '../column-values.ts'
import {
  CompactTables,
  checkedCompactId,
  tableOf,
  ULID_BYTES,
  ulidBytes,
  ulidMicros,
} from '../compact-ids.ts'
import type {
  CommitBatch,
  DocumentWrite,
  EntryWrite,
  OperationRecord,
  TransactionWrite,
} from '../store.ts'
import { storedResult } from './operation-results.ts'
import type { WriterState } from './writer-state.ts'

/** `until_sequence` of an index entry that is live: SQLite stores a zero without a byte. */
export const LIVE = 0
/** Resolution of sequence_times: enough for retention by age, at one row per second. */
const TIME_STEP_MICROS = 1_000_000

export class BatchWriter {
  readonly #tables = new CompactTables()
  readonly #insertVersion
  readonly #insertEntry
  readonly #endEntry
  readonly #insertOperation
  readonly #setLatest
  readonly #insertTime

  constructor(database: Database) {
    this.#insertVersion = database.query<
      null,
      [number, Uint8Array, number, number | null, string | null]
    >(
      `insert into documents (row, id, sequence, created_at_micros, text)
       values (?1, ?2, ?3, ?4, ?5)`,
    )
    this.#insertEntry = database.query<null, [number, Uint8Array, number]>(
      `insert into index_entries (index_id, key, from_sequence, until_sequence)
       values (?1, ?2, ?3, ${LIVE})`,
    )
    this.#endEntry = database.query<null, [number, Uint8Array, number]>(
      `update index_entries set until_sequence = ?3
        where index_id = ?1 and key = ?2 and until_sequence = ${LIVE}`,
    )
    this.#insertOperation = database.query<
      null,
      [Uint8Array, Uint8Array, number | null, string, string, string | Uint8Array, number, number]
    >(
      `insert into operations (operation_id, fingerprint, commit_sequence, release_id, function,
                               result, attempts, created_at_micros)
       values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
    )
    this.#setLatest = database.query<null, [number]>('update store set latest_sequence = ?1')
    this.#insertTime = database.query<null, [number, number]>(
      'insert into sequence_times (sequence, at_micros) values (?1, ?2)',
    )
  }

  write(state: WriterState, batch: CommitBatch): void {
    let atMicros = 0
    const before = state.latestSequence
    for (const transaction of batch.transactions) {
      if (transaction.sequence !== null) {
        this.#writeVersions(state, transaction, transaction.sequence)
        atMicros = microsColumn(transaction.atMicros)
      }
      if (transaction.operation !== undefined) this.writeOperation(transaction.operation)
    }
    if (state.latestSequence === before) return
    this.#setLatest.run(state.latestSequence)
    // The distance counts in both directions: after a clock went back, rows must continue.
    const step = state.timeMicros === null ? null : Math.abs(atMicros - state.timeMicros)
    if (step === null || step >= TIME_STEP_MICROS) {
      this.#insertTime.run(state.latestSequence, atMicros)
      state.timeMicros = atMicros
    }
  }

  #writeVersions(state: WriterState, transaction: TransactionWrite, sequence: number): void {
    assert(
      Number.isSafeInteger(sequence) && sequence > state.latestSequence,
      'sequences do not ascend',
    )
    state.latestSequence = sequence
    for (const write of transaction.writes) this.writeVersion(state, write, sequence)
  }

  /** Appends a version. Rows have to ascend with sequences unless retention has skipped them. */
  writeVersion(state: WriterState, write: DocumentWrite, sequence: number): void {
    const id = checkedCompactId(write.id)
    const micros = microsColumn(write.createdAtMicros)
    const createdAt = ulidMicros(id, id.length - ULID_BYTES) === micros ? null : micros
    const text = write.text === null ? null : state.texts.compact(tableOf(write.id), write.text)
    this.#insertVersion.run(state.nextRow++, id, sequence, createdAt, text)
    for (const entry of write.entries) this.#writeEntry(state, entry, sequence)
  }

  #writeEntry(state: WriterState, entry: EntryWrite, sequence: number): void {
    const index = state.indexes.get(entry.index)
    // The index was being dropped when the entries were computed.
    if (index === undefined || index.state === 'dropped') return
    const statement = entry.live ? this.#insertEntry : this.#endEntry
    const { changes } = statement.run(
      entry.index,
      this.#tables.of(index.table).key(entry.key),
      sequence,
    )
    // A building index may not have the old key of a document yet.
    const missing = changes === 0 && (entry.live || index.state === 'ready')
    assert(!missing, 'an index entry contradicts the ones before it')
  }

  writeOperation(record: OperationRecord): void {
    const operationId = ulidBytes(record.operationId)
    assert(operationId !== null, 'an operation ID is not canonical')
    this.#insertOperation.run(
      operationId,
      record.fingerprint,
      record.commitSequence,
      record.releaseId,
      record.function,
      storedResult(record.result),
      record.attempts,
      microsColumn(record.createdAtMicros),
    )
  }
}
