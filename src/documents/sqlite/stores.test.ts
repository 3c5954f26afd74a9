import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { documentHistorySuite } from '../../../testing/documents/store-history-suite.ts'
import { documentRetentionSuite } from '../../../testing/documents/store-retention-suite.ts'
import { documentStoreSuite } from '../../../testing/documents/store-suite.ts'
import { openSqliteDocuments } from './stores.ts'

async function harness() {
  const directory = mkdtempSync(join(tmpdir(), 'documents-'))
  return {
    open: () => openSqliteDocuments(join(directory, 'documents.db')),
    dispose: async () => rmSync(directory, { recursive: true }),
  }
}

documentStoreSuite('sqlite', harness)
documentRetentionSuite('sqlite', harness)
documentHistorySuite('sqlite', harness)
