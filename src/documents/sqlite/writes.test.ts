import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { documentId, operationRecord } from '../../../build/testing/documents/store-fixtures.ts'
import type { TransactionWrite } from '../store.ts'
import { encodeBatch } from './batch-messages.ts'
import { openDatabase } from './databases.ts'
import { configure } from './pragmas.ts'
import { Writes } from './writes.ts'

let directory: string
let database: Database

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'documents-'))
  const path = join(directory, 'documents.db')
  openDatabase(path, { mayBeNew: true }).close()
  database = new Database(path, { readwrite: true, create: false })
  configure(database, { cacheMiB: 1 })
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

describe('the writing thread', () => {
  test('a full disk stores nothing of a batch, and the next one finds the writer usable', () => {
    // The page limit of SQLite stands for the disk: both answer SQLITE_FULL.
    const writes = new Writes(database)
    const { page_count: pages } = database
      .query<{ page_count: number }, []>('pragma page_count')
      .get()!
    database.run(`pragma max_page_count = ${pages + 4}`)
    const large = 'x'.repeat(100_000)
    const batch = { transactions: [transaction(1, '{}'), transaction(2, large)] }
    const failed = writes.run({ kind: 'commit', ...encodeBatch(batch) })
    expect(failed).toEqual({
      failure: { outcome: 'none', detail: expect.stringMatching(/^SQLITE_FULL/) },
    })
    expect(counts()).toEqual({ documents: 0, operations: 0, latest_sequence: 0 })
    database.run('pragma max_page_count = 100000')
    expect(writes.run({ kind: 'commit', ...encodeBatch(batch) })).toEqual({ answer: null })
    expect(counts()).toEqual({ documents: 2, operations: 2, latest_sequence: 2 })
  })

  const broken: readonly [string, (good: TransactionWrite) => TransactionWrite][] = [
    ['a sequence that was used', (good) => ({ ...good, sequence: 1 })],
    ['a sequence that is not exact', (good) => ({ ...good, sequence: 2 ** 53 })],
    ['a document twice', (good) => ({ ...good, writes: [...good.writes, ...good.writes] })],
    ['an operation twice', (good) => ({ ...good, operation: operationRecord(1) })],
    ['a time beyond 53 bits', (good) => ({ ...good, atMicros: 2n ** 60n })],
    ['the loss of a key that is not there', (good) => withEntry(good, 'k', false)],
    ['a key that is there already', (good) => withEntry(good, 'present', true)],
  ]
  for (const [name, breakIt] of broken) {
    test(`${name} stores nothing of its batch and stops the writer`, () => {
      const writes = new Writes(database)
      const definitions = [{ table: 'notes', fields: [] }]
      writes.run({ kind: 'ensure', definitions })
      const first = withEntry(transaction(1, '{}'), 'present', true)
      expect(writes.run({ kind: 'commit', ...encodeBatch({ transactions: [first] }) })).toEqual({
        answer: null,
      })
      writes.run({ kind: 'build', index: 1 })
      const transactions = [transaction(2, '{}'), breakIt(transaction(3, '{}'))]
      expect(writes.run({ kind: 'commit', ...encodeBatch({ transactions }) })).toEqual({
        failure: { outcome: 'corrupt', detail: expect.any(String) },
      })
      expect(counts()).toEqual({ documents: 1, operations: 1, latest_sequence: 1 })
    })
  }
})

function withEntry(transaction: TransactionWrite, key: string, live: boolean): TransactionWrite {
  const entries = [{ index: 1, key, live }]
  return { ...transaction, writes: transaction.writes.map((write) => ({ ...write, entries })) }
}
