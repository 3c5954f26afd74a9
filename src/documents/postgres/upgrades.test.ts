/** Document databases of earlier versions. */
import { expect, onTestFinished, test } from 'vitest'
import { execute } from '../../../testing/databases/cluster.ts'
import { freshDatabase } from '../../../testing/databases/postgres.ts'
import { checkMigrated, EARLIER, scanned } from '../../../testing/documents/earlier-versions.ts'
import { pruneAll } from '../../../testing/documents/store-fixtures.ts'
import { openDocuments, TEST_ENVIRONMENT } from '../../../testing/documents/stores.ts'
import { migrate } from '../../database/migrate.ts'
import { Secret } from '../../value/secret.ts'
import { DOCUMENT_SCHEMA, documentDatabase } from './schema.ts'
import { readUnmigratedPostgres } from './unmigrated-documents.ts'

async function migrated(versions: number): Promise<string> {
  const { url, drop } = await freshDatabase()
  onTestFinished(drop)
  const onIdleLoss = () => undefined
  const database = documentDatabase({ url: new Secret(url), connectionsMax: 2, onIdleLoss })
  const { migrations, ...schema } = DOCUMENT_SCHEMA
  await migrate(database, 1n, { ...schema, migrations: migrations.slice(0, versions) })
  await database.close()
  return url
}

test('documents of an earlier version have fields of any name after an upgrade', async () => {
  const url = await migrated(1)
  const ids = ['notes', 'a', 'notesA', 'a', 'notes'].map(
    (table, i) => `${table}_${String(i).padStart(26, '0')}`,
  )
  await execute(
    url,
    `insert into svc_documents.indexes (table_name, fields, state, ready_sequence)
     values ('notes', '{a}', 'ready', 0)`,
  )
  await execute(
    url,
    `insert into svc_documents.documents (id, sequence, created_at_micros, text)
     select id, 1, 0, '{}' from unnest('{${ids.join()}}'::text[]) id`,
  )
  const store = await openDocuments(url)
  onTestFinished(() => store.close())
  expect(Object.fromEntries(store.fieldShapes())).toEqual({ a: 'any', notes: 'any', notesA: 'any' })
  const [index] = await store.ensureIndexes([{ table: 'notes', fields: ['a'] }])
  expect(index).toEqual({ id: 1, table: 'notes', fields: ['a'], state: 'ready' })
})

test('documents of the second version can be read, written and pruned', {
  tags: ['slow'],
}, async () => {
  const url = await migrated(2)
  const { versions, entries, operation, latestSequence } = EARLIER
  const schema = 'svc_documents'
  await execute(
    url,
    `insert into ${schema}.indexes (table_name, fields, state, ready_sequence)
     values ('notes', '{}', 'ready', 0), ('notes', '{a}', 'ready', 0)`,
  )
  await execute(url, `insert into ${schema}.field_shapes values ('notes', '{"a":null}')`)
  for (const { id, sequence, createdAtMicros, text } of versions) {
    const literal = text === null ? 'null' : `'${text}'`
    await execute(
      url,
      `insert into ${schema}.documents (id, sequence, created_at_micros, text)
       values ('${id}', ${sequence}, ${createdAtMicros}, ${literal})`,
    )
  }
  for (const { index, key, from, until } of entries) {
    await execute(
      url,
      `insert into ${schema}.index_entries (index_id, key, from_sequence, until_sequence)
       values (${index}, '\\x${key}', ${from}, ${until ?? Number.MAX_SAFE_INTEGER})`,
    )
  }
  await execute(
    url,
    `insert into ${schema}.operations (operation_id, fingerprint, commit_sequence, release_id,
                                       function, result, attempts, created_at_micros)
     values ('${operation.operationId}', '\\x${Buffer.from(operation.fingerprint).toString('hex')}',
             null, '${operation.releaseId}', '${operation.function}', '${operation.result}', 1,
             1000)`,
  )
  const ids = versions.map(({ id }) => id).join()
  await execute(
    url,
    `insert into ${schema}.batches (batch, latest_sequence, at_micros, written, recorded)
     values (1, ${latestSequence}, 0, '{${ids}}', '{${operation.operationId}}')`,
  )
  await execute(
    url,
    `insert into ${schema}.state (environment_id, database_id, writer, epoch)
     values ('${TEST_ENVIRONMENT}', 'x', 'y', 1)`,
  )
  // A backup before the migrations reads what the store returns after them.
  const address = { url: new Secret(url), environmentId: TEST_ENVIRONMENT }
  const unmigrated = await readUnmigratedPostgres(address, scanned)
  expect(unmigrated.versions.length).toBeGreaterThan(1)
  const store = await openDocuments(url, { databaseId: 'x' })
  onTestFinished(() => store.close())
  expect(await scanned(store)).toEqual(unmigrated)
  await checkMigrated(store)
  expect(await pruneAll(store, { operationsBeforeMicros: 2_000n })).toBe(1)
})
