/** Document databases of earlier versions. */
import { expect, onTestFinished, test } from 'vitest'
import { execute } from '../../../testing/databases/cluster.ts'
import { freshDatabase } from '../../../testing/databases/postgres.ts'
import { openDocuments } from '../../../testing/documents/stores.ts'
import { migrate } from '../../database/migrate.ts'
import { Secret } from '../../value/secret.ts'
import { DOCUMENT_SCHEMA, documentDatabase } from './schema.ts'

test('documents of an earlier version have fields of any name after an upgrade', async () => {
  const { url, drop } = await freshDatabase()
  onTestFinished(drop)
  const onIdleLoss = () => undefined
  const database = documentDatabase({ url: new Secret(url), connectionsMax: 2, onIdleLoss })
  const { migrations, ...schema } = DOCUMENT_SCHEMA
  await migrate(database, 1n, { ...schema, migrations: migrations.slice(0, 1) })
  await database.close()
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
