/** Migrates the databases of a Product root that no server uses. */
import { join } from 'node:path'
import { openDatabase } from '../../documents/sqlite/databases.ts'
import { Fault } from '../../errors/fault.ts'
import { migrateLogFile, NewerLogError } from '../../storage/logs/log-migrations.ts'
import { DOCUMENTS_FILE, LOGS_FILE, openProductRoot } from '../../storage/root.ts'
import type { System } from '../../system/system.ts'
import type { DatabaseSurvey } from './survey.ts'

export interface RootMigrationOptions {
  readonly system: Pick<System, 'nowMicros' | 'ids'>
  /** Called after the migrations of each database are durable. */
  readonly onMigrated: (survey: DatabaseSurvey) => void
}

/**
 * Applies the pending migrations that `surveyRoot` has found. Throws what `openProductRoot` throws,
 * UNAVAILABLE and PRODUCT_CORRUPT.
 */
export async function migrateRoot(
  path: string,
  surveys: readonly DatabaseSurvey[],
  { system, onMigrated }: RootMigrationOptions,
): Promise<void> {
  const pending = surveys.filter(({ store, pending }) => store === 'sqlite' && pending.length > 0)
  if (pending.length === 0) return
  const root = await openProductRoot(path, system)
  try {
    for (const survey of pending) {
      if (survey.name === 'documents') {
        openDatabase(join(path, DOCUMENTS_FILE), { mayBeNew: false }).close()
      }
      if (survey.name === 'logs') migrateLogs(join(path, LOGS_FILE))
      onMigrated(survey)
    }
  } finally {
    root.close()
  }
}

function migrateLogs(path: string): void {
  try {
    migrateLogFile(path)
  } catch (error) {
    if (!(error instanceof NewerLogError)) throw error
    throw new Fault(error.code, { detail: error.message })
  }
}
