import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { documentId, operationRecord } from '../../../testing/documents/store-fixtures.ts'
import { encodeTrailer } from '../key-encoding.ts'
import type { TransactionWrite } from '../store.ts'
import { encodeBatch } from './batch-messages.ts'
import { openDatabase } from './databases.ts'
import { configure } from './pragmas.ts'
import { TransactionJobs } from './transaction-jobs.ts'

let directory: string
let database: Database

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'documents-'))
  const path = join(directory, 'documents.db')
  openDatabase(path, { mayBeNew: true }).close()
  database = new Database(path, { readwrite: true, create: false })
  configure(database, { cacheMiB: 1, isTemporary: false })
})

afterEach(() => {
  database.close()
  rmSync(directory, { recursive: true })
})

function transaction(sequence: number, text: string): TransactionWrite {
  const writes = [{ id: documentId('notes', sequence), createdAtMicros: 0n, text, entries: [] }]
  return { sequence, atMicros: 0n, writes, operation: operationRecord(sequence) }
}

function counts(): unknown {
  return database
    .query(
      `select (select count(*) from documents) as documents,
              (select count(*) from operations) as operations, latest_sequence from store`,
    )
    .get()
}

describe('a job of the writer thread', () => {
  test('a full disk stores nothing of a batch, and the writer stays usable', () => {
    // The page limit of SQLite replaces the full disk: both fail with SQLITE_FULL.
    const jobs = new TransactionJobs(database)
    const { page_count: pages } = database
      .query<{ page_count: number }, []>('pragma page_count')
      .get()!
    database.run(`pragma max_page_count = ${pages + 4}`)
    const large = 'x'.repeat(100_000)
    const batch = { transactions: [transaction(1, '{}'), transaction(2, large)] }
    const failed = jobs.run({ kind: 'commit', ...encodeBatch(batch) })
    expect(failed).toEqual({
      failure: { outcome: 'none', detail: expect.stringMatching(/^SQLITE_FULL/) },
    })
    expect(counts()).toEqual({ documents: 0, operations: 0, latest_sequence: 0 })
    database.run('pragma max_page_count = 100000')
    expect(jobs.run({ kind: 'commit', ...encodeBatch(batch) })).toEqual({ result: null })
    expect(counts()).toEqual({ documents: 2, operations: 2, latest_sequence: 2 })
  })

  const broken: readonly [string, (valid: TransactionWrite) => TransactionWrite][] = [
    ['a sequence that is not new', (valid) => ({ ...valid, sequence: 1 })],
    ['a sequence that is not a safe integer', (valid) => ({ ...valid, sequence: 2 ** 53 })],
    ['a duplicate document', (valid) => ({ ...valid, writes: [...valid.writes, ...valid.writes] })],
    ['a duplicate operation', (valid) => ({ ...valid, operation: operationRecord(1) })],
    ['a time beyond 53 bits', (valid) => ({ ...valid, atMicros: 2n ** 60n })],
    ['the removal of a missing key', (valid) => withEntry(valid, 9, false)],
    ['a duplicate key', (valid) => withEntry(valid, 1, true)],
  ]
  for (const [name, breakIt] of broken) {
    test(`${name} causes the whole batch to be rejected as corrupt`, () => {
      const jobs = new TransactionJobs(database)
      const definitions = [{ table: 'notes', fields: [] }]
      jobs.run({ kind: 'ensure', definitions })
      const first = withEntry(transaction(1, '{}'), 1, true)
      expect(jobs.run({ kind: 'commit', ...encodeBatch({ transactions: [first] }) })).toEqual({
        result: null,
      })
      jobs.run({ kind: 'build', index: 1 })
      const transactions = [transaction(2, '{}'), breakIt(transaction(3, '{}'))]
      expect(jobs.run({ kind: 'commit', ...encodeBatch({ transactions }) })).toEqual({
        failure: { outcome: 'corrupt', detail: expect.any(String) },
      })
      expect(counts()).toEqual({ documents: 1, operations: 1, latest_sequence: 1 })
    })
  }
})

function withEntry(transaction: TransactionWrite, number: number, live: boolean): TransactionWrite {
  const key = encodeTrailer({ createdAtMicros: 0n, id: documentId('notes', number) })
  const entries = [{ index: 1, key, live }]
  return { ...transaction, writes: transaction.writes.map((write) => ({ ...write, entries })) }
}
