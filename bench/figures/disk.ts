/** Compares the bytes on disk of documents with those of a plain table with the same fields. */
import { Database } from 'bun:sqlite'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { BODY, ids, TITLE } from '../calls.ts'
import type { Figure, Side } from '../figure.ts'
import { type BenchInstallation, benchInstallation, type Documents } from '../installation.ts'
import { fillTable, STORES, TABLES } from '../tables.ts'

const COLUMNS = 'id text primary key, created bigint, number bigint, title text, body text'
const INDEX = 'create index by_number on items (number, created, id)'

export const DISK: readonly Figure[] = (['sqlite', 'postgres'] as const).map((documents) => ({
  name: `bytes on disk of a document, ${STORES[documents]}`,
  baseline: 'of a row of a plain table, same index',
  ratioMin: 1 / 1.5,
  documents,
  measure: () => measureDisk(documents),
}))

/** Uses an installation of its own, whose store has nothing else. */
async function measureDisk(documents: Documents) {
  const installation = await benchInstallation(documents)
  try {
    const bytes = () => STORED[documents].documents(installation)
    const before = await bytes()
    await fillTable(installation, 'items')
    // The server writes its log of commits into the tables when it stops.
    await installation.restart()
    const candidate = (await bytes()) - before
    const baseline = await STORED[documents].plain(installation)
    return {
      ratio: baseline / candidate,
      candidate: sideOf(candidate),
      baseline: sideOf(baseline),
      failure: null,
    }
  } finally {
    await installation.dispose()
  }
}

interface Stored {
  /** Returns the bytes of the document store. */
  documents(installation: BenchInstallation): Promise<number>
  /** Writes the rows of a plain table and returns their bytes. */
  plain(installation: BenchInstallation): Promise<number>
}

const rows = () =>
  Array.from({ length: TABLES.items }, (_, number) => [ids.make('opn'), number, TITLE, BODY])

const STORED: Readonly<Record<Documents, Stored>> = {
  sqlite: {
    documents: async ({ directory }) => {
      const root = join(directory, 'product')
      const files = readdirSync(root).filter((name) => name.startsWith('documents.db'))
      return files.reduce((sum, name) => sum + statSync(join(root, name)).size, 0)
    },
    plain: async ({ directory }) => {
      const file = join(directory, 'plain.db')
      const database = new Database(file, { create: true })
      database.run(`create table items (${COLUMNS})`)
      database.run(INDEX)
      const insert = database.prepare('insert into items values (?1, ?2, ?2, ?3, ?4)')
      database.transaction(() => {
        for (const row of rows()) insert.run(...row)
      })()
      database.close()
      return statSync(file).size
    },
  },
  postgres: {
    documents: async ({ documentsUrl }) => databaseBytes(documentsUrl!),
    plain: async (installation) => {
      const url = await installation.newDatabase()
      const empty = await databaseBytes(url)
      const insert = `insert into items select id, number, number, $2, $3
        from unnest($1::text[]) with ordinality as each (id, number)`
      const created = rows().map(([id]) => id)
      await query(url, `create table items (${COLUMNS})`)
      await query(url, INDEX)
      await query(url, insert, [created, TITLE, BODY])
      return (await databaseBytes(url)) - empty
    },
  },
}

async function databaseBytes(url: string): Promise<number> {
  const [row] = await query(url, 'select pg_database_size(current_database()) as bytes')
  return Number(row!.bytes)
}

async function query(url: string, text: string, values: unknown[] = []) {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<{ bytes: string }>(text, values)).rows
  } finally {
    await client.end()
  }
}

function sideOf(bytes: number): Side {
  return {
    value: `${(bytes / TABLES.items).toFixed(0)} B`,
    p50Micros: null,
    p99Micros: null,
  }
}
