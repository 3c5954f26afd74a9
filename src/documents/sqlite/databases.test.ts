import { Database } from 'bun:sqlite'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { checkMigrated, EARLIER, scanned } from '../../../testing/documents/earlier-versions.ts'
import { fault } from '../../../testing/documents/store-suite.ts'
import { sha256Hex } from '../../system/digests.ts'
import { openDatabase } from './databases.ts'
import { MIGRATIONS } from './migrations.generated.ts'
import { rangeStatement } from './reads.ts'
import { openSqliteDocuments } from './stores.ts'
import { readUnmigratedSqlite } from './unmigrated-documents.ts'

let directory: string
let path: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'documents-'))
  path = join(directory, 'documents.db')
})

afterEach(() => rmSync(directory, { recursive: true }))

async function storeWithOneDocument(): Promise<void> {
  const store = await openSqliteDocuments(path)
  const id = `notes_${'0'.repeat(26)}`
  const writes = [{ id, createdAtMicros: 0n, text: '{}', entries: [] }]
  await store.commit({ transactions: [{ sequence: 1, atMicros: 0n, writes }] })
  await store.close()
}

function tamper(...statements: readonly string[]): void {
  const database = new Database(path)
  // The last connection of a closed store may still be checkpointing.
  database.run('pragma busy_timeout = 5000')
  for (const statement of statements) database.run(statement)
  database.close()
}

describe('the document file', () => {
  test('the file belongs to its owner, and is complete without its log after closing', async () => {
    const before = process.umask(0)
    try {
      await storeWithOneDocument()
    } finally {
      process.umask(before)
    }
    expect(statSync(path).mode & 0o777).toBe(0o600)
    const walBytes = existsSync(`${path}-wal`) ? statSync(`${path}-wal`).size : 0
    expect(walBytes).toBe(0)
  })

  test('the document file has durable commits and does not trust its schema', async () => {
    const database = openDatabase(path, { mayBeNew: true })
    const pragma = (name: string) => Object.values(database.query(`pragma ${name}`).get() as object)
    expect(pragma('journal_mode')).toEqual(['wal'])
    expect(pragma('synchronous')).toEqual([2])
    expect(pragma('trusted_schema')).toEqual([0])
    expect(pragma('page_size')).toEqual([4096])
    expect(() => database.run('delete from documents')).toThrow(/readonly/)
    database.close()
  })

  const rejected: readonly [string, () => unknown][] = [
    ['a text file', () => writeFileSync(path, 'not a database'.repeat(1_000))],
    [
      'the database of another application',
      () => tamper('create table other (id integer)', 'pragma application_id = 7'),
    ],
    ['a database without an application ID', () => tamper('create table other (id integer)')],
    ['a newer version without its record', () => tamper('pragma user_version = 1000')],
    [
      'another migration under the same number',
      () => tamper('update migrations set checksum = zeroblob(32)'),
    ],
    ['a changed schema', () => tamper('drop index index_entries_by_end')],
    [
      'a schema with a trigger',
      () => tamper('create trigger t after insert on documents begin delete from documents; end'),
    ],
    ['a document from the future', () => tamper('update store set latest_sequence = 0')],
    ['no store row', () => tamper('delete from store')],
    ['a document that is not Stored JSON', () => tamper("update documents set text = '{'")],
    [
      'a shape of fields that is none',
      () => tamper("insert into field_shapes (table_name, shape) values ('a', '[]')"),
    ],
    [
      'an index with too few defaults',
      () =>
        tamper(
          `insert into indexes (table_name, fields, defaults, state, built_id)
           values ('a', '["b"]', '[]', 'building', '')`,
        ),
    ],
    [
      'an index without fields',
      () =>
        tamper(
          `insert into indexes (table_name, fields, state, built_id)
           values ('a', '{}', 'building', '')`,
        ),
    ],
  ]
  for (const [name, damage] of rejected) {
    test(`${name} is rejected`, async () => {
      const fresh = name.startsWith('a text') || name.includes('database')
      if (!fresh) await storeWithOneDocument()
      damage()
      expect(() => openDatabase(path, { mayBeNew: true })).toThrowError(fault('PRODUCT_CORRUPT'))
      await expect(openSqliteDocuments(path)).rejects.toEqual(fault('PRODUCT_CORRUPT'))
    })
  }

  test('documents of an earlier version have fields of any name after an upgrade', async () => {
    const [first] = MIGRATIONS
    tamper(
      first!.sql,
      `insert into migrations (version, name, checksum)
       values (1, 'initial', x'${sha256Hex(first!.sql)}')`,
      'pragma user_version = 1',
      `pragma application_id = ${0x73766364}`,
      `insert into indexes (table_name, fields, state, built_id, ready_sequence)
       values ('notes', '["a"]', 'ready', '', 0)`,
      ...['notes', 'a', 'notesA', 'a', 'notes'].map(
        (table, i) =>
          `insert into documents (row, id, sequence, created_at_micros, text)
           values (${i}, '${table}_${String(i).padStart(26, '0')}', ${i + 1}, 0, '{}')`,
      ),
      'update store set latest_sequence = 9',
    )
    const store = await openSqliteDocuments(path, { mayBeNew: false })
    expect(Object.fromEntries(store.fieldShapes())).toEqual({
      a: 'any',
      notes: 'any',
      notesA: 'any',
    })
    const [index] = await store.ensureIndexes([{ table: 'notes', fields: ['a'] }])
    expect(index).toEqual({ id: 1, table: 'notes', fields: ['a'], state: 'ready' })
    await store.close()
  })

  test('documents of the second version can be read, written and pruned', async () => {
    const hex = (bytes: Uint8Array) => `x'${Buffer.from(bytes).toString('hex')}'`
    const { versions, entries, operation, latestSequence } = EARLIER
    tamper(
      ...MIGRATIONS.slice(0, 2).flatMap(({ sql, version, name }) => [
        sql,
        `insert into migrations (version, name, checksum)
         values (${version}, '${name}', x'${sha256Hex(sql)}')`,
      ]),
      'pragma user_version = 2',
      `pragma application_id = ${0x73766364}`,
      `insert into indexes (table_name, fields, state, built_id, ready_sequence)
       values ('notes', '[]', 'ready', '', 0), ('notes', '["a"]', 'ready', '', 0)`,
      `insert into field_shapes (table_name, shape) values ('notes', '{"a":null}')`,
      ...versions.map(
        ({ id, sequence, createdAtMicros, text }, i) =>
          `insert into documents (row, id, sequence, created_at_micros, text)
           values (${i + 1}, '${id}', ${sequence}, ${createdAtMicros},
                   ${text === null ? 'null' : `'${text}'`})`,
      ),
      ...entries.map(
        ({ index, key, from, until }) =>
          `insert into index_entries (index_id, key, from_sequence, until_sequence)
           values (${index}, x'${key}', ${from}, ${until ?? Number.MAX_SAFE_INTEGER})`,
      ),
      `insert into operations (operation_id, fingerprint, commit_sequence, release_id, function,
                               result, attempts, created_at_micros)
       values ('${operation.operationId}', ${hex(operation.fingerprint)}, null,
               '${operation.releaseId}', '${operation.function}', '${operation.result}', 1, 1000)`,
      `update store set latest_sequence = ${latestSequence}, pruned_row = 0`,
    )
    const before = readFileSync(path)
    // A backup before the migrations reads what the store returns after them.
    const unmigrated = await readUnmigratedSqlite(path, scanned)
    expect(before.readUInt32BE(60)).toBe(2)
    expect(readFileSync(path).subarray(100)).toEqual(before.subarray(100))
    const store = await openSqliteDocuments(path, { mayBeNew: false })
    expect(await scanned(store)).toEqual(unmigrated)
    expect(unmigrated.versions.length).toBeGreaterThan(1)
    await checkMigrated(store)
    await store.close()
    const database = openDatabase(path, { mayBeNew: false })
    expect(database.query('pragma auto_vacuum').get()).toEqual({ auto_vacuum: 2 })
    database.close()
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(readdirSync(directory).filter((name) => name.includes('copy'))).toEqual([])
  })

  test('a later version that names this one is used and left as it is', async () => {
    await storeWithOneDocument()
    const known = MIGRATIONS.length
    const later = (readableFrom: number) => [
      `insert into migrations (version, name, checksum, readable_from)
       values (${known + 1}, 'later', zeroblob(32), ${readableFrom})`,
      `pragma user_version = ${known + 1}`,
    ]
    tamper('alter table documents add column later text', ...later(known))
    const store = await openSqliteDocuments(path)
    const id = `notes_${'1'.repeat(26)}`
    const writes = [{ id, createdAtMicros: 0n, text: '{}', entries: [] }]
    await store.commit({ transactions: [{ sequence: 2, atMicros: 0n, writes }] })
    await store.close()
    expect(readFileSync(path).readUInt32BE(60)).toBe(known + 1)
    tamper(`update migrations set readable_from = ${known + 1} where version = ${known + 1}`)
    await expect(openSqliteDocuments(path)).rejects.toEqual(fault('SERVER_DATABASE_NEWER'))
  })

  test('a later version without a column of this one is rejected', async () => {
    await storeWithOneDocument()
    const known = MIGRATIONS.length
    tamper(
      'alter table operations drop column attempts',
      `insert into migrations (version, name, checksum, readable_from)
       values (${known + 1}, 'later', zeroblob(32), ${known})`,
      `pragma user_version = ${known + 1}`,
    )
    await expect(openSqliteDocuments(path)).rejects.toEqual(fault('PRODUCT_CORRUPT'))
  })

  test('a copy without its write-ahead log is rejected unless it may be new', async () => {
    tamper('pragma page_size = 4096', 'pragma journal_mode = wal')
    expect(statSync(path).size).toBe(4096)
    const opening = openSqliteDocuments(path, { mayBeNew: false })
    await expect(opening).rejects.toEqual(fault('PRODUCT_CORRUPT'))
    await (await openSqliteDocuments(path)).close()
    await (await openSqliteDocuments(path, { mayBeNew: false })).close()
  })

  test('a missing directory is unavailable, not corrupt', async () => {
    const missing = join(directory, 'missing', 'documents.db')
    await expect(openSqliteDocuments(missing)).rejects.toEqual(fault('UNAVAILABLE'))
  })

  test('a range walks the primary key, without a scan and without sorting', () => {
    const database = openDatabase(path, { mayBeNew: true })
    for (const order of ['asc', 'desc'] as const) {
      const plan = database
        .query<{ detail: string }, []>(`explain query plan ${rangeStatement(order)}`)
        .all()
        .map(({ detail }) => detail)
        .join('\n')
      expect(plan).toMatch(/SEARCH e USING PRIMARY KEY \(index_id=\? AND key>\? AND key<\?\)/)
      expect(plan).toMatch(/SEARCH d USING INTEGER PRIMARY KEY \(rowid=\?\)/)
      expect(plan).toMatch(/SEARCH v USING COVERING INDEX documents_by_version \(id=\? AND seq/)
      expect(plan).not.toMatch(/SCAN|TEMP B-TREE/)
    }
    database.close()
  })
})
