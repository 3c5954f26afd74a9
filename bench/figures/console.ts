/** Compares Queries with the same Queries without a log, and without lines of console. */
import { serverWithoutLog } from '../baselines/server-without-log.ts'
import { int64, queryBody } from '../calls.ts'
import { type Figure, inTurns } from '../figure.ts'
import { type BenchInstallation, benchInstallation } from '../installation.ts'
import { load } from '../load.ts'
import { fillTable, readItem, TABLES } from '../tables.ts'
import { CONNECTIONS } from './calls.ts'

let counter = 0

const printing = (lines: number) => (): string => {
  const number = (counter * 7919) % TABLES.items
  const entries = { number: int64(number), nonce: int64(counter++), lines: int64(lines) }
  return queryBody('items.getAndPrint', entries)
}

export const CONSOLE: readonly Figure[] = [
  {
    name: 'Query that prints nothing',
    baseline: 'the same Query, server without a log',
    ratioMin: 0.95,
    documents: 'sqlite',
    measure: async (installation, options) => {
      const executable = await serverWithoutLog(installation.directory)
      const without = await benchInstallation('sqlite', { executable })
      const run = async ({ application }: BenchInstallation, seconds: number) => {
        const query = { path: '/v1/query', body: readItem, connections: CONNECTIONS }
        return load({ ...application, ...query, seconds })
      }
      try {
        await fillTable(installation, 'items')
        await fillTable(without, 'items')
        return await inTurns(
          {
            candidate: (seconds) => run(installation, seconds),
            baseline: (seconds) => run(without, seconds),
          },
          options,
        )
      } finally {
        await without.dispose()
      }
    },
  },
  costOf('Query with one line of console', 1, 0.95),
  costOf('Query with 10 lines of console', 10, 0.75),
]

function costOf(name: string, lines: number, ratioMin: number): Figure {
  return {
    name,
    baseline: 'the same Query, without console',
    ratioMin,
    documents: 'sqlite',
    measure: async (installation, options) => {
      await fillTable(installation, 'items')
      const to = { ...installation.application, path: '/v1/query', connections: CONNECTIONS }
      return inTurns(
        {
          candidate: (seconds) => load({ ...to, body: printing(lines), seconds }),
          baseline: (seconds) => load({ ...to, body: printing(0), seconds }),
        },
        options,
      )
    },
  }
}
