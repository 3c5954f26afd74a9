import { constants, Database } from 'bun:sqlite'
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { committedPages, readDatabaseImage } from './database-images.ts'
import { openOwnDatabase } from './own-databases.ts'

let directory: string
let path: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-image-'))
  path = join(directory, 'a.db')
})

afterEach(() => rmSync(directory, { recursive: true }))

function owned(): Database {
  new Database(path, { create: true }).close()
  const database = openOwnDatabase(path)
  database.run('pragma journal_mode = wal')
  database.run('create table rows (id integer primary key, text text)')
  database.run("insert into rows (text) values ('a'), ('b')")
  return database
}

function rowsOf(file: string): number | null {
  const image = readDatabaseImage(file)
  const row = image?.database.query<{ n: number }, []>('select count(*) as n from rows').get()
  image?.database.close()
  return row?.n ?? null
}

/** Names, content and times of all files. */
function filesOf(): unknown[] {
  return readdirSync(directory).map((name) => {
    const file = join(directory, name)
    return [name, readFileSync(file).toString('base64'), statSync(file).mtimeMs]
  })
}

test('a database that another connection owns is read with its log, and nothing is written', () => {
  const database = owned()
  database.run('pragma wal_checkpoint(truncate)')
  database.run('pragma user_version = 7')
  database.run("insert into rows (text) values ('in the log')")
  const before = filesOf()
  const image = readDatabaseImage(path)
  expect(image?.userVersion).toBe(7)
  expect(image?.database.query('select count(*) as n from rows').get()).toEqual({ n: 3 })
  expect(() => image?.database.run('delete from rows')).toThrow()
  image?.database.close()
  expect(filesOf()).toEqual(before)
  database.close()
})

test('what a transaction has not committed is not read', () => {
  const database = owned()
  database.run('pragma cache_size = 1')
  database.run('begin')
  const text = 'x'.repeat(5_000)
  for (let i = 0; i < 200; i++) database.run('insert into rows (text) values (?1)', [text])
  expect(statSync(`${path}-wal`).size).toBeGreaterThan(500_000)
  expect(rowsOf(path)).toBe(2)
  database.run('commit')
  expect(rowsOf(path)).toBe(202)
  database.close()
})

test('every cut of a log shows what SQLite shows after a crash', () => {
  const database = owned()
  for (let i = 0; i < 5; i++) database.run('insert into rows (text) values (?1)', ['c'.repeat(99)])
  const cut = join(directory, 'cut.db')
  const { size } = statSync(`${path}-wal`)
  const seen = new Set<unknown>()
  for (let bytes = 0; bytes <= size; bytes += 1_031) {
    copyFileSync(path, cut)
    copyFileSync(`${path}-wal`, `${cut}-wal`)
    truncateSync(`${cut}-wal`, bytes)
    const found = committedRows(() => rowsOf(cut))
    const opened = new Database(cut, constants.SQLITE_OPEN_READWRITE)
    const query = () => opened.query<{ n: number }, []>('select count(*) as n from rows').get()!.n
    expect(found).toBe(committedRows(query))
    seen.add(found)
    opened.close()
    for (const end of ['', '-wal', '-shm']) rmSync(`${cut}${end}`, { force: true })
  }
  expect(seen.size).toBeGreaterThan(4)
  database.close()
})

/** Null where the table does not exist. */
function committedRows(count: () => number | null): number | null {
  try {
    return count()
  } catch {
    return null
  }
}

test('frames of a log that began anew are not read', () => {
  const database = owned()
  for (let i = 0; i < 20; i++) database.run('insert into rows (text) values (?1)', ['d'.repeat(99)])
  database.run('pragma wal_checkpoint(restart)')
  database.run('delete from rows where id > 3')
  const log = readFileSync(`${path}-wal`)
  expect(committedPages(log).size).toBeLessThan(4)
  expect(rowsOf(path)).toBe(3)
  database.close()
})

test('an absent and an empty file are no database, and another file is an error', () => {
  expect(readDatabaseImage(path)).toBeNull()
  writeFileSync(path, '')
  expect(readDatabaseImage(path)).toBeNull()
  writeFileSync(path, 'text '.repeat(100))
  expect(() => readDatabaseImage(path)).toThrow('not a database')
})

test('a large file is read in its place', () => {
  const database = owned()
  const text = 'x'.repeat(1024 * 1024)
  for (let i = 0; i < 20; i++) database.run('insert into rows (text) values (?1)', [text])
  database.run('pragma wal_checkpoint(truncate)')
  database.run('pragma user_version = 9')
  database.run("insert into rows (text) values ('in the log')")
  const image = readDatabaseImage(path)
  expect(image?.userVersion).toBe(9)
  expect(image?.database.query('select max(id) as id from rows').get()).toEqual({ id: 22 })
  image?.database.close()
  database.close()
})
