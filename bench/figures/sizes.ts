/** Compares calls on a table with many documents with calls on one with few, in both stores. */
import { type Figure, inTurns } from '../figure.ts'
import type { Documents } from '../installation.ts'
import { load } from '../load.ts'
import { changeOf, fillTable, listOf, readOf, STORES, TABLES, type Table } from '../tables.ts'
import { CONNECTIONS } from './calls.ts'

const RATIO_MIN = 0.7
const QUERY = { path: '/v1/query', connections: CONNECTIONS }

export const SIZES: readonly Figure[] = (['sqlite', 'postgres'] as const).flatMap((documents) =>
  (['items', 'many'] as const).flatMap((table) => [
    sized(documents, table, { what: 'Query', ...QUERY, body: readOf }),
    sized(documents, table, { what: 'list', ...QUERY, body: listOf }),
    // Few calls in flight, so that those on the small table do not contend.
    sized(documents, table, {
      what: 'Mutation',
      path: '/v1/mutation',
      connections: 4,
      body: changeOf,
    }),
  ]),
)

interface Sized {
  readonly what: string
  readonly path: string
  readonly connections: number
  body(table: Table): () => string
}

function sized(
  documents: Documents,
  table: 'items' | 'many',
  { what, body, ...rest }: Sized,
): Figure {
  return {
    name: `${what}, ${TABLES[table].toLocaleString('en')} documents, ${STORES[documents]}`,
    baseline: `in a table of ${TABLES.few} documents`,
    ratioMin: RATIO_MIN,
    documents,
    ...(table === 'many' && { long: true }),
    measure: async (installation, options) => {
      for (const each of ['few', table] as const) await fillTable(installation, each)
      const run = (of: Table, seconds: number) =>
        load({ ...installation.application, ...rest, body: body(of), seconds })
      return inTurns(
        {
          candidate: (seconds) => run(table, seconds),
          baseline: (seconds) => run('few', seconds),
        },
        options,
      )
    },
  }
}
