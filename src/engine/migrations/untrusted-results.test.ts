/** Results of a migration from a runner that sends something else than the realm makes. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { TestConfiguration } from '../../../testing/configurations.ts'
import { testCursors } from '../../../testing/cursors.ts'
import { inProcessPool, type TestHandler } from '../../../testing/engine/in-process-pool.ts'
import { noStorage } from '../../../testing/files/function-storage.ts'
import { migrationManifest } from '../../../testing/migrations/in-process-migrations.ts'
import { functionManifest } from '../../../testing/products.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import { realSystem } from '../../system/system.ts'
import { memoryLog } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { migrationFunction } from '../../value/migrations/migrations.ts'
import { createEngine } from '../create-engine.ts'
import type { Engine } from '../engine.ts'
import type { Release } from '../releases/executable-release.ts'
import type { MigrationRecord } from './migration-records.ts'

const system = realSystem()
const directories: string[] = []
let engine: Engine
afterEach(async () => {
  await engine.close()
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true })
})

const fill = functionManifest('fill', { kind: 'mutation' })
const migration = migrationManifest('add')
const release: Release = {
  releaseId: system.ids.make('rel') as ReleaseId,
  source: '',
  sourceMap: null,
  functions: new Map([['fill', fill]]),
  tables: new Map([
    [
      'tasks',
      {
        name: 'tasks',
        fields: { level: { type: 'optional', inner: { type: 'string' } } },
        indexes: [],
      },
    ],
  ]),
  migrations: new Map([['add', migration]]),
}

/** Opens an engine with two documents whose migration has this handler. */
async function open(handler: TestHandler): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-untrusted-'))
  directories.push(directory)
  const pool = inProcessPool({
    fill: async (context) => {
      for (let i = 0; i < 2; i++) await context.insert('tasks', {})
    },
    [migrationFunction('add')]: handler,
  })
  Object.assign(pool, { close: async () => undefined, warm: async () => undefined })
  engine = createEngine({
    store: await openSqliteDocuments(join(directory, 'documents.db')),
    pool,
    system,
    log: memoryLog().log,
    metrics: new Metrics(system),
    storage: noStorage(),
    issueGuest: () => 'guest',
    cursors: testCursors(),
    configuration: new TestConfiguration(),
  })
  const context = { requestId: 'req_test', invocationId: 'ivc_test' }
  const operation = { operationId: system.ids.make('opn'), target: 'test', caller: 'test' }
  const call = { release, definition: fill, arguments: new Map(), principal: null, context }
  await engine.mutation({ ...call, ...operation })
  engine.migrations.start({ load: async () => release, admits: () => true })
}

async function ended(): Promise<MigrationRecord> {
  await engine.migrations.act('run', release, migration)
  return (await engine.migrations.whenStopped(migration)).record
}

test.each([
  ['no object', 5],
  ['no patches', { failure: null }],
  ['too few patches', { patches: [], failure: null }],
  ['too many patches', { patches: ['[{},[]]', '[{},[]]', '[{},[]]'], failure: null }],
  ['a failure after all documents', { patches: [null, null], failure: '["a","b",""]' }],
  ['a failure that is no text', { patches: [], failure: true }],
  ['a patch that is no JSON', { patches: ['{', null], failure: null }],
  ['a patch without names', { patches: ['[{}]', null], failure: null }],
  ['names that are no texts', { patches: ['[{},[5]]', null], failure: null }],
  ['fields that are no object', { patches: ['[5,[]]', null], failure: null }],
  ['fields that are no value', { patches: ['[{"level":{"$x":"1"}},[]]', null], failure: null }],
  ['the fields of the server', { patches: ['[{"_id":"x"},[]]', null], failure: null }],
])('%s stops the migration before the first document', { tags: ['slow'] }, async (_, result) => {
  await open(() => result)
  expect(await ended()).toMatchObject({
    state: 'blocked',
    processed: 0n,
    changed: 0n,
    lastErrorCode: 'FUNCTION_FAILED',
    lastDocumentId: expect.stringMatching(/^tasks_/),
  })
})

test('a runner cannot write for a migration itself, whatever it sends', async () => {
  await open(async (context, { documents }) => {
    const id = documents[0]._id.$d as string
    const writes = [
      () => context.insert('tasks', {}),
      () => context.patch(id, { level: 'x' }),
      () => context.replace(id, {}),
      () => context.delete(id),
    ]
    for (const write of writes) await expect(write()).rejects.toThrow('is a write in a Query')
    return { patches: [null, null], failure: null }
  })
  expect(await ended()).toMatchObject({ state: 'complete', processed: 2n, changed: 0n })
})

test('an engine that closes ends the wait for a migration, which stays running', async () => {
  let entered: () => void = () => undefined
  const isEntered = new Promise<void>((resolve) => {
    entered = resolve
  })
  await open(async () => {
    entered()
    await new Promise((resolve) => setTimeout(resolve, 50))
    return { patches: [null, null], failure: null }
  })
  await engine.migrations.act('run', release, migration)
  const stopped = engine.migrations.whenStopped(migration)
  await isEntered
  engine.migrations.stop()
  await expect(stopped).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  await engine.migrations.whenIdle()
})
