/** Whether a table with many documents answers as one with few does, in both stores. */
import { int64, mutateAll, mutationBody, queryBody, string, TEXTS } from '../calls.ts'
import { type Figure, inTurns } from '../figure.ts'
import type { BenchInstallation, Documents } from '../installation.ts'
import { load } from '../load.ts'

const TABLES = { few: 10, many: 1_000_000 }
/** Documents of one Mutation that fills a table. */
const FILLED = 1_000
/** Within 20% of each other. */
const BAR = 0.8
const STORES: Readonly<Record<Documents, string>> = { sqlite: 'SQLite', postgres: 'PostgreSQL' }

type Table = keyof typeof TABLES

let counter = 0
/** Goes round through the whole table, since the step has no factor with either size in common. */
const nextNumber = (table: Table): number => (counter++ * 7919) % TABLES[table]

const read = (table: Table) => (): string =>
  queryBody(`${table}.get`, { number: int64(nextNumber(table)), nonce: int64(counter) })
const change = (table: Table) => (): string => {
  const title = string(`title ${counter % 10}`)
  return mutationBody(`${table}.change`, { number: int64(nextNumber(table)), title })
}

export const SIZES: readonly Figure[] = (['sqlite', 'postgres'] as const).flatMap((documents) => [
  sized(documents, { what: 'Query', path: '/v1/query', body: read, connections: 64 }),
  // Fewer in flight than the small table has documents: what is compared is not their contention.
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
    beside: 'the same in a table of 10',
    bar: BAR,
    documents,
    long: true,
    measure: async (installation, options) => {
      await fillTables(installation)
      const run = (table: Table, seconds: number) =>
        load({ ...installation.application, ...rest, body: body(table), seconds })
      return inTurns(
        { ours: (seconds) => run('many', seconds), limit: (seconds) => run('few', seconds) },
        options,
      )
    },
  }
}

const filled = new WeakSet<BenchInstallation>()

/** Once for each installation. */
async function fillTables(installation: BenchInstallation): Promise<void> {
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
