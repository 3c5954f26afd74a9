import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freshDatabase } from '../../../testing/databases/postgres.ts'
import { DOCUMENT_TEMPLATE, openDocuments } from '../../../testing/documents/stores.ts'
import { compactionSuite } from '../../../testing/engine/compaction-suite.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'

compactionSuite('sqlite', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-compaction-'))
  return {
    open: () => openSqliteDocuments(join(directory, 'documents.db')),
    dispose: async () => rmSync(directory, { recursive: true }),
  }
})

compactionSuite('postgres', async () => {
  const database = await freshDatabase(DOCUMENT_TEMPLATE)
  return { open: () => openDocuments(database.url), dispose: () => database.drop() }
})
