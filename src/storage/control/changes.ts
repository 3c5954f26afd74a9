/**
 * Notes which rows of the control database change, for a backup. Triggers of the connection that
 * writes record their keys in a temporary table, in the transaction of the change; the schema of
 * the file has none of it.
 */
import type { Database } from 'bun:sqlite'

/** Each column as text with its type before it, as the records of backups have it. */
export type ControlTexts = Readonly<Record<string, string | null>>

export interface TableChanges {
  readonly table: string
  /** True if `rows` are all rows of the table. */
  readonly isWhole: boolean
  readonly rows: readonly ControlTexts[]
  /** Keys of rows that are no longer there. */
  readonly deleted: readonly ControlTexts[]
}

interface Table {
  readonly name: string
  readonly columns: readonly string[]
  /** The columns of the primary key. */
  readonly key: readonly string[]
}

/** A key is a JSON list; this one stands for all keys of the table. */
const WHOLE = '*'
/** Keys of one table, beyond which all of its rows are read. */
const KEYS_MAX = 10_000

export class ControlChanges {
  readonly #database: Database
  readonly #tables: readonly Table[]
  #newestRead = 0

  /** Notes changes from now on. A connection has at most one. */
  constructor(database: Database) {
    this.#database = database
    this.#tables = tablesOf(database)
    database.exec(
      `create temp table backup_changes (
         number integer primary key autoincrement,
         table_name text not null,
         key text not null,
         unique (table_name, key)
       ) strict`,
    )
    for (const table of this.#tables) createTriggers(database, table)
  }

  /** Makes the next `read` return all rows of all tables. */
  markAll(): void {
    for (const { name } of this.#tables) this.#mark(name, WHOLE)
  }

  get isEmpty(): boolean {
    const row = this.#database
      .query<{ found: number }, []>('select 1 as found from temp.backup_changes limit 1')
      .get()
    return row === null
  }

  /** Returns what changed since the last `confirm`, as it is now, in the order of the tables. */
  read(): readonly TableChanges[] {
    const newest = this.#database
      .query<{ number: number | null }, []>('select max(number) as number from temp.backup_changes')
      .get()
    this.#newestRead = newest?.number ?? this.#newestRead
    return this.#tables.flatMap((table) => this.#changesOf(table) ?? [])
  }

  /** Forgets what the last `read` returned. Rows that changed since then are returned again. */
  confirm(): void {
    this.#database
      .query<unknown, [number]>('delete from temp.backup_changes where number <= ?1')
      .run(this.#newestRead)
  }

  close(): void {
    for (const { name } of this.#tables) {
      for (const event of EVENTS)
        this.#database.exec(`drop trigger temp."${triggerOf(name, event)}"`)
    }
    this.#database.exec('drop table temp.backup_changes')
  }

  #mark(table: string, key: string): void {
    this.#database.query<unknown, [string, string]>(INSERT).run(table, key)
  }

  #changesOf(table: Table): TableChanges | null {
    const keys = this.#database
      .query<{ key: string }, [string, number]>(
        `select key from temp.backup_changes where table_name = ?1
          order by key = '${WHOLE}' desc, number limit ?2`,
      )
      .all(table.name, KEYS_MAX + 1)
    if (keys.length === 0) return null
    if (keys.length > KEYS_MAX || keys[0]!.key === WHOLE) return this.#whole(table)
    const find = this.#database.query<ControlTexts, [string]>(
      `select ${textsOf(table.columns)} from main."${table.name}" where ${matches(table)}`,
    )
    const key = this.#database.query<ControlTexts, [string]>(
      `select ${keyTexts(table)} from (select ?1 as key)`,
    )
    const [rows, deleted]: [ControlTexts[], ControlTexts[]] = [[], []]
    for (const { key: json } of keys) {
      const row = find.get(json)
      if (row !== null) rows.push(withBase64(row))
      else deleted.push(key.get(json)!)
    }
    return { table: table.name, isWhole: false, rows, deleted }
  }

  #whole({ name, columns }: Table): TableChanges {
    const sql = `select ${textsOf(columns)} from main."${name}"`
    const rows = this.#database.query<ControlTexts, []>(sql).all().map(withBase64)
    return { table: name, isWhole: true, rows, deleted: [] }
  }
}

const EVENTS = ['insert', 'update', 'delete'] as const
type Event = (typeof EVENTS)[number]
const INSERT = 'insert or replace into temp.backup_changes (table_name, key) values (?1, ?2)'

function triggerOf(table: string, event: Event): string {
  return `backup_${table}_${event}`
}

function tablesOf(database: Database): Table[] {
  const tables = database
    .query<{ name: string }, []>(
      `select name from main.sqlite_schema
        where type = 'table' and name not glob 'sqlite_*' order by rowid`,
    )
    .all()
  return tables.map(({ name }) => {
    const columns = database
      .query<{ name: string; pk: number }, [string]>(
        'select name, pk from pragma_table_info(?1) order by cid',
      )
      .all(name)
    const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk)
    return { name, columns: columns.map((each) => each.name), key: key.map((each) => each.name) }
  })
}

/** An update notes the row before it too, whose key may be another one. */
function createTriggers(database: Database, { name, key }: Table): void {
  for (const event of EVENTS) {
    const rows = { insert: ['new'], update: ['old', 'new'], delete: ['old'] }[event]
    const notes = rows.map((row) => {
      const values = key.map((column) => `${row}."${column}"`).join(', ')
      const note = `'${name}', json_array(${values})`
      // Not "insert or replace": an "insert or ignore" that fires the trigger would override it.
      return `delete from backup_changes where (table_name, key) = (${note});
              insert into backup_changes (table_name, key) values (${note});`
    })
    database.exec(
      `create temp trigger "${triggerOf(name, event)}" after ${event} on main."${name}"
       begin ${notes.join(' ')} end`,
    )
  }
}

/** The columns as text with their types, but bytes as they are. */
function textsOf(columns: readonly string[], value = (column: string) => `"${column}"`): string {
  const texts = columns.map((column) => {
    const of = value(column)
    return `case typeof(${of}) when 'integer' then 'i:' || ${of} when 'text' then 't:' || ${of}
            else ${of} end as "${column}"`
  })
  return texts.join(', ')
}

const keyTexts = ({ key }: Table) =>
  textsOf(key, (column) => `json_extract(key, '$[${key.indexOf(column)}]')`)

const matches = ({ key }: Table) =>
  key.map((column, i) => `"${column}" = json_extract(?1, '$[${i}]')`).join(' and ')

function withBase64(row: Readonly<Record<string, unknown>>): ControlTexts {
  const columns = Object.entries(row).map(([column, value]) => [
    column,
    value instanceof Uint8Array ? `b:${Buffer.from(value).toString('base64')}` : value,
  ])
  return Object.fromEntries(columns) as ControlTexts
}
