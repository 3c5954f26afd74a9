/** Compares calls on a table with many documents with calls on one with few, in both stores. */
import { int64, mutateAll, mutationBody, queryBody, string, TEXTS } from '../calls.ts'
import { type Figure, inTurns } from '../figure.ts'
import type { BenchInstallation, Documents } from '../installation.ts'
import { load } from '../load.ts'

const TABLES = { few: 10, many: 1_000_000 }
/** Number of documents that one Mutation inserts to fill a table. */
const FILLED = 1_000
/** Rates may differ by 20%. */
const RATIO_MIN = 0.8
export const STORES: Readonly<Record<Documents, string>> = {
  sqlite: 'SQLite',
  postgres: 'PostgreSQL',
}

type Table = keyof typeof TABLES

let counter = 0
/** Visits every document of the table: the step has no common factor with either size. */
const nextNumber = (table: Table): number => (counter++ * 7919) % TABLES[table]

const read = (table: Table) => (): string =>
  queryBody(`${table}.get`, { number: int64(nextNumber(table)), nonce: int64(counter) })
const change = (table: Table) => (): string => {
  const title = string(`title ${counter % 10}`)
  return mutationBody(`${table}.change`, { number: int64(nextNumber(table)), title })
}

export const SIZES: readonly Figure[] = (['sqlite', 'postgres'] as const).flatMap((documents) => [
  sized(documents, { what: 'Query', path: '/v1/query', body: read, connections: 64 }),
  // Fewer calls in flight than the small table has documents, so that they do not contend.
  sized(documents, { what: 'Mutation', path: '/v1/mutation', body: change, connections: 4 }),
])

interface Sized {
  readonly what: string
  readonly path: string
  readonly connections: number
  body(table: Table): () => string
}

function sized(documents: Documents, { what, body, ...rest }: Sized): Figure {
  return {
    name: `${what}, 1,000,000 documents, ${STORES[documents]}`,
    baseline: 'in a table of 10 documents',
    ratioMin: RATIO_MIN,
    documents,
    long: true,
    measure: async (installation, options) => {
      await fillTables(installation)
      const run = (table: Table, seconds: number) =>
        load({ ...installation.application, ...rest, body: body(table), seconds })
      return inTurns(
        {
          candidate: (seconds) => run('many', seconds),
          baseline: (seconds) => run('few', seconds),
        },
        options,
      )
    },
  }
}

const filled = new WeakSet<BenchInstallation>()

/** Fills both tables, once for each installation. */
export async function fillTables(installation: BenchInstallation): Promise<void> {
  if (filled.has(installation)) return
  filled.add(installation)
  for (const [table, count] of Object.entries(TABLES)) {
    const bodies = Array.from({ length: Math.ceil(count / FILLED) }, (_, i) => {
      const [from, to] = [i * FILLED, Math.min((i + 1) * FILLED, count)]
      return mutationBody(`${table}.fill`, { from: int64(from), to: int64(to), ...TEXTS })
    })
    await mutateAll(installation.application, bodies, 4)
  }
}
