import type { Database } from 'bun:sqlite'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openOwnDatabase } from './own-databases.ts'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'own-databases-'))
})

afterEach(() => rmSync(directory, { recursive: true }))

/** The name would change the meaning of a URL that is not encoded. */
function newFile(): string {
  const path = join(directory, 'a %41?mode=memory#.db')
  writeFileSync(path, '')
  return path
}

test('the index of a write-ahead log is not a file, and connections share it', () => {
  const path = newFile()
  const [writes, reads] = [openOwnDatabase(path), openOwnDatabase(path)]
  writes.run('pragma journal_mode = wal')
  writes.run('create table numbers (number integer)')
  writes.run('insert into numbers values (1)')
  expect(reads.query('select number from numbers').all()).toEqual([{ number: 1 }])
  expect(readdirSync(directory).sort()).toEqual([
    'a %41?mode=memory#.db',
    'a %41?mode=memory#.db-wal',
  ])
  if (process.platform === 'linux') {
    expect(readFileSync('/proc/self/maps', 'utf8')).not.toContain(directory)
  }
  writes.close()
  reads.close()
})

/** Opens the file in another process, and prints the error or `opened`. */
function openElsewhere(path: string): string {
  const source = `
    const { Database } = require('bun:sqlite')
    try {
      new Database(process.argv[1]).query('select count(*) from numbers').get()
      console.log('opened')
    } catch (error) {
      console.log(error.code)
    }`
  const { stdout } = Bun.spawnSync([process.execPath, '-e', source, path])
  return stdout.toString().trim()
}

test('a file is locked for other processes until the last connection closes', () => {
  const path = newFile()
  const database: Database = openOwnDatabase(path)
  database.run('pragma journal_mode = wal')
  database.run('create table numbers (number integer)')
  const statement = database.query('select number from numbers')
  statement.all()
  expect(openElsewhere(path)).toBe('SQLITE_BUSY')
  database.close()
  expect(openElsewhere(path)).toBe('opened')
})
