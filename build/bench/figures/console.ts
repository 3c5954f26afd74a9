/** Compares Queries that print lines with the same Queries that print none. */
import { int64, queryBody } from '../calls.ts'
import { type Figure, inTurns } from '../figure.ts'
import { load } from '../load.ts'
import { CONNECTIONS, fillItems } from './calls.ts'

const ITEMS = 10_000

let counter = 0

const printing = (lines: number) => (): string => {
  const number = (counter * 7919) % ITEMS
  const entries = { number: int64(number), nonce: int64(counter++), lines: int64(lines) }
  return queryBody('items.getAndPrint', entries)
}

export const CONSOLE: readonly Figure[] = [
  costOf('Query with one line of console', 1, 0.95),
  costOf('Query with 10 lines of console', 10, 0.75),
]

function costOf(name: string, lines: number, ratioMin: number): Figure {
  return {
    ...{ name, baseline: 'the same Query, without console', ratioMin, documents: 'sqlite' },
    measure: async (installation, options) => {
      await fillItems(installation)
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
