/** Migrations of a save on the author's machine: they run before the Release is bound. */
import type { Engine } from '../../engine/engine.ts'
import type { MigrationRecord } from '../../engine/migrations/migration-records.ts'
import { Fault } from '../../errors/fault.ts'
import {
  pendingMigrations,
  type RequiredMigrationsPorts,
  requireMigrated,
} from '../compatibility/required-migrations.ts'
import type { LoadedRelease } from '../ports.ts'
import { failingAsProduct } from '../schedules/scheduled-work.ts'

export interface DevelopmentMigrationsPorts extends RequiredMigrationsPorts {
  readonly engine: {
    readonly migrations: Pick<
      Engine['migrations'],
      'act' | 'cancelOthers' | 'isComplete' | 'whenStopped'
    >
  }
}

/**
 * Runs the migrations that the Release requires and that are not complete. Throws
 * PRODUCT_INCOMPATIBLE with the document that stopped one, and for one that the Release does not
 * have. A migration that an earlier save left unfinished is canceled where its code has changed,
 * and continues where it has not.
 */
export async function migrateForDevelopment(
  ports: DevelopmentMigrationsPorts,
  release: LoadedRelease,
  onEnd: (record: MigrationRecord) => void,
): Promise<void> {
  const { migrations } = ports.engine
  for (const name of await pendingMigrations(ports, release)) {
    const own = release.manifest.migrations?.find((migration) => migration.name === name)
    // One that only an earlier Release has.
    if (own === undefined) continue
    const { record, failure } = await failingAsProduct(async () => {
      await migrations.cancelOthers(own)
      const started = await migrations.act('run', release, own)
      if (!started.isAllowed) await migrations.act('resume', release, own)
      return migrations.whenStopped(own)
    })
    onEnd(record)
    if (record.state !== 'complete') throw stopped(record, failure)
  }
  await requireMigrated(ports, release.releaseId)
}

function stopped(
  { name, state, lastErrorCode, lastDocumentId }: MigrationRecord,
  failure: string | null,
): Fault {
  const where = lastDocumentId === null ? '' : ` at ${lastDocumentId}`
  const reason = failure ?? lastErrorCode ?? state
  const rule = `the migration ${name} is ${state}${where}: ${reason}`
  return new Fault('PRODUCT_INCOMPATIBLE', {
    violations: [{ path: 'migrations.ts', rule: rule.slice(0, 500) }],
  })
}
