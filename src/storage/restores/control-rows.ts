/** Fills the control database of a restored root with the rows of a backup. */
import { Database } from 'bun:sqlite'
import { Fault } from '../../errors/fault.ts'
import { sha256Hex } from '../../system/digests.ts'
import {
  ControlDatabase,
  type ControlTx,
  MIGRATIONS_TABLE,
  type Parameter,
} from '../control/database.ts'
import { MIGRATIONS } from '../migrations.generated.ts'
import type { BackupContents, TextColumns } from './backup-contents.ts'

/** The table that records migrations. A restored database records its own. */
export const CONTROL_MIGRATIONS = 'control_migrations'

/** The tables of a schema version. */
export interface ControlSchema {
  readonly version: number
  /** The columns of the primary key of each table. */
  readonly keys: ReadonlyMap<string, readonly string[]>
}

/**
 * Returns the schema that recorded migrations lead to, which may be that of an earlier version.
 * Throws BACKUP_VERSION_UNKNOWN where this program does not have one of them.
 */
export function controlSchema(migrations: readonly TextColumns[]): ControlSchema {
  const recorded = new Map(migrations.map((row) => [row.version, row.checksum]))
  const version = recorded.size
  for (const migration of MIGRATIONS.slice(0, version)) {
    const checksum = recorded.get(`i:${migration.version}`)
    if (checksum !== `t:${sha256Hex(migration.sql)}`) throw unknownSchema(version)
  }
  if (version === 0 || version > MIGRATIONS.length) throw unknownSchema(version)
  const database = new Database(':memory:')
  try {
    database.run(MIGRATIONS_TABLE)
    for (const { sql } of MIGRATIONS.slice(0, version)) database.run(sql)
    const rows = database
      .query<{ name: string; keys: string }, []>(
        `select t.name, json_group_array(c.name order by c.pk) as keys
           from sqlite_schema t, pragma_table_info(t.name) c
          where t.type = 'table' and c.pk > 0
          group by t.name`,
      )
      .all()
    return { version, keys: new Map(rows.map(({ name, keys }) => [name, JSON.parse(keys)])) }
  } finally {
    database.close()
  }
}

function unknownSchema(version: number): Fault {
  const detail = `control.db has the schema version ${version}`
  return new Fault('BACKUP_VERSION_UNKNOWN', { detail })
}

export interface ControlRestore {
  readonly path: string
  readonly version: number
  readonly nowMicros: bigint
  readonly contents: Pick<BackupContents, 'tables' | 'rows'>
}

/**
 * Creates the database with all rows. The next opening migrates it to the version of this program.
 * Throws BACKUP_CORRUPT for rows that the schema cannot have, and SERVER_PRODUCT_ROOT_UNAVAILABLE.
 */
export function writeControlRows({ path, version, nowMicros, contents }: ControlRestore): void {
  const control = ControlDatabase.open(path, nowMicros, { version })
  try {
    control.transaction((tx) => {
      // Rows refer to others that follow. The commit checks all references.
      tx.run('pragma defer_foreign_keys = on')
      for (const table of contents.tables('control')) {
        if (table === CONTROL_MIGRATIONS) continue
        const columns = columnsOf(tx, table)
        for (const row of contents.rows('control', table)) insert(tx, { table, columns, row })
      }
    })
  } catch (error) {
    const code = (error as { code?: unknown }).code
    if (typeof code !== 'string' || !/^SQLITE_(?:CONSTRAINT|MISMATCH|ERROR)/.test(code)) throw error
    throw unfit(`it rejects a row: ${code}`)
  } finally {
    control.close()
  }
}

function columnsOf(tx: ControlTx, table: string): ReadonlySet<string> {
  const rows = tx.all<{ name: string }>('select name from pragma_table_info(?1)', table)
  if (rows.length === 0) throw unfit('it has no such table')
  return new Set(rows.map(({ name }) => name))
}

interface Insertion {
  readonly table: string
  readonly columns: ReadonlySet<string>
  readonly row: TextColumns
}

/** The names of the table and of its columns are those of the schema. */
function insert(tx: ControlTx, { table, columns, row }: Insertion): void {
  const names = Object.keys(row)
  const unknown = names.some((name) => !columns.has(name))
  if (unknown) throw unfit(`a row of ${table} has an unknown column`)
  const list = names.map((name) => `"${name}"`).join(', ')
  const places = names.map(() => '?').join(', ')
  const values = names.map((name) => columnValue(row[name]!))
  tx.run(`insert into "${table}" (${list}) values (${places})`, ...values)
}

/** Reads a value as docs/backups-format.md writes it. Throws BACKUP_CORRUPT. */
function columnValue(text: string | null): Parameter {
  if (text === null) return null
  const value = text.slice(2)
  if (text.startsWith('t:')) return value
  if (text.startsWith('b:')) return Buffer.from(value, 'base64')
  if (/^i:-?[0-9]{1,19}$/.test(text)) return BigInt(value)
  throw unfit('a value has no type')
}

function unfit(reason: string): Fault {
  return new Fault('BACKUP_CORRUPT', { detail: `control.db: ${reason}` })
}
