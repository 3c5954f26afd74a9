/** Migrations of stored documents: names, states and bounds (contract/wire.md, Migrations). */
import { textDigest } from './text-digest.ts'

/**
 * The table of the document store that holds how far each migration is. Its name is the prefix of
 * its IDs, so no author can declare it.
 */
export const MIGRATION_DOCUMENTS = 'mig'

export const MIGRATION_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/
/** @limit Migrations: migrations of a Release */
export const MIGRATIONS_MAX = 64
/** @limit Migrations: names in `requires` of a Release */
export const REQUIRES_MAX = 256
/** @limit Migrations: documents of one batch, which is one transaction */
export const BATCH_DOCUMENTS_MAX = 500
/** @limit Migrations: stored bytes of the documents of one batch; a larger document is one alone */
export const BATCH_BYTES_MAX = 2 * 1024 * 1024
/** @limit Migrations: documents that a dry run shows before and after */
export const DRY_RUN_DOCUMENTS = 10

/** `pending` is a migration that was never run. */
export const MIGRATION_STATES = [
  'pending',
  'running',
  'paused',
  'complete',
  'blocked',
  'canceled',
] as const
export type MigrationState = (typeof MIGRATION_STATES)[number]
export const MIGRATION_ACTIONS = ['run', 'pause', 'resume', 'cancel', 'dry-run'] as const
export type MigrationAction = (typeof MIGRATION_ACTIONS)[number]

interface DigestedMigration {
  readonly name: string
  readonly table: string
  readonly index: string | null
  /** The text of `each` in the bundle. */
  readonly source: string
}

/**
 * Returns the digest that tells whether two Releases have the same migration. It covers the name,
 * the table, the index and the text of `each`; neither the size of a batch nor the functions that
 * `each` calls are part of it.
 */
export function migrationDigest({ name, table, index, source }: DigestedMigration): string {
  return `sha256:${textDigest(JSON.stringify([name, table, index, source]))}`
}

/** Returns the name by which a runner finds the code; no Function has such a name. */
export function migrationFunction(name: string): string {
  return `migrations.ts:${name}`
}
