/**
 * @module-tag slow
 */
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../testing/databases/postgres.ts'
import { openDocuments } from '../../../testing/documents/stores.ts'
import * as changes from './changes.ts'
import { KEYS, RANGE, VERSIONS } from './reads.ts'
import * as retention from './retention.ts'
import { OPERATION_SCAN, SCAN } from './scans.ts'
import { SETTINGS } from './schema.ts'

/*
 * Goal: regardless of its statistics, PostgreSQL never scans a table or sorts rows that an index
 * has in order. Method: the plans of a connection for tables that seem to be empty, and for full
 * ones.
 */

let database: TestDatabase
let client: Client

beforeAll(async () => {
  database = await freshDatabase()
  const store = await openDocuments(database.url)
  await store.close()
  client = new Client({ connectionString: database.url })
  await client.connect()
  await client.query(SETTINGS)
  await client.query(`prepare range_asc as ${RANGE.asc}`)
  await client.query(`prepare range_desc as ${RANGE.desc}`)
  await client.query(`prepare keys_asc as ${KEYS.asc}`)
  await client.query(`prepare keys_desc as ${KEYS.desc}`)
  await client.query(`prepare versions as ${VERSIONS}`)
  await client.query(`prepare scan as ${SCAN}`)
  await client.query(`prepare operation_scan as ${OPERATION_SCAN}`)
  await client.query(`prepare changed_versions as ${changes.CHANGED_VERSIONS}`)
  await client.query(`prepare new_operations as ${changes.NEW_OPERATIONS}`)
  await client.query(`prepare known as ${changes.KNOWN}`)
  await client.query(`prepare pending as ${retention.PENDING}`)
  await client.query(`prepare garbage as ${retention.VERSIONS}`)
  await client.query(`prepare forgotten as ${retention.OPERATIONS}`)
})

afterAll(async () => {
  await client.end()
  await database.drop()
})

async function plan(execution: string): Promise<string> {
  const { rows } = await client.query(`explain (costs off) execute ${execution}`)
  return rows.map((row) => row['QUERY PLAN']).join('\n')
}

/** Statements of retention, with the indexes that each walks. */
const RETENTION = {
  'pending (50)': ['batches_pkey'],
  'garbage (5, 0, 9, 1)': ['batches_pkey', 'documents_pkey'],
  'forgotten (50)': ['batches_by_time', 'operations_pkey'],
}

/** Statements of backups. */
const SCANS = {
  "scan ('items_', 5, 32, 100000)": ['documents_pkey'],
  "operation_scan ('\\x00', 32, 100000, 5)": ['operations_pkey'],
}

const LAST = Number.MAX_SAFE_INTEGER

/** Statements of catch-ups. */
const CHANGES = {
  [`changed_versions (${LAST}, ${LAST}, 20000, 19990, 32, 100000)`]: [
    'batches_pkey',
    'documents_pkey',
  ],
  [`new_operations (${LAST}, ${LAST}, 20000, 19990, 32, 100000)`]: [
    'batches_pkey',
    'operations_pkey',
  ],
  'known (19990)': ['batches_pkey'],
}

const FILL = `
  insert into documents (id, sequence, created_at_micros, text)
  select 'items_'::bytea || decode(lpad(to_hex(n), 32, '0'), 'hex'), n, 0, '{}'
    from generate_series(1, 20000) n;
  insert into index_entries (index_id, key, from_sequence)
  select 1, decode(lpad(to_hex(n), 16, '0'), 'hex') || substr(id, 7), n
    from (select sequence as n, id from documents) d;
  insert into batches (batch, latest_sequence, at_micros, written, recorded)
  select sequence, sequence, sequence, array[id], array[substr(id, 7)]
    from documents;
  insert into operations (operation_id, fingerprint, release_id, function, result, attempts,
                          created_at_micros)
  select recorded[1], '', '', '', '', 1, at_micros from batches;
  analyze`

test.each(['empty', 'full'])(
  'reads and retention of %s tables walk indexes, and reads sort nothing',
  async (size) => {
    if (size === 'full') await client.query(FILL)
    for (const order of ['asc', 'desc']) {
      const text = await plan(`range_${order} (1, '\\x00', '\\xff', 5, 10, 'items_')`)
      expect(text).not.toMatch(/Seq Scan|Sort|Hash|Merge|Bitmap/)
      expect(text).toContain(`using index_entries_pkey on index_entries`)
      expect(text).toContain(`using documents_pkey on documents`)
      const keys = await plan(`keys_${order} (1, '\\x00', '\\xff', 5, 10)`)
      expect(keys).not.toMatch(/Seq Scan|Sort|Hash|Merge|Bitmap|on documents/)
      expect(keys).toContain(`using index_entries_pkey on index_entries`)
    }
    const text = await plan(`versions (array['items_1'::bytea], array[5])`)
    expect(text).not.toMatch(/Seq Scan|Sort|Hash|Merge|Bitmap/)
    expect(text).toContain('using documents_pkey on documents')
    for (const [statement, indexes] of Object.entries(SCANS)) {
      const text = await plan(statement)
      // The rows of a page are sorted for the sum of their lengths.
      expect(text).not.toMatch(/Seq Scan on (documents|operations)|Hash|Merge|Bitmap/)
      for (const index of indexes) expect(text).toContain(index)
    }
    for (const [statement, indexes] of Object.entries(CHANGES)) {
      const text = await plan(statement)
      expect(text).not.toMatch(/Seq Scan on (batches|documents|operations)|Hash|Merge|Bitmap/)
      for (const index of indexes) expect(text).toContain(index)
    }
    for (const [statement, indexes] of Object.entries(RETENTION)) {
      const text = await plan(statement)
      expect(text).not.toMatch(/Seq Scan on (batches|documents|operations)|Hash Join|Merge Join/)
      for (const index of indexes) expect(text).toContain(index)
    }
  },
)

test('a page of changes reads about as many batches as it may have rows', async () => {
  // The tables are full after the test before.
  const { rows } = await client.query('select count(*) as count from batches')
  expect(Number(rows[0].count)).toBe(20_000)
  for (const statement of Object.keys(CHANGES)) {
    const explained = await client.query(
      `explain (analyze, costs off, timing off, summary off) execute ${statement}`,
    )
    const text = explained.rows.map((row) => row['QUERY PLAN']).join('\n')
    const read = [...text.matchAll(/Scan.* on (?:batches|documents|operations) .*rows=(\d+)/g)]
    expect(read.length).toBeGreaterThan(1)
    for (const [, count] of read) expect(Number(count)).toBeLessThanOrEqual(34)
  }
})
