import { afterAll, beforeAll } from 'vitest'
import { execute } from '../../../testing/databases/cluster.ts'
import { freshDatabase, type TestDatabase } from '../../../testing/databases/postgres.ts'
import { documentHistorySuite } from '../../../testing/documents/store-history-suite.ts'
import { documentRetentionSuite } from '../../../testing/documents/store-retention-suite.ts'
import { documentScanSuite } from '../../../testing/documents/store-scan-suite.ts'
import { documentStoreSuite } from '../../../testing/documents/store-suite.ts'
import { openDocuments } from '../../../testing/documents/stores.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})

afterAll(async () => {
  await database.drop()
})

/** Each test drops the schema, since creating one takes a tenth of the time of a database. */
const harness = async () => ({
  open: () => openDocuments(database.url),
  dispose: () => execute(database.url, 'drop schema svc_documents cascade'),
})

documentStoreSuite('postgres', harness)
documentRetentionSuite('postgres', harness)
documentScanSuite('postgres', harness)
documentHistorySuite('postgres', harness)
