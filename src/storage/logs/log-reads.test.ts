import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { migrateLogs } from './log-migrations.ts'
import { LogReads } from './log-reads.ts'

const SINCE = 1_000

let directory: string
let writer: Database
let reads: LogReads

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-log-reads-'))
  const path = join(directory, 'logs.db')
  writer = new Database(path, { create: true })
  migrateLogs(writer)
  write(1, SINCE - 1)
  reads = new LogReads(path)
})
afterEach(() => {
  vi.restoreAllMocks()
  reads.close()
  writer.close()
  rmSync(directory, { recursive: true, force: true })
})

function write(sequence: number, at: number): void {
  writer.run(
    `insert into log_records (sequence, at, stream, level, record)
     values (?1, ?2, 'function', 2, '{}')`,
    [sequence, at],
  )
}

/** Calls `act` once, right after a statement of the reads. */
function afterStatement(number: number, act: () => void): void {
  let count = 0
  const query = Database.prototype.query
  vi.spyOn(Database.prototype, 'query').mockImplementation(function (this: Database, sql) {
    const statement = query.call(this, sql)
    const ran = <T>(result: T): T => {
      count += 1
      if (count === number) act()
      return result
    }
    return {
      get: (...values: never[]) => ran(statement.get(...values)),
      all: (...values: never[]) => ran(statement.all(...values)),
    } as ReturnType<Database['query']>
  })
}

test.each([1, 2, 3])(
  'a record that is written after statement %i of a page since a time is in it or the next one',
  async (statement) => {
    afterStatement(statement, () => write(2, SINCE))
    const first = await reads.after(0, { since: SINCE }, 10)
    vi.restoreAllMocks()
    const next = await reads.after(first.end, { since: SINCE }, 10)
    const found = [...first.records, ...next.records].map(({ sequence }) => sequence)
    expect(found).toContain(2)
  },
)
