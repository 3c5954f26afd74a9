/** Compares durable Mutations with what the store itself can make durable. */
import { join } from 'node:path'
import { SingleCommits } from '../baselines/single-commits.ts'
import { INSERTS_BY, singleInserts } from '../baselines/single-inserts.ts'
import { BODY, TITLE } from '../calls.ts'
import { type Figure, inTurns } from '../figure.ts'
import type { Target } from '../installation.ts'
import { load } from '../load.ts'
import { addItem } from '../tables.ts'
import { CONNECTIONS } from './calls.ts'

/** A row of the baseline, with the fields of an item. */
const ROW = JSON.stringify({ number: 0, title: TITLE, body: BODY })

export const COMMITS: readonly Figure[] = [
  {
    name: 'Mutation on SQLite, 64 in flight',
    baseline: 'single-row commits, one at a time',
    ratioMin: 1.5,
    documents: 'sqlite',
    measure: async (installation, options) => {
      const commits = new SingleCommits(join(installation.directory, 'single-commits.db'))
      try {
        return await inTurns(
          {
            candidate: (seconds) => loadMutations(installation.application, seconds),
            baseline: async (seconds) => commits.run(ROW, seconds),
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
    baseline: INSERTS_BY,
    ratioMin: 0.4,
    documents: 'postgres',
    measure: async (installation, options) => {
      const url = await installation.newDatabase()
      const inserts = await singleInserts(url, installation.directory)
      return inTurns(
        {
          candidate: (seconds) => loadMutations(installation.application, seconds),
          baseline: (seconds) => inserts.run(ROW, seconds),
        },
        options,
      )
    },
  },
]

function loadMutations(to: Target, seconds: number) {
  return load({ ...to, path: '/v1/mutation', body: addItem, connections: CONNECTIONS, seconds })
}
