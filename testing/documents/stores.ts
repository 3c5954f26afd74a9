/** Opens PostgreSQL document stores on test databases. */

import { DOCUMENT_SCHEMA, migrateDocuments } from '../../src/documents/postgres/schema.ts'
import {
  openPostgresDocuments,
  type PostgresDocumentStore,
  type PostgresDocumentsOptions,
} from '../../src/documents/postgres/stores.ts'
import { sha256Hex } from '../../src/system/digests.ts'
import { realSystem } from '../../src/system/system.ts'
import { Secret } from '../../src/value/secret.ts'
import type { Template } from '../databases/postgres.ts'

/** A database with the migrated schema of documents that belongs to no Environment yet. */
export const DOCUMENT_TEMPLATE: Template = {
  name: `documents-${sha256Hex(...DOCUMENT_SCHEMA.migrations.map((migration) => migration.sql))}`,
  prepare: async (url) => {
    await migrateDocuments(new Secret(url), 1n)
  },
}

export const TEST_ENVIRONMENT = 'env_00000000000000000000000001'

export function openDocuments(
  url: string,
  options: Partial<PostgresDocumentsOptions> = {},
): Promise<PostgresDocumentStore> {
  return openPostgresDocuments({
    url: new Secret(url),
    environmentId: TEST_ENVIRONMENT,
    databaseId: null,
    system: realSystem(),
    onProblem: () => undefined,
    ...options,
  })
}
