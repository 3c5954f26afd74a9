/** Migrations of stored documents: their progress and the actions on them. */
import {
  MigrationAct,
  MigrationActed,
  MigrationList,
  MigrationsQuery,
} from '../migrations/migrations.ts'
import { lookUpOperation } from './idempotency-records.ts'
import { environmentOperation } from './operation.ts'

/** Bytes of ten documents before and after: 10 MiB each as stored, and what the notation adds. */
const RESPONSE_BYTES_MAX = 64 * 1024 * 1024

export const listMigrations = environmentOperation({
  method: 'GET',
  path: '/migrations',
  name: 'listMigrations',
  summary: 'Lists the migrations of a Release, or of the newest one, with their progress.',
  capability: 'releases:read',
  query: MigrationsQuery,
  replies: { 200: MigrationList },
  errors: ['PRODUCT_RELEASE_RETIRED', 'PRODUCT_UNAVAILABLE'],
})

export const actOnMigration = environmentOperation({
  method: 'POST',
  path: '/migrations/:migration',
  name: 'actOnMigration',
  summary: 'Runs, pauses, resumes or cancels a migration, or shows what it would change.',
  capability: 'data:write',
  operationId: 'required',
  body: { schema: MigrationAct },
  replies: { 200: MigrationActed },
  errors: [
    'PRODUCT_INVALID',
    'PRODUCT_INCOMPATIBLE',
    'PRODUCT_RELEASE_RETIRED',
    'PRODUCT_STATE_CONFLICT',
    'PRODUCT_UNAVAILABLE',
  ],
  responseBytesMax: RESPONSE_BYTES_MAX,
})

export const readMigrationOperation = lookUpOperation(
  '/migration-operations',
  'readMigrationOperation',
  'releases:read',
)

export const migrationOperations = { listMigrations, actOnMigration, readMigrationOperation }
