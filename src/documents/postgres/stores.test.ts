import { afterAll, beforeAll } from 'vitest'
import { execute } from '../../../build/testing/cluster.ts'
import { openDocuments } from '../../../build/testing/documents/stores.ts'
import { freshDatabase, type TestDatabase } from '../../../build/testing/postgres.ts'
import { documentHistorySuite } from '../store-history-suite.ts'
import { documentRetentionSuite } from '../store-retention-suite.ts'
import { documentStoreSuite } from '../store-suite.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})

afterAll(async () => {
  await database.drop()
})

/** A schema is made in a tenth of the time that a database takes. */
const harness = async () => ({
  open: () => openDocuments(database.url),
  dispose: () => execute(database.url, 'drop schema svc_documents cascade'),
})

documentStoreSuite('postgres', harness)
documentRetentionSuite('postgres', harness)
documentHistorySuite('postgres', harness)
