/** The tables of documents: how they are filled, and calls on documents drawn at random. */
import { int64, mutateAll, mutationBody, queryBody, string, TEXTS } from './calls.ts'
import type { BenchInstallation, Documents } from './installation.ts'

export const TABLES = { few: 100, items: 100_000, many: 1_000_000 }
export type Table = keyof typeof TABLES

export const STORES: Readonly<Record<Documents, string>> = {
  sqlite: 'SQLite',
  postgres: 'PostgreSQL',
}
/** Number of documents of each list. */
export const LISTED = 50
/** Number of documents or lists that calls are drawn from, spread over the table. */
const DRAWN_MAX = 20_000
/** Number of documents that one Mutation inserts to fill a table. */
const FILLED = 1_000
const FILLS_IN_FLIGHT = 4

let counter = 0

/** Returns the number of a document with `last` others behind it. */
export function draw(table: Table, last = 0): number {
  const drawn = Math.min(DRAWN_MAX, TABLES[table] - last)
  return Math.floor(Math.random() * drawn) * Math.floor(TABLES[table] / drawn)
}

export const readOf = (table: Table) => (): string =>
  queryBody(`${table}.get`, { number: int64(draw(table)), nonce: int64(counter++) })
export const listOf = (table: Table) => (): string =>
  queryBody(`${table}.list`, { from: int64(draw(table, LISTED)), nonce: int64(counter++) })
export const changeOf = (table: Table) => (): string => {
  const title = string(`title ${counter++ % 10}`)
  return mutationBody(`${table}.change`, { number: int64(draw(table)), title })
}
export const readItem = readOf('items')
export const addItem = (): string =>
  mutationBody('items.add', { number: int64(TABLES.items + counter++), ...TEXTS })

const filled = new WeakMap<BenchInstallation, Set<Table>>()

/** Fills the table, once for each installation. */
export async function fillTable(installation: BenchInstallation, table: Table): Promise<void> {
  const tables = filled.get(installation) ?? new Set()
  filled.set(installation, tables)
  if (tables.has(table)) return
  tables.add(table)
  const count = TABLES[table]
  const bodies = Array.from({ length: Math.ceil(count / FILLED) }, (_, i) => {
    const [from, to] = [i * FILLED, Math.min((i + 1) * FILLED, count)]
    return mutationBody(`${table}.fill`, { from: int64(from), to: int64(to), ...TEXTS })
  })
  await mutateAll(installation.application, bodies, FILLS_IN_FLIGHT)
}
