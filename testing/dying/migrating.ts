/**
 * A server of a migration that may be killed at any time. The first one inserts documents and
 * starts the migration, which counts in each document how often it was passed; each server
 * continues it and changes documents meanwhile, and ends once it is complete. Arguments: the
 * maximum number of batches of this server, the directory of the SQLite documents, the number of
 * documents, and the URL of a PostgreSQL database for the documents, if they are there.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openSqliteDocuments } from '../../src/documents/sqlite/stores.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import { realSystem } from '../../src/system/system.ts'
import { memoryLog } from '../../src/telemetry/log.ts'
import { Metrics } from '../../src/telemetry/metrics/metrics.ts'
import type { ReleaseId } from '../../src/value/ids.ts'
import type { Value } from '../../src/value/values.ts'
import { TestConfiguration } from '../configurations.ts'
import { testCursors } from '../cursors.ts'
import { openDocuments } from '../documents/stores.ts'
import { inProcessPool, type Loose } from '../engine/in-process-pool.ts'
import { noStorage } from '../files/function-storage.ts'
import { migrationHandler, migrationManifest } from '../migrations/in-process-migrations.ts'
import { functionManifest } from '../products.ts'

const [batches = '0', directory = '', count = '0', url] = process.argv.slice(2)
/** Documents that one transaction inserts. */
const INSERTED = 1_000
/** Pause between two calls that change a document. */
const CALL_MILLIS = 2
const system = realSystem()

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
const integerOf = (value: Loose) => BigInt(value?.$i ?? 0)
const pool = inProcessPool({
  fill: async (context, { from, to }: Loose) => {
    for (let n = integerOf(from); n < integerOf(to); n++) {
      await context.insert('tasks', { n: { $i: String(n) } })
    }
  },
  touch: async (context, { n }: Loose) => {
    const found = await context.range({ table: 'tasks', index: 'byNumber', equal: [n], limit: 1 })
    const [task] = found.documents
    const touches = { $i: String(integerOf(task.touches) + 1n) }
    await context.patch(task._id.$d, { touches })
  },
  ...migrationHandler('count', (task) => ({
    passes: { $i: String(integerOf(task.passes) + 1n) },
  })),
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
const int64 = { type: 'int64' } as const
const optional = { type: 'optional', inner: int64 } as const
const definitions = [
  functionManifest('fill', { kind: 'mutation', arguments: { from: int64, to: int64 } }),
  functionManifest('touch', { kind: 'mutation', arguments: { n: int64 } }),
]
const migration = migrationManifest('count', { batch: 100 })
const release = {
  releaseId: `rel_${'0'.repeat(26)}` as ReleaseId,
  source: '',
  sourceMap: null,
  functions: new Map(definitions.map((definition) => [definition.name, definition])),
  tables: new Map([
    [
      'tasks',
      {
        name: 'tasks',
        fields: { n: int64, passes: optional, touches: optional },
        indexes: [{ name: 'byNumber', fields: ['n'], unique: true }],
      },
    ],
  ]),
  migrations: new Map([[migration.name, migration]]),
}

function call(name: string, input: Readonly<Record<string, Value>>) {
  const context = { requestId: 'req_test', invocationId: 'ivc_test' }
  const operation = { operationId: system.ids.make('opn'), target: 'test', caller: 'test' }
  const definition = release.functions.get(name)!
  const values = new Map(Object.entries(input))
  const request = { release, definition, arguments: values, principal: null, context }
  return engine.mutation({ ...request, ...operation })
}

if (!existsSync(join(directory, 'filled'))) {
  for (let from = 0; from < Number(count); from += INSERTED) {
    const to = Math.min(from + INSERTED, Number(count))
    await call('fill', { from: BigInt(from), to: BigInt(to) })
  }
  writeFileSync(join(directory, 'filled'), '')
}
let admitted = Number(batches)
engine.migrations.start({ load: async () => release, admits: () => admitted-- > 0 })
await engine.migrations.act('run', release, migration)
process.stdout.write('started\n')
let touches = 0
let isRunning = true
const calls = (async () => {
  while (isRunning) {
    await call('touch', { n: BigInt((touches * 7) % Number(count)) })
    touches += 1
    await new Promise((resolve) => setTimeout(resolve, CALL_MILLIS))
  }
})()
const { record } = await engine.migrations.whenStopped(migration)
isRunning = false
await calls
await engine.close()
process.stdout.write(`finished ${record.state} ${record.processed} ${record.changed}\n`)
process.exit(0)
