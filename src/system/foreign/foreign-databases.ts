/** Reads SQLite files that another program wrote. Their schema and content are untrusted. */
import { Database } from 'bun:sqlite'

export type ForeignValue = null | bigint | number | string | Uint8Array
export type ForeignRow = Readonly<Record<string, ForeignValue>>

export interface ForeignTable {
  readonly name: string
  readonly columns: readonly string[]
}

export interface ForeignDatabase {
  /** The ordinary tables: views and virtual tables would run what the file says. */
  readonly tables: readonly ForeignTable[]
  /** Yields the rows in the order of their creation. */
  rows(table: ForeignTable): IterableIterator<ForeignRow>
  close(): void
}

/**
 * Opens a file for reading. SQLite makes a log and its index beside it, so the caller gives a copy
 * of its own. Throws what SQLite throws for a file that is damaged.
 */
export function openForeignDatabase(path: string): ForeignDatabase {
  const database = new Database(path, { readonly: true, safeIntegers: true })
  try {
    database.run('pragma trusted_schema = off')
    database.run('pragma cell_size_check = on')
    return {
      tables: tablesOf(database),
      rows: ({ name, columns }) => {
        const list = columns.map(quoted).join(', ')
        const sql = `select ${list} from ${quoted(name)} order by rowid`
        return database.query<ForeignRow, []>(sql).iterate()
      },
      close: () => database.close(),
    }
  } catch (error) {
    database.close()
    throw error
  }
}

function tablesOf(database: Database): readonly ForeignTable[] {
  const found = database
    .query<{ name: string }, []>(
      "select name from pragma_table_list where schema = 'main' and type = 'table' order by name",
    )
    .all()
  return found.map(({ name }) => {
    // A generated column would run its expression; its `hidden` is not zero.
    const columns = database
      .query<{ name: string }, [string]>(
        'select name from pragma_table_xinfo(?) where hidden = 0 order by cid',
      )
      .all(name)
    return { name, columns: columns.map((column) => column.name) }
  })
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
