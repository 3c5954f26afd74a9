/** An engine with real runners for migrations, over documents that outlive it, on both stores. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteDocuments } from '../../src/documents/sqlite/stores.ts'
import type { DocumentStore } from '../../src/documents/store.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { MigrationRecord } from '../../src/engine/migrations/migration-records.ts'
import type { MigrationHost } from '../../src/engine/migrations/migrations.ts'
import type { Release } from '../../src/engine/releases/executable-release.ts'
import type { RunnerPool } from '../../src/engine/runners/runner-pool.ts'
import { realSystem } from '../../src/system/system.ts'
import type { MemoryLog } from '../../src/telemetry/log.ts'
import type { Metrics } from '../../src/telemetry/metrics/metrics.ts'
import type { ReleaseId } from '../../src/value/ids.ts'
import type { MigrationManifest } from '../../src/value/manifest.ts'
import { decodeTagged } from '../../src/value/tagged.ts'
import type { Value, ValueObject } from '../../src/value/values.ts'
import { parseDescription } from '../../src/wire/files/manifest.ts'
import { TestConfiguration } from '../configurations.ts'
import { testCursors } from '../cursors.ts'
import { freshDatabase } from '../databases/postgres.ts'
import { DOCUMENT_TEMPLATE, openDocuments } from '../documents/stores.ts'
import { noStorage } from '../files/function-storage.ts'
import { poolBench, scriptOf } from '../runners.ts'

export const STORES = ['sqlite', 'postgres'] as const

/** Opens the same documents each time. */
export interface StoredDocuments {
  open(): Promise<DocumentStore>
  close(): Promise<void>
}

export async function storedDocuments(kind: (typeof STORES)[number]): Promise<StoredDocuments> {
  if (kind === 'sqlite') {
    const directory = mkdtempSync(join(tmpdir(), 'svc-migrations-'))
    return {
      open: () => openSqliteDocuments(join(directory, 'documents.db')),
      close: async () => rmSync(directory, { recursive: true, force: true }),
    }
  }
  const database = await freshDatabase(DOCUMENT_TEMPLATE)
  let databaseId: string | null = null
  return {
    open: async () => {
      const store = await openDocuments(database.url, { databaseId })
      databaseId = store.databaseId
      return store
    },
    close: async () => {
      await database.drop()
    },
  }
}

export interface MigrationCode {
  /** Members of an object literal of Functions. */
  readonly functions: string
  readonly schema: string
  /** An object literal of migrations by name. */
  readonly migrations: string
}

export interface MigrationBench {
  readonly engine: Engine
  readonly pool: RunnerPool
  readonly log: MemoryLog
  readonly metrics: Metrics
  readonly release: Release
  /** Starts the migrations, with a part of the host replaced. */
  start(host?: Partial<MigrationHost>): void
  migration(name: string): MigrationManifest
  record(name: string): Promise<MigrationRecord | null>
  /** Resolves once the migration has one of these states. */
  until(name: string, ...states: readonly string[]): Promise<MigrationRecord>
  call(name: string, input?: Record<string, Value>): Promise<Value>
  close(): Promise<void>
}

const system = realSystem()

export async function migrationBench(
  store: DocumentStore,
  { functions, schema, migrations }: MigrationCode,
  releaseId = system.ids.make('rel'),
): Promise<MigrationBench> {
  const { pool, log, metrics } = poolBench({})
  await pool.start({ sandbox: 'preferred' })
  const engine = createEngine({
    store,
    pool,
    system,
    log: log.log,
    metrics,
    issueGuest: () => 'nobody',
    cursors: testCursors(),
    configuration: new TestConfiguration(),
    storage: noStorage(),
  })
  const code = { releaseId, source: scriptOf(functions, schema, migrations), sourceMap: null }
  const described = parseDescription(await engine.describe(code))
  const release: Release = {
    ...code,
    functions: new Map(described.functions.map((each) => [each.name, each])),
    tables: new Map(described.tables.map((each) => [each.name, each])),
    migrations: new Map((described.migrations ?? []).map((each) => [each.name, each])),
  }
  const migration = (name: string) => release.migrations!.get(name)!
  const record = (name: string) => engine.migrations.find(migration(name))
  return {
    engine,
    pool,
    log,
    metrics,
    release,
    migration,
    record,
    start: (host = {}) => {
      const load = async (_: ReleaseId) => release
      engine.migrations.start({ load, admits: () => true, ...host })
    },
    until: (name, ...states) =>
      new Promise((resolve, reject) => {
        const { digest } = migration(name)
        const check = (found: MigrationRecord | null) => {
          if (found?.digest === digest && states.includes(found.state)) resolve(found)
        }
        engine.migrations.listen(check)
        record(name).then(check, reject)
      }),
    async call(name, input = {}) {
      const definition = release.functions.get(`f.${name}`)!
      const context = { requestId: 'req_test', invocationId: 'ivc_test' }
      const values = new Map(Object.entries(input)) as ValueObject
      const request = { release, definition, arguments: values, principal: null, context }
      const operation = { operationId: system.ids.make('opn'), target: 'test', caller: 'test' }
      const outcome = await (definition.kind === 'mutation'
        ? engine.mutation({ ...request, ...operation })
        : engine.query(request))
      return decodeTagged(JSON.parse(outcome.resultText))
    },
    close: () => engine.close(),
  }
}
