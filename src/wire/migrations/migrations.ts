/** Migrations: their list, the actions on one of them, and what a dry run shows. */
import {
  DRY_RUN_DOCUMENTS,
  MIGRATION_ACTIONS,
  MIGRATION_NAME,
  MIGRATION_STATES,
  MIGRATIONS_MAX,
} from '../../value/migrations/migrations.ts'
import { TableName } from '../data.ts'
import { idField, listUpTo, Micros, text, textUpTo, U64 } from '../fields.ts'
import { OperationField } from '../idempotency-records.ts'
import { TaggedObjectField } from '../invocations.ts'
import { type Infer, schema } from '../schema.ts'

export const MigrationName = text(MIGRATION_NAME, 'the name of a migration')

export const MigrationsQuery = schema({
  /** Left out: the newest Release. */
  'release?': idField('rel'),
})

const MIGRATION = {
  name: MigrationName,
  /** The Release whose code runs; the listed one until it runs. */
  releaseId: idField('rel'),
  table: TableName,
  state: ['===', ...MIGRATION_STATES],
  /** Documents that were passed to the code. */
  processed: U64,
  /** Those that it changed. */
  changed: U64,
  /** Number of times that a document stopped it. */
  failed: U64,
  /** Code of the failure that stopped it; null in every state but blocked. */
  lastErrorCode: [textUpTo(128), '|', 'null'],
  /** The document that stopped it. */
  lastDocumentId: [textUpTo(128), '|', 'null'],
  startedAtMicros: [Micros, '|', 'null'],
  finishedAtMicros: [Micros, '|', 'null'],
} as const

const MigrationField = schema(MIGRATION)
export type MigrationItem = Infer<typeof MigrationField>

export const MigrationList = schema({
  version: '1',
  releaseId: idField('rel'),
  /** Sorted by name. */
  migrations: listUpTo(MigrationField, MIGRATIONS_MAX),
})
export type MigrationList = Infer<typeof MigrationList>

export const MigrationAct = schema({
  releaseId: idField('rel'),
  action: ['===', ...MIGRATION_ACTIONS],
  changedAtMicros: Micros,
})

const MigrationPreview = schema({
  documentId: textUpTo(128),
  before: TaggedObjectField,
  /** Equal to `before` for no change; null if the code fails or the schema rejects the patch. */
  after: [TaggedObjectField, '|', 'null'],
  error: [schema({ code: textUpTo(128), message: textUpTo(500) }), '|', 'null'],
})

export type MigrationPreview = Infer<typeof MigrationPreview>

export const MigrationActed = schema({
  version: '1',
  ...MIGRATION,
  /** Null for a dry run, which changes nothing. */
  operation: [OperationField, '|', 'null'],
  /** The documents of a dry run; null for every other action. */
  documents: [listUpTo(MigrationPreview, DRY_RUN_DOCUMENTS), '|', 'null'],
})
export type MigrationActed = Infer<typeof MigrationActed>
