/** Durable Mutations beside what the store can make durable by itself. */
import { join } from 'node:path'
import { BODY, TITLE } from '../calls.ts'
import { type Figure, inTurns } from '../figure.ts'
import type { Target } from '../installation.ts'
import { SingleCommits } from '../limits/single-commits.ts'
import { INSERTS_BY, singleInserts } from '../limits/single-inserts.ts'
import { load } from '../load.ts'
import { addItem, CONNECTIONS } from './calls.ts'

/** A row of the limit has the fields of an item. */
const ROW = JSON.stringify({ number: 0, title: TITLE, body: BODY })

export const COMMITS: readonly Figure[] = [
  {
    name: 'Mutation on SQLite, 64 in flight',
    beside: 'single-row commits, one at a time',
    bar: 1.5,
    documents: 'sqlite',
    measure: async (installation, options) => {
      const commits = new SingleCommits(join(installation.directory, 'single-commits.db'))
      try {
        return await inTurns(
          {
            ours: (seconds) => loadMutations(installation.application, seconds),
            limit: async (seconds) => commits.run(ROW, seconds),
          },
          options,
        )
      } finally {
        commits.close()
      }
    },
  },
  {
    name: 'Mutation on PostgreSQL, 64 in flight',
    beside: INSERTS_BY,
    bar: 0.4,
    documents: 'postgres',
    measure: async (installation, options) => {
      const url = await installation.newDatabase()
      const inserts = await singleInserts(url, installation.directory)
      return inTurns(
        {
          ours: (seconds) => loadMutations(installation.application, seconds),
          limit: (seconds) => inserts.run(ROW, seconds),
        },
        options,
      )
    },
  },
]

function loadMutations(to: Target, seconds: number) {
  return load({ ...to, path: '/v1/mutation', body: addItem, connections: CONNECTIONS, seconds })
}
