/** A copy of the control database, whose rows are read while the server changes the original. */
import { Database } from 'bun:sqlite'
import { rmSync } from 'node:fs'
import { Fault } from '../../errors/fault.ts'
import { ensureOwnFile } from '../files.ts'

export type ControlValue = string | bigint | Uint8Array | null

export interface ControlRow {
  readonly table: string
  readonly row: Readonly<Record<string, ControlValue>>
}

/** Creates a private empty file, into which `ControlDatabase.copyInto` writes. */
export function prepareCopy(path: string): void {
  removeCopy(path)
  ensureOwnFile(path)
}

export function removeCopy(path: string): void {
  for (const ending of ['', '-journal', '-wal', '-shm']) rmSync(path + ending, { force: true })
}

/** Yields the rows of all tables, in the order in which the tables were created. */
export function* readCopy(path: string): Generator<ControlRow> {
  const database = openCopy(path)
  try {
    const tables = database
      .query<{ name: string }, []>(
        `select name from sqlite_schema
          where type = 'table' and name not glob 'sqlite_*' order by rowid`,
      )
      .all()
    for (const { name: table } of tables) {
      // The name is one of the migrations.
      const statement = database.prepare<Record<string, ControlValue>, []>(
        `select * from "${table}"`,
      )
      try {
        for (const row of statement.iterate()) yield { table, row }
      } finally {
        statement.finalize()
      }
    }
  } finally {
    database.close()
  }
}

function openCopy(path: string): Database {
  try {
    // Integers of SQLite have 64 bits.
    return new Database(path, { readonly: true, safeIntegers: true })
  } catch (cause) {
    const detail = 'the copy of control.db cannot be read'
    throw new Fault('PRODUCT_UNAVAILABLE', { cause, detail })
  }
}
