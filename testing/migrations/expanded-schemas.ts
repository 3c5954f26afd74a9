/**
 * Compares the schema that a program knows with a later one of the same database. A later one that
 * keeps the database readable has only more: tables, and columns that the program need not write.
 */
import { Database as PostgresDatabase } from '../../src/database/database.ts'
import { migrate, type Schema } from '../../src/database/migrate.ts'
import { openSharedDatabase } from '../../src/system/own-databases.ts'
import type { Migration } from '../../src/value/databases/migrations.ts'
import { Secret } from '../../src/value/secret.ts'
import { freshDatabase } from '../databases/postgres.ts'

type SqliteDatabase = ReturnType<typeof openSharedDatabase>

interface Rule {
  readonly columns: readonly string[]
  /** True if it rejects rows. */
  readonly strict: boolean
}

/** Facts about the tables of a schema, each as a text that is compared. */
export interface TableFacts {
  /** Text that begins that of a table with more columns. A table that was made anew has another. */
  readonly definition: string
  /** Types by the name of the column. */
  readonly columns: ReadonlyMap<string, string>
  /** True for a column that an insert may leave out. */
  readonly optional: ReadonlySet<string>
  /** Constraints and unique indexes, each with the columns it concerns, and other indexes. */
  readonly rules: ReadonlyMap<string, Rule>
}

export type SchemaFacts = ReadonlyMap<string, TableFacts>

/** Returns what a program of the schema `before` would miss in, or violate of, `after`. */
export function violations(before: SchemaFacts, after: SchemaFacts): string[] {
  const found: string[] = []
  for (const [name, table] of before) {
    const later = after.get(name)
    if (later === undefined) {
      found.push(`table ${name} is gone`)
      continue
    }
    if (!later.definition.startsWith(table.definition)) found.push(`${name} was made anew`)
    for (const [column, definition] of table.columns) {
      const now = later.columns.get(column)
      if (now === definition) continue
      found.push(`${name}.${column} ${now === undefined ? 'is gone' : `became ${now}`}`)
    }
    for (const column of later.columns.keys()) {
      const isNew = !table.columns.has(column)
      if (isNew && !later.optional.has(column)) found.push(`${name}.${column} must be written`)
    }
    for (const rule of table.rules.keys()) {
      if (!later.rules.has(rule)) found.push(`${name} lost: ${rule}`)
    }
    for (const [rule, { columns, strict }] of later.rules) {
      const isOfOldColumns = columns.some((column) => table.columns.has(column))
      if (strict && !table.rules.has(rule) && isOfOldColumns) found.push(`${name} got: ${rule}`)
    }
  }
  return found
}

/** Reads the facts of a SQLite database after these migrations. */
export function sqliteFacts(migrations: readonly Migration[], first = ''): SchemaFacts {
  const database = openSharedDatabase(':memory:')
  try {
    if (first !== '') database.run(first)
    for (const { sql } of migrations) database.run(sql)
    const tables = database
      .query<{ name: string; sql: string }, []>(
        "select name, sql from sqlite_schema where type = 'table' and name not like 'sqlite_%'",
      )
      .all()
    return new Map(tables.map(({ name, sql }) => [name, sqliteTable(database, name, sql)]))
  } finally {
    database.close()
  }
}

function sqliteTable(database: SqliteDatabase, table: string, sql: string): TableFacts {
  const columns = database
    .query<
      { name: string; type: string; notnull: number; value: string | null; pk: number },
      [string]
    >('select name, type, "notnull", dflt_value as value, pk from pragma_table_info(?1)')
    .all(table)
  const names = columns.map(({ name }) => name)
  const indexes = database
    .query<{ name: string; isUnique: number }, [string]>(
      'select name, "unique" as isUnique from pragma_index_list(?1)',
    )
    .all(table)
  const rules = new Map<string, Rule>()
  for (const { name, isUnique } of indexes) {
    const text = database
      .query<{ sql: string | null }, [string]>('select sql from sqlite_schema where name = ?1')
      .get(name)?.sql
    rules.set(text ?? `index ${name}`, { columns: names, strict: isUnique === 1 })
  }
  return {
    // A column that is added stands before the last parenthesis.
    definition: sql
      .replaceAll(/--.*\n/g, '\n')
      .replaceAll(/\s+/g, ' ')
      .replace(/ ?\)[^)]*$/, ''),
    columns: new Map(
      columns.map(({ name, type, notnull, pk }) => [name, `${type} ${notnull} ${pk}`]),
    ),
    optional: new Set(
      columns
        .filter(({ notnull, value }) => notnull === 0 || value !== null)
        .map(({ name }) => name),
    ),
    rules,
  }
}

/** Reads the facts of a PostgreSQL database after these migrations. */
export async function postgresFacts(
  schema: Schema,
  migrations: readonly Migration[],
): Promise<SchemaFacts> {
  const { url, drop } = await freshDatabase()
  const settings = `set search_path = ${schema.name}, pg_temp`
  const database = new PostgresDatabase({ url: new Secret(url), settings, connectionsMax: 1 })
  try {
    await migrate(database, 1n, { ...schema, migrations })
    return await readPostgres(database, schema.name)
  } finally {
    await database.close()
    await drop()
  }
}

function noFacts() {
  return {
    definition: '',
    columns: new Map<string, string>(),
    optional: new Set<string>(),
    rules: new Map<string, Rule>(),
  }
}

async function readPostgres(database: PostgresDatabase, schema: string): Promise<SchemaFacts> {
  const facts = new Map<string, ReturnType<typeof noFacts>>()
  const columns = await database.rows(
    `select c.relname as table, a.attname as column, a.attnotnull as required,
            format_type(a.atttypid, a.atttypmod) || coalesce(' collate ' || o.collname, '') as type,
            a.atthasdef or a.attidentity <> '' as given
       from pg_attribute a join pg_class c on c.oid = a.attrelid
       left join pg_collation o on o.oid = a.attcollation
      where c.relnamespace = $1::regnamespace and c.relkind = 'r' and a.attnum > 0
        and not a.attisdropped`,
    [schema],
  )
  for (const row of columns) {
    const name = String(row.table)
    const table = facts.get(name) ?? noFacts()
    facts.set(name, table)
    table.columns.set(String(row.column), `${row.type} ${row.required}`)
    if (row.required !== true || row.given === true) table.optional.add(String(row.column))
  }
  const rules = await database.rows(
    `select conrelid::regclass::text as table, pg_get_constraintdef(oid) as rule, true as strict,
            array(select attname::text from pg_attribute
                   where attrelid = conrelid and attnum = any (conkey)) as columns
       from pg_constraint where connamespace = $1::regnamespace and contype <> 'n'
     union all
     select indrelid::regclass::text, pg_get_indexdef(indexrelid), indisunique,
            array(select attname::text from pg_attribute
                   where attrelid = indrelid and attnum = any (indkey))
       from pg_index join pg_class c on c.oid = indexrelid
      where c.relnamespace = $1::regnamespace`,
    [schema],
  )
  for (const row of rules) {
    const name = String(row.table).replace(`${schema}.`, '')
    const rule = { columns: row.columns as string[], strict: row.strict === true }
    facts.get(name)?.rules.set(String(row.rule), rule)
  }
  return facts
}
