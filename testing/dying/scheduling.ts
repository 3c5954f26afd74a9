/**
 * A server of scheduled work that may be killed at any time. The first one schedules Mutations and
 * Actions over some time; each one runs what is due, and a Cron every second, and ends once nothing
 * is unfinished, or waits for its kill then. Arguments: `ends` or `waits`, the directory of the
 * SQLite documents and of the effects, the number of pieces of each kind, the number of their due
 * times, the milliseconds of these, and the URL of a PostgreSQL database for the documents, if they
 * are there.
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openSqliteDocuments } from '../../src/documents/sqlite/stores.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import { insertWork } from '../../src/engine/scheduled-work/scheduled-documents.ts'
import { realSystem } from '../../src/system/system.ts'
import { memoryLog } from '../../src/telemetry/log.ts'
import { Metrics } from '../../src/telemetry/metrics/metrics.ts'
import type { ReleaseId } from '../../src/value/ids.ts'
import type { FunctionManifest } from '../../src/value/manifest.ts'
import { TestConfiguration } from '../configurations.ts'
import { testCursors } from '../cursors.ts'
import { openDocuments } from '../documents/stores.ts'
import { inProcessPool, type Loose } from '../engine/in-process-pool.ts'
import { noStorage } from '../files/function-storage.ts'

const [end, directory = '', count = '0', times = '1', spread = '0', url] = process.argv.slice(2)
/** Pieces of each kind that one transaction inserts. */
const BATCH = 1_000
const system = realSystem()
const effects = join(directory, 'effects')

function manifestOf(name: string, kind: 'mutation' | 'action'): FunctionManifest {
  return {
    name,
    kind,
    auth: 'none',
    visibility: 'internal',
    clients: [],
    errors: {},
    arguments: { piece: { type: 'string' } },
    returns: { type: 'any' },
    ...(kind === 'action' && { uses: { network: [], secrets: [] } }),
  }
}

async function openPostgres(url: string) {
  const file = join(directory, 'database-id')
  const databaseId = existsSync(file) ? readFileSync(file, 'utf8') : null
  const opened = await openDocuments(url, { databaseId })
  writeFileSync(file, opened.databaseId)
  return opened
}

const store =
  url === undefined
    ? await openSqliteDocuments(join(directory, 'documents.db'))
    : await openPostgres(url)
const pool = inProcessPool({
  mark: async (context, { piece }: Loose) => {
    await context.insert('marks', { piece })
  },
  act: async (_, { piece }: Loose) => {
    appendFileSync(effects, `${piece}\n`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  },
})
Object.assign(pool, { close: async () => undefined, warm: async () => undefined })
const engine = createEngine({
  store,
  pool,
  system,
  log: memoryLog().log,
  metrics: new Metrics(system),
  storage: noStorage(),
  issueGuest: () => 'guest',
  cursors: testCursors(),
  configuration: new TestConfiguration(),
})
const definitions = [manifestOf('mark', 'mutation'), manifestOf('act', 'action')]
const release = {
  releaseId: `rel_${'0'.repeat(26)}` as ReleaseId,
  source: '',
  sourceMap: null,
  functions: new Map(definitions.map((definition) => [definition.name, definition])),
  tables: new Map([
    ['marks', { name: 'marks', fields: { piece: { type: 'string' } as const }, indexes: [] }],
  ]),
}

if (!existsSync(join(directory, 'scheduled'))) {
  const nowMicros = system.nowMicros()
  const stepMicros = (Number(spread) * 1_000) / Number(times)
  for (let from = 0; from < Number(count); from += BATCH) {
    await engine.documents.change(async (transaction) => {
      for (let i = from; i < Math.min(from + BATCH, Number(count)); i++) {
        const dueAtMicros = nowMicros + BigInt(Math.floor((i % Number(times)) * stepMicros))
        for (const { name, kind } of definitions) {
          await insertWork(transaction, {
            function: name,
            kind: kind as 'mutation' | 'action',
            releaseId: release.releaseId,
            source: 'function',
            cron: null,
            dueAtMicros,
            argumentsText: JSON.stringify({ piece: `${name}-${i}` }),
          })
        }
      }
    })
  }
  writeFileSync(join(directory, 'scheduled'), '')
}
await engine.prepare(release)
engine.scheduler.start({ load: async () => release, admits: () => true })
engine.scheduler.crons.follow({
  releaseId: release.releaseId,
  activationOf: () => ({ revision: 0n, isEnabled: true }),
  crons: [
    {
      name: 'tick',
      schedule: null,
      timeZone: null,
      everyMillis: 1_000,
      overlap: 'queue',
      function: 'mark',
      kind: 'mutation',
      argumentsText: '{"piece":"tick"}',
    },
  ],
})
process.stdout.write('started\n')
while (end === 'waits' || engine.scheduler.pendingOf(release.releaseId) !== 0) {
  await new Promise((resolve) => setTimeout(resolve, 10))
}
await engine.close()
process.stdout.write('finished\n')
process.exit(0)
